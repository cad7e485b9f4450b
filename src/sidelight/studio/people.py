"""Who may enter, and as what: links with one-time tokens, and the sessions that they become.

A link is handed out in the terminal, for a name and a role. Using it once makes a session of it, whose secret
lives in the browser's cookie. Files hold hashes of tokens and secrets alone.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from sidelight.errors import InputError
from sidelight.privacy.approval import check_name
from sidelight.studio import store

Role = Literal["curator", "approver", "reader"]
ROLES: tuple[Role, ...] = get_args(Role)
MEANS: dict[Role, str] = {
    "curator": "prepares, plans and releases",
    "approver": "sees a plan and approves it",
    "reader": "sees finished releases",
}
"""The task of each role, in words."""
_LINK_LASTS = 24 * 3600
_SESSION_LASTS = 12 * 3600


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who may enter, until some moment."""

    role: Role
    name: str
    until: float
    """Seconds since 1970."""


class People:
    """The links and sessions of a studio's folder."""

    def __init__(self, folder: Path) -> None:
        store.private_folder(folder)
        self._links = store.private_folder(folder / "links")
        self._sessions = store.private_folder(folder / "sessions")

    def invite(self, role: Role, name: str) -> str:
        """The token of a new link, which lets this person in once."""
        check_name(name)
        token = secrets.token_urlsafe(32)
        person = Person(role=role, name=name, until=time.time() + _LINK_LASTS)
        store.write(self._links / f"{_hash(token)}.json", person)
        return token

    def invited(self, token: str) -> Person | None:
        """Whom a link is for; None if it was used, is too old, or never was."""
        return _valid(self._links / f"{_hash(token)}.json")

    def enter(self, token: str) -> str | None:
        """The secret of a new session in exchange for a link; None where that is none, or was used."""
        person, link = self.invited(token), self._links / f"{_hash(token)}.json"
        # Whoever moves the file away has used the link; a second one finds nothing.
        if person is None or not store.take(link, link.with_suffix(".used")):
            return None
        secret = secrets.token_urlsafe(32)
        session = Person(role=person.role, name=person.name, until=time.time() + _SESSION_LASTS)
        store.write(self._sessions / f"{_hash(secret)}.json", session)
        return secret

    def of(self, secret: str | None) -> Person | None:
        """Who holds this session; None if nobody does any more."""
        return None if not secret else _valid(self._sessions / f"{_hash(secret)}.json")

    def leave(self, secret: str) -> None:
        """End a session."""
        (self._sessions / f"{_hash(secret)}.json").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what nobody can use any more."""
        for folder in (self._links, self._sessions):
            for path in (*folder.glob("*.used"), *folder.glob("*.json")):
                # Others write here at the same time: what is not finished yet has another name.
                if not path.name.startswith(".") and (path.suffix == ".used" or _valid(path) is None):
                    path.unlink(missing_ok=True)


def form_token(secret: str) -> str:
    """The token in every form of a session, so that no other page can send one in its name."""
    return hmac.new(secret.encode(), b"sidelight studio form", hashlib.sha256).hexdigest()


def is_form_token(secret: str, given: str) -> bool:
    """Whether a form carries its session's token."""
    return hmac.compare_digest(form_token(secret).encode(), given.encode("utf-8", "replace"))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _valid(path: Path) -> Person | None:
    try:
        person = store.read(Person, path)
    except InputError:  # somebody edited it: nobody enters by it
        return None
    return person if person is not None and person.until > time.time() else None
