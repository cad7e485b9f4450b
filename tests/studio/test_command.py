"""``sidelight studio``: where it listens, whom it lets in, what it says where something is missing."""

import json
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from commands import sidelight
from sidelight.errors import InputError, SettingError
from sidelight.studio.server import Listening


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "studio.example.org"])
def test_other_machines_are_let_in_only_where_all_of_it_is_said(host, tmp_path):
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    for path in (certificate, key):
        path.write_text("x")
    https, tls = "https://studio.example.org", (certificate, key)
    for wrong in (
        {},
        {"allow_remote": True},
        {"allow_remote": True, "origin": https},
        {"allow_remote": True, "tls": tls},
        {"allow_remote": True, "behind_proxy": True},
        {"origin": https, "tls": tls},
        {"allow_remote": True, "origin": "http://studio.example.org", "behind_proxy": True},
        {"allow_remote": True, "origin": "https://studio.example.org/path", "behind_proxy": True},
        {"allow_remote": True, "origin": https, "tls": (certificate, tmp_path / "nowhere")},
    ):
        with pytest.raises((SettingError, InputError)):
            Listening(host=host, **wrong).check()

    for right in ({"tls": tls}, {"behind_proxy": True}):
        Listening(host=host, allow_remote=True, origin=https, **right).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_nothing_more(host):
    Listening(host=host).check()
    Listening(host=host, origin="https://studio.example.org", behind_proxy=True).check()


def test_the_addresses_that_are_answered():
    assert Listening().origins(8765) == (
        "http://127.0.0.1:8765",
        "http://localhost:8765",
        "http://[::1]:8765",
    )
    proxied = Listening(origin="https://Studio.Example.org/", behind_proxy=True)
    assert proxied.origins(8765) == ("https://studio.example.org",)


def test_a_port_that_is_taken_is_another_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Listening(port=port).bound() as bound:
            assert bound.getsockname()[1] != port


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--tls-cert", "c.pem"], "belong together"),
        (["--name", ""], "name"),
        (["--approver", "a\nb"], "plain text"),
        (["--tables", "nowhere"], "no folder"),
        (["--links"], "no studio serves"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_sentence(tmp_path, argv, says):
    done = sidelight("studio", "here", *argv, "--no-browser", folder=tmp_path)

    assert done.returncode == 2
    assert says in done.stderr


def test_a_missing_extra_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = sidelight("studio", "here", folder=tmp_path)

    assert done.returncode == 2
    assert "pip install 'sidelight[studio]'" in done.stderr


def started(folder, *more):
    """A studio in a process of its own, and the links that it prints."""
    server = subprocess.Popen(
        [sys.executable, "-m", "sidelight", "studio", str(folder), "--no-browser", "--port", "0", "--json",
         "--name", "Ada Lovelace", *more],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    text = ""
    while "]" not in text:
        text += server.stdout.readline()
    return server, {one["role"]: one["link"] for one in json.loads(text)}


def read(link):
    """The page behind a link."""
    with urllib.request.urlopen(link, timeout=30) as page:
        return page.read().decode()


@pytest.mark.slow
def test_it_serves_prints_links_and_stops(tmp_path):
    server, links = started(tmp_path / "here", "--reader", "Rosalind Franklin")
    try:
        assert set(links) == {"curator", "reader"}
        page = read(links["reader"])
        assert "Welcome, Rosalind Franklin" in page
        with pytest.raises(urllib.error.HTTPError) as closed:
            urllib.request.urlopen(links["reader"].partition("/enter")[0], timeout=30)
        closed.value.close()
        assert closed.value.code == 401
        more = sidelight(
            "studio", tmp_path / "here", "--links", "--approver", "Grace Hopper", "--json", folder=tmp_path
        )
        (link,) = json.loads(more.stdout)
        assert link["role"] == "approver"
        assert "Grace Hopper" in read(link["link"])
    finally:
        server.send_signal(2)
        assert server.wait(30) == 0
        server.stdout.close()
    assert not (tmp_path / "here" / ".studio" / "server.json").exists()


@pytest.mark.slow
def test_it_serves_over_tls(tmp_path):
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
         "-days", "1", "-subj", "/CN=localhost"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    server, links = started(tmp_path / "here", "--tls-cert", str(certificate), "--tls-key", str(key))
    try:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        assert links["curator"].startswith("https://")
        with urllib.request.urlopen(links["curator"], timeout=30, context=trusting) as page:
            assert "max-age" in page.headers["strict-transport-security"]
    finally:
        server.send_signal(2)
        server.wait(30)
        server.stdout.close()
