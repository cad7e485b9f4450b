"""``sidelight studio``: all of it as a local web page."""

import contextlib
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli._shared import Json, Quiet, talk, tell, tell_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelight.studio.people import Role


def studio(
    folder: Annotated[
        Path, typer.Argument(help="Folder of projects; each project is a folder in it.")
    ] = Path("."),
    name: Annotated[
        str | None, typer.Option(help="Your name, which the ledger records. Default: your user's name.")
    ] = None,
    approver: Annotated[
        list[str] | None, typer.Option(help="Also print a link for somebody who approves plans. Repeatable.")
    ] = None,
    reader: Annotated[
        list[str] | None, typer.Option(help="Also print a link for somebody who sees releases. Repeatable.")
    ] = None,
    links: Annotated[
        bool,
        typer.Option("--links", help="Print new links for the studio that serves this folder now, and stop."),
    ] = False,
    two_people: Annotated[
        bool, typer.Option("--two-people", help="Every plan must be approved by a second person.")
    ] = False,
    tables: Annotated[
        list[Path] | None,
        typer.Option(help="Another folder whose tables may be named as sources. Repeatable."),
    ] = None,
    upload_mb: Annotated[int, typer.Option(min=1, help="Largest public table to upload, in MB.")] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; a free one if it is taken.")] = 8765,
    host: Annotated[str, typer.Option(help="Where to listen; this machine alone by default.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in; needs --origin, and TLS.")
    ] = False,
    origin: Annotated[
        str | None, typer.Option(help="The https:// address that people type, with --allow-remote.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate file (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key file of the certificate (PEM).")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy at --origin provides TLS; this studio does not.")
    ] = False,
    browser: Annotated[bool, typer.Option(help="Open the link in a browser, where there is one.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Serve a local web page, from choosing tables to exploring a release.

    Example: sidelight studio my-projects --name "Ada Lovelace" --approver "Grace Hopper"

    Each link lets one person in, once; a visit lasts twelve hours. The studio listens on this machine alone
    unless --host and --allow-remote say otherwise. A release goes on if the studio is stopped: start it again
    with the same command, and it is found.
    """
    from sidelight._extras import need

    for module in ("starlette", "uvicorn", "python_multipart"):
        need(module, "for the studio")
    from sidelight.errors import InputError, SettingError
    from sidelight.privacy.approval import check_name
    from sidelight.studio import server
    from sidelight.studio.people import People, Role
    from sidelight.studio.places import OWN, Studio

    own_name = name if name is not None else _user()
    own: tuple[Role, str] = ("curator", own_name)
    invited: list[tuple[Role, str]] = [("approver", one) for one in approver or []]
    invited += [("reader", one) for one in reader or []]
    for _, one in (own, *invited):
        check_name(one)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is no folder; name one that holds projects, or a new one.")
    if (tls_cert is None) != (tls_key is None):
        raise SettingError("--tls-cert and --tls-key belong together: give both, or neither.")
    for path in tables or []:
        if not path.is_dir():
            raise InputError(f"--tables {path} is no folder.")
    listening = server.Listening(
        host=host, port=port, allow_remote=allow_remote, origin=origin, behind_proxy=behind_proxy,
        tls=None if tls_cert is None or tls_key is None else (tls_cert, tls_key),
    )  # fmt: skip
    listening.check()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if links:
        where = server.running_at(folder)
        if where is None:
            raise InputError(f"no studio serves {folder} now. Start one: sidelight studio {folder}")
        _say(server.links(People(folder / OWN), where, invited or [own]), as_json=as_json)
        return
    bound = listening.bound()
    origins = listening.origins(bound.getsockname()[1])
    served = Studio(
        root=folder.resolve(), origins=origins, tables=tuple(path.resolve() for path in tables or []),
        upload_mb=upload_mb, two_people=two_people,
    )  # fmt: skip
    made = server.links(People(served.own), origins[0], [own, *invited])
    _say(made, as_json=as_json)
    if not quiet and not as_json:
        talk("Each link opens the door once. Ctrl-C stops the studio; releases under way go on.")
        if behind_proxy:
            talk(f"TLS must be provided by the proxy at {origins[0]}; this studio speaks plain HTTP to it.")
    if browser:
        _open(made[0][2])
    server.serve(served, listening, bound)
    if not quiet and not as_json:
        talk("the studio has stopped. What is under way goes on, and is found when you start it again.")


def _say(made: "Sequence[tuple[Role, str, str]]", *, as_json: bool) -> None:
    if as_json:
        tell_json([{"role": role, "name": name, "link": link} for role, name, link in made])
        return
    for role, name, link in made:
        tell(f"{role:<9} {name}: {link}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "curator"


def _open(link: str) -> None:
    """Open the link where somebody sits before a screen; say nothing where nobody does."""
    import os
    import sys
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(link)
