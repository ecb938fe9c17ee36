"""The service over HTTP: deny by default, the tenant from the key, equal refusals."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ragwitness.errors import TargetError
from ragwitness.rag.pipeline import QueryTooLongError
from ragwitness.rag.replies import chat_reply, chat_stream
from ragwitness.rag.requests import ApiError, parse_request
from ragwitness.service import logs
from ragwitness.service.answering import Generator
from ragwitness.service.attested import no_log
from ragwitness.service.indexes import texts_of
from ragwitness.service.limits import SpentRefusal, limit_headers, unauthorized, unavailable
from ragwitness.service.principals import Principal, authenticate, read_meters
from ragwitness.service.requests import RetrievalBody, ServiceChat
from ragwitness.service.retrieving import Query, Retrieved, Retriever, SpentError
from ragwitness.service.store import Store, StoreGoneError

__all__ = ["LARGEST_BODY", "MODEL_NAME", "create_app"]

MODEL_NAME = "rag"
LARGEST_BODY = 256 * 1024
"""Bytes of a request."""

_SLOWEST_BODY = 30  # seconds
_CREATED = 0  # the one model is as old as the protocol's field allows: it tells nothing

_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class _Service:
    """Handlers over one database."""

    def __init__(self, store: Store, generator: Generator, retriever: Retriever) -> None:
        self._store = store
        self._generator = generator
        self._retriever = retriever

    async def health(self, _request: Request) -> Response:
        await asyncio.to_thread(self._store.check)
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        await self._principal(request)
        model = {"id": MODEL_NAME, "object": "model", "created": _CREATED, "owned_by": "rag"}
        return JSONResponse({"object": "list", "data": [model]})

    async def usage(self, request: Request) -> Response:
        principal = await self._principal(request)
        window, left = self._retriever.window(principal)
        claim = principal.policy.claim
        reading = await asyncio.to_thread(read_meters, self._store, principal, window)
        limits = {"account": claim.queries, "payer": claim.payer_queries or 0}
        used = {"account": reading.account, "payer": reading.payer}
        meters = {
            name: {"limit": limit, "used": used[name], "left": max(0, limit - used[name])}
            for name, limit in limits.items()
        }
        body = {
            "object": "usage",
            "window": window,
            "seconds_left": left,
            "meters": meters,
            "promise": {"epsilon": claim.epsilon, "delta": claim.delta},
        }
        return JSONResponse(body, headers=limit_headers(claim, reading, left))

    async def retrieval(self, request: Request) -> Response:
        principal = await self._principal(request)
        body = parse_request(RetrievalBody, await _read_json(request))
        what = body.query if body.query is not None else body.vector
        found = await self._retrieve(principal, Query(what or "", body.nonce, body.checkpoint))
        reply = {
            "object": "retrieval",
            "ids": list(found.slots),
            "window": found.window,
            "sequence": found.sequence,
            **_receipt(found),
        }
        return JSONResponse(reply, headers=_limits(principal, found))

    async def chat(self, request: Request) -> Response:
        principal = await self._principal(request)
        asked = parse_request(ServiceChat, await _read_json(request))
        if asked.model not in (None, MODEL_NAME):
            raise ApiError(
                "That model does not exist.", status=404, param="model", code="model_not_found"
            )
        query = asked.query()
        await self._generator.check(query)
        found = await self._retrieve(principal, Query(query.prompt, asked.nonce, asked.checkpoint))
        texts = await asyncio.to_thread(texts_of, self._store, principal.tenant, found.slots)
        answer = await self._generator.answer(query, texts, asked.stops)
        headers = _limits(principal, found)
        if asked.stream:
            events: Iterator[str] = chat_stream(
                answer, MODEL_NAME, 0, usage=asked.wants_usage, more=_receipt(found)
            )
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        reply = chat_reply(answer, MODEL_NAME, 0) | _receipt(found)
        return JSONResponse(reply, headers=headers)

    async def checkpoint(self, request: Request) -> Response:
        principal = await self._principal(request)
        log = self._retriever.log(principal)
        if log is None:
            raise ApiError("Answers of this tenant stand in no log.", status=404, code="no_log")
        named, note = await log.checkpoint(principal)
        return JSONResponse({"object": "checkpoint", "checkpoint": named, "note": note})

    async def _principal(self, request: Request) -> Principal:
        """Return who asks; whatever else the request claims is refused or not looked at."""
        header = request.headers.get("authorization")
        principal = await asyncio.to_thread(authenticate, self._store, header)
        if principal is None:
            raise unauthorized()
        request.scope["ragwitness"] = {
            "tenant": principal.tenant_name,
            "account": principal.account_name,
        }
        if request.scope["query_string"]:
            raise ApiError("This service takes no query parameters.")
        return principal

    async def _retrieve(self, principal: Principal, query: Query) -> Retrieved:
        try:
            return await self._retriever.retrieve(principal, query)
        except SpentError as error:
            logs.say("refused", {"account": principal.account_name, "by": error.by})
            if error.by == "key":
                raise unauthorized() from None
            if error.by == "log":
                raise no_log() from None
            headers = limit_headers(principal.policy.claim, error.reading, error.seconds_left)
            raise SpentRefusal(headers, error.seconds_left) from None


def create_app(store: Store, generator: Generator, *, retriever: Retriever | None = None) -> Any:
    """Return the ASGI application.

    Args:
        store: The database; its tenants are made by ``ragwitness tenants``.
        generator: Writes the chat's answers.
        retriever: Used instead of one over ``store``.
    """
    service = _Service(store, generator, retriever or Retriever(store))
    routes: list[tuple[str, str, _Handler]] = [
        ("/health", "GET", service.health),
        ("/v1/models", "GET", service.models),
        ("/v1/usage", "GET", service.usage),
        ("/v1/log/checkpoint", "GET", service.checkpoint),
        ("/v1/retrieval", "POST", service.retrieval),
        ("/v1/chat/completions", "POST", service.chat),
    ]
    return Starlette(
        routes=[Route(path, _guarded(path, run), methods=[verb]) for path, verb, run in routes],
        exception_handlers={HTTPException: _on_http_error},
    )


def _guarded(path: str, handler: _Handler) -> _Handler:
    """Turn every failure into the protocol's error, and log one line."""

    async def guarded(request: Request) -> Response:
        began, number = time.perf_counter(), uuid.uuid4().hex
        cause = None
        try:
            response = await handler(request)
        except Exception as error:
            response, cause = _told(error)
        response.headers["X-Request-Id"] = number
        response.headers["Cache-Control"] = "no-store"
        fields = {
            "request": number,
            "path": path,
            "status": response.status_code,
            "ms": round(1000 * (time.perf_counter() - began), 1),
            **request.scope.get("ragwitness", {}),
        }
        if cause is not None:
            fields["cause"] = logs.place_of(cause)
        logs.say("request", fields)
        return response

    return guarded


