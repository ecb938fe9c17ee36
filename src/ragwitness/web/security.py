"""Who may read the pages, and what a browser may do with them.

Run folders hold documents and answers. On the loopback a page of another site must not read them
through a name that it points at this machine (DNS rebinding), so the Host header must name the
loopback. Elsewhere whoever reads needs the token that was printed.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwitness.kit.server import is_loopback

_COOKIE = "ragwitness"
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d*)?")
_TOKEN = "token"  # noqa: S105  # the parameter's name

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every reply, errors included: no script at all, nothing from elsewhere."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read.

    Attributes:
        token: What a reader must know; None admits the loopback's own readers alone.
        cookie: Name of the cookie that remembers it; browsers share cookies among ports.
    """

    token: str | None = None
    cookie: str = _COOKIE

    def admits(self, headers: Headers) -> bool:
        """Whether a request carries the token, where one is needed."""
        if self.token is None:
            return True
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self.cookie)
        return found is not None and self.matches(found.value)

    def matches(self, given: str) -> bool:
        """Compare with the token in a time that does not depend on where they differ."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


class Guard:
    """ASGI layer outside everything else: admits requests and sets the headers of replies.

    Args:
        app: What is guarded.
        access: Who may read.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # No websockets and no lifespan: pages alone are served.
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return what is said instead of a page; None lets the request pass."""
        # Check 1, against DNS rebinding: without a token only names of the loopback are answered.
        headers = Headers(scope=scope)
        if self._access.token is None and not _names_loopback(headers.get("host", "")):
            return PlainTextResponse("This address serves the loopback only.", 421)
        # Check 2, the token: in the address it is exchanged for a cookie at once, so that it does
        # not stay in the history or in a referrer.
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.pop(_TOKEN, [""])[-1]
        if given and self._access.matches(given):
            return self._remember(scope["path"], query)
        # Check 3, the cookie.
        if self._access.admits(headers):
            return None
        return PlainTextResponse(
            "Open the address that `ragwitness view` printed: it holds the token.", 401
        )

    def _remember(self, path: str, query: dict[str, list[str]]) -> Response:
        """Keep the token in a cookie and take it out of the address."""
        rest = urlencode(query, doseq=True)
        # One slash: two would name another host.
        address = "/" + path.lstrip("/\\") + (f"?{rest}" if rest else "")
        reply = RedirectResponse(address, 303)
        reply.set_cookie(
            self._access.cookie, self._access.token or "", httponly=True, samesite="strict"
        )
        return reply


def _names_loopback(host: str) -> bool:
    """Whether a Host header names this machine; the port may be a tunnel's."""
    found = _HOST.fullmatch(host)
    return found is not None and is_loopback((found[1] or found[2]).lower())
