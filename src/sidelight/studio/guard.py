"""The guard at the door: what every request must show, and what every response carries.

Host      one of the addresses that were declared: another name that leads here (DNS rebinding) is refused
Origin    if a browser names one it must be the same address; a POST must name one, or be said same-origin
size      a body larger than its route allows is refused while it is read
session   by the cookie; roles and form tokens are checked where the route is known (``routes.py``)

No exception leaves this module with its text: libraries quote values, and servers log tracebacks.
"""

import os
import sys
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sidelight._faults import fault_of
from sidelight.studio.people import People
from sidelight.studio.places import Studio

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "sidelight_studio"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-same-origin"
)
"""A report is one file with its style inside. It holds no script, and could run none."""
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: browsers would then send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
MOST_FORM = 2 << 20
"""Most bytes of a form without a file."""


class _TooLargeError(Exception):
    """A body that is larger than its route allows."""


class Guard:
    """Wraps the application; see above."""

    def __init__(self, app: App, studio: Studio, people: People) -> None:
        self._app, self._studio, self._people = app, studio, people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if self._studio.is_secure:
                    headers.setdefault("strict-transport-security", "max-age=31536000")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, told)
            return
        secret = _secret(Headers(scope=scope))
        scope.setdefault("state", {})
        scope["state"] |= {"secret": secret, "person": self._people.of(secret)}
        try:
            await self._app(scope, self._limited(scope, receive), told)
        except Exception as error:  # noqa: BLE001  # PRIVACY: the server would log its text, which may quote data
            # It has been answered by now: see ``unexpected``.
            if os.environ.get("SIDELIGHT_DEBUG"):
                sys.stderr.write("".join(traceback.format_exception(error)))

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        own = next((one for one in self._studio.origins if one.partition("://")[2] == host.lower()), None)
        if own is None:
            return _plain(421, "this studio does not answer to that name. Use the address that it printed.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _plain(405, "this studio knows GET and POST alone.")
        if origin is not None and origin.lower() != own:
            return _plain(403, "this was sent from another page, and is refused.")
        if scope["method"] == "POST" and origin is None and headers.get("sec-fetch-site") != "same-origin":
            return _plain(403, "this was not sent from a page of the studio, and is refused.")
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """The bytes of a request, until they are too many."""
        # The one route that takes files; see routes.py.
        is_upload = scope["path"].endswith("/sources/upload")
        most = (self._studio.upload_mb << 20) + MOST_FORM if is_upload else MOST_FORM
        length = Headers(scope=scope).get("content-length", "0")
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most or not length.isdecimal() or int(length) > most:
                raise _TooLargeError
            return message

        return counted


def unexpected(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in an error which nobody expected."""
    if isinstance(error, _TooLargeError):
        return _plain(413, "that is larger than may be sent here.")
    return _plain(500, fault_of(error).words)


def _secret(headers: Headers) -> str | None:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _plain(status: int, words: str) -> PlainTextResponse:
    return PlainTextResponse(f"{words[0].upper()}{words[1:]}\n", status_code=status)