def _told(error: Exception) -> tuple[Response, Exception | None]:
    """Return the reply to a failure, and the failure where it is not the client's."""
    if isinstance(error, ApiError):
        return _reply(error), None
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499), None
    if isinstance(error, QueryTooLongError):
        return _reply(ApiError("The query is too long.", code="context_length_exceeded")), None
    if isinstance(error, StoreGoneError):
        return _reply(unavailable()), error
    if isinstance(error, TargetError):
        message = "The generator behind this service did not answer."
        return _reply(ApiError(message, status=502, kind="server_error")), error
    message = "The server had an error while processing your request."
    return _reply(ApiError(message, status=500, kind="server_error")), error


def _reply(error: ApiError) -> Response:
    return JSONResponse(
        error.body, error.status, headers=error.headers if isinstance(error, SpentRefusal) else None
    )


def _receipt(found: Retrieved) -> dict[str, Any]:
    """Return the field of a reply that holds the receipt: a text, to be stored as it is."""
    return {} if found.receipt is None else {"receipt": found.receipt}


def _limits(principal: Principal, found: Retrieved) -> dict[str, str]:
    return limit_headers(principal.policy.claim, found.reading, found.seconds_left)


async def _on_http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse(ApiError("There is nothing here.").body, status)


async def _read_json(request: Request) -> object:
    body = bytearray()
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_BODY:
                    raise ApiError(f"The request is larger than {LARGEST_BODY} bytes.", status=413)
    except TimeoutError:
        raise ApiError("The request took too long to arrive.", status=408) from None
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise ApiError("The request body is not valid JSON.") from None
