"""Access to the pages, and the headers of their replies.

Run folders hold documents and answers, and a run spends money. A browser needs the printed address:
its token works once and is exchanged for a cookie. On the loopback the Host header must name the
loopback: another site could point a name of its own at this machine (DNS rebinding). Every change
is a POST from these pages: its Origin is theirs, and it holds a value that only their forms hold.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwitness.core.server import is_loopback

_COOKIE = "ragwitness"
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d*)?")
_TOKEN = "token"  # noqa: S105  # the parameter's name
_READS = ("GET", "HEAD")

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # To pages of ours alone; with none at all, browsers would hide where a form came from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every reply, errors included: no script at all, nothing from elsewhere."""

LIVE_POLICY = f"{_POLICY}; script-src 'self'; connect-src 'self'"
"""For the page of a run under way: one script, which asks for its progress."""


class Access:
    """Decides about requests.

    Args:
        token: The token of the printed address, good for one browser; None admits every request
            with a good Host header.
        cookie: Name of the cookie; browsers share cookies among ports.
        loopback: Whether only names of the loopback are answered.
    """

    def __init__(
        self, token: str | None = None, cookie: str = _COOKIE, *, loopback: bool = True
    ) -> None:
        self.cookie, self.loopback = cookie, loopback
        self.session = secrets.token_urlsafe(32)
        self._closed, self._token, self._lock = token is not None, token, Lock()

    @property
    def form_key(self) -> str:
        """The value in every form of these pages, which no other site can know."""
        return hmac.new(self.session.encode(), b"form", hashlib.sha256).hexdigest()

    def admits(self, headers: Headers) -> bool:
        """Whether a request carries the cookie, where one is needed."""
        if not self._closed:
            return True
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(self.cookie)
        return cookie is not None and _same(cookie.value, self.session)

    def redeem(self, given: str) -> bool:
        """Whether this is the token, and used for the first time; it is used up by that."""
        with self._lock:
            if self._token is None or not _same(given, self._token):
                return False
            self._token = None
            return True


class Guard:
    """ASGI layer outside everything else: admits requests and sets the headers of replies.

    Args:
        app: The guarded application.
        access: Decides about each request.
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
                    # The one page with a script of ours says so itself.
                    if headers.get(name) != LIVE_POLICY:
                        headers[name] = value
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the refusal of a request; None lets it pass."""
        # Check 1, against DNS rebinding: on the loopback only its own names are answered.
        headers = Headers(scope=scope)
        if self._access.loopback and not _names_loopback(headers.get("host", "")):
            return PlainTextResponse(
                "These pages are for this machine alone, under the address that `ragwitness view`"
                " printed. They were opened through another host name, so nothing is shown.",
                421,
            )
        # Check 2, the token: in the address it is exchanged for a cookie at once, so that it does
        # not stay in the history or in a referrer.
        query = parse_qs(scope["query_string"].decode("latin-1"))
        token = query.pop(_TOKEN, [""])[-1]
        reads = scope["method"] in _READS
        if token and reads:
            rest = urlencode(query, doseq=True)
            # One slash: two would name another host.
            address = "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else "")
            # A browser with the cookie may open the printed address again.
            if self._access.admits(headers):
                return RedirectResponse(address, 303)
            if self._access.redeem(token):
                return self._remember(address)
        # Check 3, the cookie.
        if not self._access.admits(headers):
            used = "This address works once, for one browser, and that was used. " if token else ""
            return PlainTextResponse(
                f"{used}Open the address that `ragwitness view` printed: it holds a token. For"
                " another browser, start the command again.",
                401,
            )
        # Check 4: every change comes from these pages.
        if not reads and not _from_here(headers):
            return PlainTextResponse(
                "This form was sent by a page of another site. Nothing was done.", 403
            )
        return None

    def _remember(self, address: str) -> Response:
        """Keep the session in a cookie and take the token out of the address.

        It is a page that goes on, and no redirect: after a click in another site's page, browsers
        leave strict cookies out all along a redirect.
        """
        target = html.escape(address)
        reply = HTMLResponse(
            f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Ragwitness</title>'
            f'<link rel="icon" href="/icon.svg" type="image/svg+xml">'
            f'<meta http-equiv="refresh" content="0; url={target}"><p><a href="{target}">Go on</a>'
        )
        reply.set_cookie(
            self._access.cookie, self._access.session, httponly=True, samesite="strict"
        )
        return reply


def _from_here(headers: Headers) -> bool:
    """Whether a browser says that a request comes from these pages."""
    origin = headers.get("origin", "null")
    if origin == "null":
        return headers.get("sec-fetch-site") == "same-origin"
    return origin.partition("://")[2].lower() == headers.get("host", "").lower() != ""


def _same(given: str, wanted: str) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _names_loopback(host: str) -> bool:
    """Whether a Host header names this machine; the port may be a tunnel's."""
    match = _HOST.fullmatch(host)
    return match is not None and is_loopback((match[1] or match[2]).lower())
