"""ASGI middleware before any application: the key decides the account, and its meters the reply.

Every request needs a key, but for some open paths. One line of the log and three metrics are kept
of each; neither holds a query or an answer.
"""

from __future__ import annotations

import logging
import math
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

from prometheus_client import Counter, Histogram
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from ragwitness.core.errors import InputError
from ragwitness.rag.protocol import ApiError
from ragwitness.service.meters import SpentError
from ragwitness.service.principals import Principal, confirm, key_owners, split_key
from ragwitness.service.store import SharedReads, Store, StoreGoneError

_log = logging.getLogger(__name__)

_REQUESTS = Counter("ragwitness_requests", "Replies, by tenant and status.", ["tenant", "status"])
_REFUSED = Counter("ragwitness_refused", "Queries that a meter refused.", ["tenant", "meter"])
_SECONDS = Histogram("ragwitness_request_seconds", "Time of a reply.", ["tenant"])

_principal: ContextVar[Principal] = ContextVar("ragwitness principal")

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]


def current_principal() -> Principal:
    """Return the account whose request is being answered.

    Raises:
        InputError: No request is.
    """
    try:
        return _principal.get()
    except LookupError:
        raise InputError(
            "No account is known here.", "Put KeyedAccounts before the application."
        ) from None


class KeyedAccounts:
    """Admits requests with a key of an account, and answers for meters that are spent.

    ``app.add_middleware(KeyedAccounts, store=store)`` for Starlette and FastAPI;
    ``KeyedAccounts(app, store=store)`` for any ASGI application that lets
    :class:`~ragwitness.service.meters.SpentError` pass.

    Args:
        app: The application.
        store: The database of the accounts.
        open_paths: Paths that need no key.
    """

    def __init__(self, app: Any, store: Store, open_paths: Collection[str] = ()) -> None:
        self._app, self._open = app, frozenset(open_paths)
        self._keys = SharedReads(partial(key_owners, store))

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":  # it would pass without a key
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Any, receive: _Receive, send: _Send) -> None:
        # The operator finds a request by this number; it tells a client nothing.
        began, number, status, tenant = time.perf_counter(), uuid.uuid4().hex, 0, ""
        fields: dict[str, object] = {"request": number, "path": scope["path"]}

        async def sending(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # A reply that a proxy kept would be repeated outside the meters.
                more = [(b"x-request-id", number.encode()), (b"cache-control", b"no-store")]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            if scope["path"] not in self._open:
                principal = await self._who(Headers(scope=scope))
                tenant = principal.tenant_name
                fields |= {"tenant": tenant, "account": principal.account_name}
                _principal.set(principal)
            await self._app(scope, receive, sending)
        except Exception as error:
            if status:  # a reply has begun; there is no other
                raise
            reply = reply_to(error)
            if isinstance(error, SpentError):
                fields["refused_by"] = error.by
                _REFUSED.labels(tenant, error.by).inc()
            elif reply.status_code >= 500:
                fields["cause"] = place_of(error)
            if isinstance(error, StoreGoneError):  # its words hold no statement and no value
                fields["reason"] = error.message
            await reply(scope, receive, sending)
        seconds = time.perf_counter() - began
        _REQUESTS.labels(tenant, status).inc()
        _SECONDS.labels(tenant).observe(seconds)
        fields |= {"status": status, "ms": round(1000 * seconds, 1)}
        _log.info("request", extra={"fields": fields})

    async def _who(self, headers: Headers) -> Principal:
        """Return who asks; nothing else of a request is believed."""
        keys = headers.getlist("authorization")
        key_id, secret = split_key(keys[0] if len(keys) == 1 else None)  # two keys are none
        # Read anew for each request, though many share a read: a revoked key ends at once.
        principal = confirm(secret, (await self._keys.of([key_id])).get(key_id))
        if principal is None:
            raise _unauthorized()
        return principal


def place_of(error: BaseException) -> str:
    """Return type and place of an exception, without its message, which may quote a query."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def reply_to(error: Exception) -> Response:
    """Return the reply to a failure, in the form of OpenAI's protocol."""
    headers = {}
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)
    if isinstance(error, ApiError):
        reply = error
    elif isinstance(error, SpentError) and error.by == "key":
        # A key that was revoked meanwhile gets the words of a key that never was.
        reply = _unauthorized()
    elif isinstance(error, SpentError):  # the words are the same for each meter
        message = "No query is left in this window."
        reply = ApiError(message, status=429, kind="rate_limit_error", code="budget_spent")
        headers["Retry-After"] = str(max(1, math.ceil(error.seconds_left)))
    elif isinstance(error, StoreGoneError):  # what was reserved stays spent
        message = "The service cannot reach its database."
        reply = ApiError(message, status=503, kind="server_error", code="unavailable")
    else:
        # Every other failure is ours and gets one reply: an exception's text may quote a document.
        message = "The server had an error while processing your request."
        reply = ApiError(message, status=500, kind="server_error")
    return JSONResponse(reply.body, reply.status, headers)


def _unauthorized() -> ApiError:
    """Return the refusal of a missing, malformed, unknown, wrong or revoked key."""
    return ApiError("Incorrect API key provided.", status=401, code="invalid_api_key")
