"""The server: the application, where it listens, and which addresses it answers to."""

import contextlib
import ipaddress
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sidelight.errors import InputError, SettingError
from sidelight.studio import routes, store
from sidelight.studio.answers import open_latest
from sidelight.studio.guard import COOKIE, App, Guard, unexpected
from sidelight.studio.people import MEANS, People, Role
from sidelight.studio.places import OWN, Studio
from sidelight.studio.process import Process
from sidelight.studio.visit import templates

_FILES = {
    "report.css": ("sidelight.reports", "templates/report.css", "text/css"),
    "studio.css": ("sidelight.studio", "static/studio.css", "text/css"),
    "studio.js": ("sidelight.studio", "static/studio.js", "text/javascript"),
    "icon.svg": ("sidelight.studio", "static/icon.svg", "image/svg+xml"),
}
"""All that is served from the package; nothing else has an address."""


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where the studio listens, and how people reach it."""

    host: str = "127.0.0.1"
    port: int = 8765
    allow_remote: bool = False
    origin: str | None = None
    """The address that people type, where it is not this machine's own."""
    tls: tuple[Path, Path] | None = None
    """Certificate and key."""
    behind_proxy: bool = False
    """Whether a proxy in front of it provides TLS at ``origin``."""

    def check(self) -> None:
        """Refuse to be reached from elsewhere by accident, or without TLS."""
        is_local = _is_loopback(self.host)
        if not is_local and not self.allow_remote:
            raise SettingError(
                f"--host {self.host} can be reached from other machines. If that is meant, add "
                "--allow-remote, --origin https://… and either --tls-cert and --tls-key or --behind-proxy."
            )
        if self.behind_proxy and self.origin is None:
            raise SettingError("--behind-proxy needs --origin: the https:// address that people type.")
        if not is_local and not (self.tls or self.behind_proxy):
            raise SettingError(
                "other machines must reach the studio over TLS: give --tls-cert and --tls-key, or say with "
                "--behind-proxy that a proxy in front of it provides TLS."
            )
        if not is_local and self.origin is None:
            raise SettingError("--allow-remote needs --origin: the https:// address that people type.")
        if self.origin is not None:
            said = urlsplit(self.origin)
            if said.scheme != "https" or not said.hostname or said.path.strip("/") or said.query:
                raise SettingError(
                    f"--origin must look like https://studio.example.org; got {self.origin!r}."
                )
            if not (self.tls or self.behind_proxy):
                raise SettingError("--origin needs --tls-cert and --tls-key, or --behind-proxy.")
        for path in self.tls or ():
            if not path.is_file():
                raise InputError(f"there is no file {path} for TLS.")

    def origins(self, port: int) -> tuple[str, ...]:
        """The addresses that are answered, by the port that was got."""
        if self.origin is not None:
            said = urlsplit(self.origin.lower())
            return (f"https://{said.netloc}",)
        scheme = "https" if self.tls else "http"
        return tuple(f"{scheme}://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    def bound(self) -> socket.socket:
        """A socket at the port that was asked for; at any free one if somebody else has it."""
        kind = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        for port in (self.port, 0):
            listening = socket.socket(kind)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listening.bind((self.host, port))
            except OSError as error:
                listening.close()
                if port == 0 or self.origin is not None:
                    raise InputError(f"nobody can listen at {self.host}:{port}: {error.strerror}.") from error
            else:
                listening.listen(128)  # whoever follows the link at once waits, and is not turned away
                return listening
        raise AssertionError("a port was bound, or an error raised")


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A server that is running, as its folder's ``server.json`` says it."""

    process: Process
    origin: str


class _WithoutPandas(MetaPathFinder):
    """Arrow imports pandas wherever it is installed, to see whether a value is its; in a studio none is.

    That would take 40 MB. Workers are other processes, and import what they need.
    """

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ImportError("the studio's server does without pandas")


def application(studio: Studio) -> App:
    """The studio as an ASGI application."""
    people = People(studio.own)
    people.tidy()

    async def enter(request: Request) -> Response:
        if request.method == "POST":
            form = await request.form(max_files=0, max_fields=5)
            secret = people.enter(str(form.get("link", "")))
            if secret is None:
                return routes.stranger()
            response = routes.to("/")
            response.set_cookie(
                COOKIE, secret, httponly=True, samesite="strict", secure=studio.is_secure, path="/"
            )
            return response
        token = request.query_params.get("link", "")
        person = people.invited(token)
        if person is None:
            return routes.stranger()
        template = templates().get_template("enter.html.j2")
        return HTMLResponse(template.render(person=person, means=MEANS[person.role], link=token))

    app = Starlette(
        routes=[
            Route("/enter", enter, methods=["GET", "POST"]),
            Route("/static/{name}", _static, methods=["GET"]),
            *routes.routes(studio),
        ],
        exception_handlers={404: _lost, 405: _lost, Exception: unexpected},
    )
    return Guard(app, studio, people)


async def _static(request: Request) -> Response:
    found = _FILES.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    package, path, kind = found
    # A page names its style sheet by content, so a browser may keep it.
    return Response(
        _content(package, path), media_type=kind, headers={"cache-control": "public, max-age=3600"}
    )


def _lost(request: Request, error: Exception) -> Response:
    if request.state.person is None:
        return routes.stranger()
    status = error.status_code if isinstance(error, HTTPException) else 404
    return routes.problem(status, "There is no such page", "Its address is misspelt, or it was removed.")


def serve(studio: Studio, listening: Listening, bound: socket.socket) -> None:
    """Answer until Ctrl-C."""
    sys.meta_path.insert(0, _WithoutPandas())
    own = studio.own / "server.json"
    store.write(own, Serving(process=Process.own(), origin=studio.origins[0]))
    certificate, key = listening.tls or (None, None)
    config = uvicorn.Config(
        application(studio),
        log_level="error",
        access_log=False,  # addresses hold tokens and what people ask about
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=200,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
    )
    threading.Thread(target=open_latest, args=(studio,), daemon=True).start()
    try:
        # Ctrl-C is how a studio ends: uvicorn answers what it has, and then raises it again.
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])
    finally:
        own.unlink(missing_ok=True)


def running_at(studio_folder: Path) -> str | None:
    """The address of a studio that serves this folder now; None where none does."""
    found = store.read(Serving, studio_folder / OWN / "server.json")
    return found.origin if found is not None and found.process.is_alive else None


@cache
def _content(package: str, path: str) -> bytes:
    return files(package).joinpath(path).read_bytes()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def links(people: People, origin: str, invited: Sequence[tuple[Role, str]]) -> list[tuple[Role, str, str]]:
    """A link for each person: role, name and address."""
    return [(role, name, f"{origin}/enter?link={people.invite(role, name)}") for role, name in invited]
