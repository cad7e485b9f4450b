"""Every address with every role, and with none."""

import pytest

from sidelight.studio.people import ROLES
from sidelight.studio.routes import ADDRESSES

FORBIDDEN, UNKNOWN = 403, 401


@pytest.fixture(scope="module")
def browsers(released):
    names = {"curator": "Ada Lovelace", "approver": "Grace Hopper", "reader": "Rosalind Franklin"}
    return {role: released.browser(role, names[role]) for role in ROLES} | {None: released.browser(None)}


def asked(browser, address):
    path = address.path.format(project="people", release="release-1", job="20260101-000000-000000-abcd")
    if address.method == "GET":
        return browser.get(path)
    token = None if browser.client.cookies else "0" * 64
    return browser.post(path, token=token)


# Leaving would end the sessions that the other cases use; it is tried below.
@pytest.mark.parametrize(
    "address", [one for one in ADDRESSES if one.path != "/leave"], ids=lambda one: f"{one.method} {one.path}"
)
def test_an_address_answers_its_roles_and_nobody_else(browsers, address):
    for role, browser in browsers.items():
        status = asked(browser, address).status_code
        if role is None:
            assert status == UNKNOWN
        elif role in address.roles:
            assert status not in (FORBIDDEN, UNKNOWN, 500), (role, status)
        else:
            assert status == FORBIDDEN, (role, status)


def test_everybody_may_leave_and_has_left_then(released):
    for role in ROLES:
        browser = released.browser(role, "Somebody")
        assert browser.post("/leave").status_code == 303
        assert browser.get("/").status_code == UNKNOWN


def test_an_approver_and_a_reader_see_no_more_than_their_own(released):
    approver, reader = released.browser("approver", "Grace"), released.browser("reader", "Rosalind")

    assert "/p/people/schema" not in approver.get("/p/people/approve").text
    assert "/p/people/explore" not in approver.get("/p/people/approve").text
    assert "/p/people/ledger" not in reader.get("/p/people/explore/release-1").text
    assert approver.get("/p/people/").headers["location"] == "/p/people/approve"
    assert reader.get("/p/people/").headers["location"] == "/p/people/explore"


def test_a_reader_sees_no_work_but_samples(released):
    from sidelight.studio.jobs import Jobs

    job = next(Jobs(released.place()).all("release"))
    reader, curator = released.browser("reader", "Rosalind"), released.browser()

    assert reader.get(f"/p/people/jobs/{job.id}").status_code == 404
    assert curator.get(f"/p/people/jobs/{job.id}").json()["status"] == "done"


# Written down a second time, so that a slip in the table itself is seen.
APPROVERS = {
    "GET /", "POST /leave", "GET /p/{project}/", "GET /p/{project}/approve", "POST /p/{project}/approve",
    "GET /p/{project}/approve/schema.toml",
}  # fmt: skip
READERS = {
    "GET /", "POST /leave", "GET /p/{project}/", "GET /p/{project}/explore",
    "GET /p/{project}/explore/{release}", "GET /p/{project}/explore/{release}/table.csv",
    "POST /p/{project}/explore/{release}/sample", "GET /p/{project}/explore/{release}/sample/{job}",
    "GET /p/{project}/explore/{release}/report", "GET /p/{project}/explore/{release}/report.html",
    "GET /p/{project}/explore/{release}/card.json", "GET /p/{project}/explore/{release}/release.zip",
    "GET /p/{project}/jobs/{job}",
}  # fmt: skip


def test_approvers_and_readers_have_these_addresses_and_a_curator_has_all():
    open_to = {role: {f"{one.method} {one.path}" for one in ADDRESSES if role in one.roles} for role in ROLES}

    assert open_to["approver"] == APPROVERS
    assert open_to["reader"] == READERS
    assert len(open_to["curator"]) == len(ADDRESSES)
