"""What every request must show, and what every response carries."""

import pytest
from stage import ORIGIN, Stage, hold_workers

from sidelight.studio import guard
from sidelight.studio.pages import home


@pytest.fixture
def curator(stage):
    return stage.browser()


@pytest.mark.parametrize(
    "host", ["evil.example", "testserver:81", "127.0.0.1", "", "testserver.evil.example"]
)
def test_another_name_that_leads_here_is_refused(curator, host):
    answer = curator.get("/", headers={"host": host})

    assert answer.status_code == 421
    assert "Projects" not in answer.text


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://testserver", f"{ORIGIN}:80"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_another_page_is_refused(curator, origin, method):
    answer = getattr(curator, method)("/projects" if method == "post" else "/", headers={"origin": origin})

    assert answer.status_code == 403


def test_a_post_says_where_it_comes_from(curator, stage):
    token = curator.token()
    alone = curator.client.post("/projects", data={"token": token, "title": "A"}, follow_redirects=False)
    cross = curator.client.post(
        "/projects", data={"token": token, "title": "A"}, headers={"sec-fetch-site": "same-site"}
    )
    same = curator.client.post(
        "/projects",
        data={"token": token, "title": "A"},
        headers={"sec-fetch-site": "same-origin"},
        follow_redirects=False,
    )

    assert (alone.status_code, cross.status_code, same.status_code) == (403, 403, 303)
    assert len(list(stage.studio.places())) == 1


@pytest.mark.parametrize("token", ["", "x", "0" * 64])
def test_a_form_without_its_sessions_token_is_refused(curator, stage, token):
    answer = curator.post("/projects", {"title": "A"}, token=token)

    assert answer.status_code == 403
    assert not list(stage.studio.places())


def test_the_token_of_another_session_is_refused(curator, stage):
    other = stage.browser("curator", "Grace")

    assert curator.post("/projects", {"title": "A"}, token=other.token()).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(curator, method):
    assert curator.client.request(method, "/", headers={"origin": ORIGIN}).status_code == 405


def test_every_response_carries_the_headers(stage, curator):
    stranger = stage.browser(role=None)
    answers = [
        curator.get("/"),
        curator.get("/nothing"),
        curator.get("/static/studio.css"),
        curator.post("/projects", {"title": ""}),
        stranger.get("/"),
        stranger.get("/enter?link=x"),
        curator.get("/", headers={"host": "evil.example"}),
    ]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
    assert curator.get("/").headers["cache-control"] == "no-store"


def test_no_page_holds_a_script_or_a_style_of_its_own(released):
    curator = released.browser()
    for path in ("/", "/p/people/sources", "/p/people/schema?edit=age", "/p/people/promise", "/p/people/plan",
                 "/p/people/approve", "/p/people/release", "/p/people/explore",
                 "/p/people/explore/release-1?by=age&by=sex", "/p/people/ledger"):  # fmt: skip
        page = curator.get(path).text
        assert "<style" not in page
        assert " style=" not in page
        assert "onclick" not in page
        assert "<script>" not in page
        assert "http://" not in page.replace("http://www.w3.org", "")


def test_the_cookie_is_for_the_server_and_this_site_alone(stage):
    link = stage.people.invite("reader", "Rosalind")
    stranger = stage.browser(role=None)
    answer = stranger.client.post(
        "/enter", data={"link": link}, headers={"origin": ORIGIN}, follow_redirects=False
    )

    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie  # plain HTTP on this machine alone
    assert link not in cookie


def test_over_tls_the_cookie_is_secure(tmp_path, monkeypatch):
    stage = Stage(tmp_path, "https://studio.example.org")
    hold_workers(monkeypatch, stage)
    link = stage.people.invite("reader", "Rosalind")
    answer = stage.browser(role=None).client.post(
        "/enter", data={"link": link}, headers={"origin": stage.origin}, follow_redirects=False
    )

    assert "Secure" in answer.headers["set-cookie"]
    assert "max-age" in answer.headers["strict-transport-security"]


def test_looking_at_a_link_does_not_use_it(stage):
    link = stage.people.invite("approver", "Grace Hopper")
    stranger = stage.browser(role=None)

    for _ in range(2):
        page = stranger.get(f"/enter?link={link}")
        assert "Welcome, Grace Hopper" in page.text
        assert "set-cookie" not in page.headers


def test_a_form_that_is_too_large_is_refused_while_it_is_read(curator, stage):
    large = curator.post("/projects", {"title": "x" * (3 << 20)})
    # Without a length, in parts.
    parts = curator.client.post(
        "/projects",
        content=(b"x" * 65_536 for _ in range(64)),
        headers={"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"},
    )

    assert (large.status_code, parts.status_code) == (413, 413)
    assert not list(stage.studio.places())


def test_an_unexpected_error_does_not_say_its_text(curator, monkeypatch, capsys):
    def fails(visit):
        raise ValueError("4711 is somebody's value")

    monkeypatch.setattr(home, "_rows", fails)
    answer = curator.get("/")

    assert answer.status_code == 500
    assert "4711" not in answer.text
    assert "ValueError" in answer.text
    assert "4711" not in "".join(capsys.readouterr())


def test_a_websocket_is_refused(curator):
    with pytest.raises(Exception), curator.client.websocket_connect("/"):  # noqa: B017, PT011  # of any kind
        pass


def test_nothing_but_listed_files_is_served(curator):
    for path in ("/static/", "/static/../server.py", "/static/%2e%2e/server.py", "/static/studio.js.map",
                 "/.studio", "/.studio/links/", "/p/people/.studio/plans", "/p/../.studio"):  # fmt: skip
        assert curator.get(path).status_code == 404


def test_the_report_has_a_policy_that_allows_no_script(released):
    answer = released.browser().get("/p/people/explore/release-1/report")

    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == guard.REPORT_POLICY
    assert "script" not in guard.REPORT_POLICY
