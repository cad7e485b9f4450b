"""Refuses the private table where it is also given as public data, the commonest slip.

Public data are read without paying, so naming the same table twice would publish it.

PRIVACY: sources are compared, never contents. Whether two files hold the same records is a fact about the
private records that nobody has paid for.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sidelight.data.reading.read import files_of
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.sources import is_postgres, scheme_of, split_address


def refuse_same(private: Any, public: Any) -> None:
    """Refuse public data that are the private table: the same file, object or table of a database."""
    given = public if isinstance(public, list | tuple) else [public]
    own = _sources(private)
    if any(own & _sources(one) for one in given):
        raise SettingError(
            "the private table is given as public data, too. All of it would be read without paying, and the "
            "promise would be empty. Name public data that may be published. Nothing was read."
        )


def _sources(given: Any) -> frozenset[object]:
    """The identities of a source: two descriptions of one source have one in common."""
    if given is None:
        return frozenset()
    if isinstance(given, str | Path):
        text = str(given)
        if is_postgres(text):
            return frozenset([_database_table(text)])
        return frozenset([text]) if scheme_of(text) is not None else _files(text)
    return frozenset([("object", id(given._engine if isinstance(given, Table) else given))])


def _files(text: str) -> frozenset[object]:
    """The files behind a path or a pattern, with links resolved."""
    found = set[object]()
    for path in files_of(text) or [text]:
        try:
            about = os.stat(path)
        except (OSError, ValueError):
            found.add(path)  # "spark:people", or nothing at all, which is told when it is opened
        else:
            found.add((about.st_dev, about.st_ino))
    return frozenset(found)


def _database_table(text: str) -> object:
    """Host, port, database and table of an address; user, password and options are left out."""
    address, table = split_address(text)
    try:
        parts = urlsplit(address)
        said = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        host = said.get("host", parts.hostname or "localhost").lower()
        port = said.get("port", str(parts.port or 5432))
    except ValueError:  # an address that nobody can read is refused when it is opened
        return text
    database = said.get("dbname", unquote(parts.path).strip("/"))
    return "postgresql", host, port, database, unquote(table).removeprefix("public.")
