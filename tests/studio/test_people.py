"""Links open the door once, sessions end, and files hold hashes alone."""

import stat
import time

import pytest
from stage import all_files

from sidelight.studio import people as module
from sidelight.studio.people import People, form_token, is_form_token


@pytest.fixture
def people(tmp_path):
    return People(tmp_path / ".studio")


def test_a_link_opens_the_door_once(people):
    token = people.invite("approver", "Grace Hopper")

    assert people.invited(token).role == "approver"
    secret = people.enter(token)
    assert people.of(secret).name == "Grace Hopper"
    assert people.enter(token) is None
    assert people.invited(token) is None


def test_nobody_enters_with_anything_else(people):
    people.invite("curator", "Ada")

    for token in ("", "x", "../../elsewhere/secret", "a" * 10_000, "\0", "é"):
        assert people.enter(token) is None
        assert people.of(token) is None
    assert people.of(None) is None


def test_links_and_sessions_end(people, monkeypatch):
    token = people.invite("reader", "Rosalind")
    secret = people.enter(people.invite("reader", "Rosalind"))
    later = time.time() + 25 * 3600
    monkeypatch.setattr(module.time, "time", lambda: later)

    assert people.enter(token) is None
    assert people.of(secret) is None


def test_leaving_ends_a_session_for_good(people):
    secret = people.enter(people.invite("reader", "Rosalind"))
    people.leave(secret)

    assert people.of(secret) is None


def test_files_hold_neither_tokens_nor_secrets_and_only_their_owner_reads_them(people, tmp_path):
    token = people.invite("curator", "Ada")
    secret = people.enter(people.invite("curator", "Ada"))

    found = list(all_files(tmp_path))
    assert len(found) == 3
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert token not in path.read_text() + path.name
        assert secret not in path.read_text() + path.name
    for folder in (tmp_path / ".studio").rglob("*/"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_nobody_can_use_is_removed(people, tmp_path):
    people.enter(people.invite("curator", "Ada"))
    people.tidy()

    assert [path.name for path in (tmp_path / ".studio" / "links").iterdir()] == []


def test_a_form_token_belongs_to_its_session():
    assert is_form_token("one", form_token("one"))
    assert not is_form_token("one", form_token("other"))
    assert not is_form_token("one", "é")


def test_a_session_survives_a_restart(stage):
    curator = stage.browser()
    restarted = stage.again()
    again = restarted.browser(role=None)
    again.client.cookies = curator.client.cookies

    assert again.get("/").status_code == 200
