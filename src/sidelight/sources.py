"""The names by which messages call a source: a file, a table of a database, a ledger.

PRIVACY: an address can hold a password in many places: before the host, among the parameters,
percent-encoded, or beyond a character that somebody forgot to encode. So nothing is taken out of an
address. What is said of one is put together anew, out of its scheme, its database and its fragment,
each only if it looks like a name. Messages, cards, reports and ledgers name a source by these functions
alone, and a database's own message, which may quote an address or a value, is replaced by ours.
"""

import os
import re
from pathlib import PurePath
from urllib.parse import unquote

# A Path makes one slash of two. Windows has drives of one letter.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)(.*)", re.DOTALL)
_NAME = re.compile(r"[\w$-]+(?:[ .][\w$-]+)*")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_SECRET = re.compile(r"(?i)(?:password|passwd|pwd|passfile)\s*(?:=|%3d)")
_LOGIN = re.compile(r":[^@\s]*@")
"""The password in an address, between user and host."""
_PATH = re.compile(r"/(?!/)|[.]{1,2}/|~|[A-Za-z]:[/\\]")
"""How a path begins, and no address does."""
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^\s'\"]+")
_WORD = re.compile(r"(?i)\b(user|\w*password|passwd|pwd|passfile|options|host|hostaddr)\s*=\s*[^\s'\"]+")
_UNNAMED = "a database"


def scheme_of(text: str) -> str | None:
    """The scheme of an address, in small letters; None of a path.

    >>> scheme_of("postgresql://host/db#people"), scheme_of("data/people.csv"), scheme_of("C:/people.csv")
    ('postgresql', None, None)
    """
    found = _ADDRESS.fullmatch(text)
    return None if found is None or os.path.exists(text) else found[1].lower()


def is_postgres(text: str) -> bool:
    """Whether this is the address of a PostgreSQL database."""
    return scheme_of(text) in _POSTGRES


def split_address(text: str) -> tuple[str, str]:
    """The address without its fragment, and the fragment, which names a table or a ledger."""
    address, _, fragment = text.partition("#")
    return address, fragment


def source_name(source: str | os.PathLike[str]) -> str:
    """A source, for people: a path as it is given; a database by its name and its table, no more.

    >>> source_name("data/people.csv"), source_name("spark:survey.people")
    ('data/people.csv', 'spark:survey.people')
    >>> source_name("postgresql://bob:4711@host:5432/survey?password=4711#people")
    'postgresql: survey#people'
    >>> source_name("mysql://bob:4711@host/survey")
    'mysql://…'
    >>> source_name("host=db user=bob password=4711"), source_name("bob:4711@host/survey")
    ('a database', 'a database')
    """
    text = os.fspath(source)
    scheme = scheme_of(text)
    if scheme is None:
        return _UNNAMED if _holds_secret(text) else text
    database, fragment = _parts(text)
    named = database + (f"#{fragment}" if fragment else "")
    is_known = scheme in _POSTGRES or scheme.startswith("sqlite")
    return f"{scheme}: {named}" if named and is_known else f"{scheme}://…"


def has_password(text: str) -> bool:
    """Whether an address holds a password, which belongs into a password file instead.

    >>> has_password("postgresql://bob@host/survey#people"), has_password("postgresql://bob:4711@host/survey")
    (False, True)
    """
    found = _ADDRESS.fullmatch(text)
    login = "" if found is None else found[3].rpartition("@")[0].partition("/")[0]
    return bool(_SECRET.search(text)) or ":" in login


def ledger_name(where: str | os.PathLike[str]) -> str:
    """The name of a ledger unless somebody gives one: its fragment, its database, or its file's stem.

    >>> ledger_name("data/people.ledger"), ledger_name("postgresql://bob:4711@host/office?password=4711#people")
    ('people', 'people')
    """
    text = os.fspath(where)
    scheme = scheme_of(text)
    if scheme is None:
        return shown_name(PurePath(text).stem)
    database, fragment = _parts(text)
    return fragment or PurePath(database).stem or scheme


def shown_name(name: str) -> str:
    """A name that somebody gave, or that an older version took from an address, as it may be shown.

    >>> shown_name("people"), shown_name("db?user=bob&password=4711#people"), shown_name("bob:4711@host")
    ('people', 'db#people', 'a database')
    """
    if scheme_of(name) is not None:
        return source_name(name)
    if _LOGIN.search(name):
        return _UNNAMED
    if re.search(r"[?&][\w%]+=", name):
        address, fragment = split_address(name)
        named = [_if_name(address.partition("?")[0]), _if_name(fragment)]
        return "#".join(part for part in named if part) or _UNNAMED
    return _UNNAMED if _holds_secret(name) else name


def without_addresses(text: str) -> str:
    """A sentence in which every address is replaced by its name.

    >>> without_addresses("there is no file 'postgresql:/bob:4711@host/db#people'.")
    "there is no file 'postgresql: db#people'."
    """

    def named(found: re.Match[str]) -> str:
        is_known = "://…" in found[0] or re.fullmatch("(?i)https?:[^@?&=]*", found[0])  # ours, or a page
        return found[0] if is_known else source_name(found[0])

    said = _IN_TEXT.sub(named, text)
    return _WORD.sub(r"\1=…", said) if _SECRET.search(said) else said


def failure(sqlstate: str | None) -> str:
    """What went wrong in a database, by the code of its error (PostgreSQL, appendix A).

    >>> failure("42501")
    'this role lacks the right'
    """
    for code in (sqlstate or "", (sqlstate or "")[:2]):
        if code in _FAILURES:
            return _FAILURES[code]
    return _UNREACHED if sqlstate is None else "it failed"


_UNREACHED = "it cannot be reached, or refuses this user; check the address, and whether it runs"
_FAILURES = {
    "08": "the connection was lost, or could not be made",
    "28": "it refuses this user or password",
    "3D": "there is no such database",
    "25006": "it is read-only here",
    "42501": "this role lacks the right",
    "42P01": "there is no such table",
    "42P07": "that table is there already",
    "3F": "there is no such schema",
    "22": "it holds a value that cannot be read",
    "40": "others were writing at the same time; try again",
    "53": "it lacks room, memory or connections",
    "55": "it is locked by somebody else",
    "57": "it was stopped, or cancelled the statement",
    "42": "its tables are not what they should be",
    "P0": "its own rules forbid that",
}


def _parts(text: str) -> tuple[str, str]:
    """The database and the fragment of an address, each empty unless it looks like a name."""
    found = _ADDRESS.fullmatch(text)
    assert found is not None
    address, fragment = split_address(found[3])
    host, _, rest = address.partition("/")
    path = rest.partition("?")[0]
    if found[1].lower().startswith("sqlite"):
        path = path.rpartition("/")[2]
    # PRIVACY: an @ beyond the host, or a ? in it, means that a password holds such characters as they are.
    is_plain = not ("@" in rest or "@" in fragment or "?" in host)
    return _if_name(unquote(path)) if is_plain else "", _if_name(unquote(fragment))


def _if_name(text: str) -> str:
    return text if len(text) <= 128 and _NAME.fullmatch(text) else ""


def _holds_secret(text: str) -> bool:
    is_login = _LOGIN.search(text) and not _PATH.match(text)
    return bool(_SECRET.search(text) or is_login) and not os.path.exists(text)
