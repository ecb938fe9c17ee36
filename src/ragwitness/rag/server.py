"""Serves a RAG system through the OpenAI protocol and shows nothing of its inside.

No retrieved passage, score, setting or telling header leaves it: it is the black box that
an audit over HTTP meets elsewhere.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ragwitness.core.errors import CapabilityError, RagwitnessError
from ragwitness.core.server import is_loopback, listen, origin, serve_app
from ragwitness.rag.pipeline import QueryTooLongError, RagSystem
from ragwitness.rag.protocol import (
    ApiError,
    ChatRequest,
    CompletionRequest,
    chat_reply,
    chat_stream,
    completion_reply,
    parse_request,
    read_json,
)
from ragwitness.rag.target import completed

KEY_VARIABLE = "RAGWITNESS_LAB_KEY"
"""Environment variable with the key that clients must send; unset or empty: none."""

MODEL_NAME = "rag"
"""The one model served; it says nothing of the generator behind it."""

_LARGEST_BODY = 4 * 2**20

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class _Lab:
    """Handlers over one system."""

    def __init__(self, system: RagSystem, key: str | None) -> None:
        self._system = system
        self._key = key
        self._created = int(time.time())
        # The event loop stays free for everything else.
        self._free = asyncio.Semaphore(system.parallel)

    async def health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        self._authorize(request)
        model = {"id": MODEL_NAME, "object": "model", "created": self._created, "owned_by": "rag"}
        return JSONResponse({"object": "list", "data": [model]})

    async def chat(self, request: Request) -> Response:
        self._authorize(request)
        call = parse_request(ChatRequest, await read_json(request, _LARGEST_BODY))
        _check_model(call.model)
        query, top = call.query(), call.top_logprobs or 0
        answer = await self._call(partial(self._system.answer, query, call.stops))
        if call.stream:
            events = chat_stream(answer, MODEL_NAME, top, usage=call.wants_usage)
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(chat_reply(answer, MODEL_NAME, top))

    async def completions(self, request: Request) -> Response:
        self._authorize(request)
        body = parse_request(CompletionRequest, await read_json(request, _LARGEST_BODY))
        _check_model(body.model)
        # With echo the prompt itself is scored: what PROMPT_LOGPROBS audits read.
        query, top, echo = body.query(), body.logprobs, bool(body.echo)
        call = partial(completed, self._system, query, body.stops, echo=echo)
        answer = await self._call(call)
        return JSONResponse(completion_reply(answer, MODEL_NAME, top))

    def _authorize(self, request: Request) -> None:
        if not self._key:
            return
        # In constant time: the time of a comparison must not spell the key.
        header = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(header, f"Bearer {self._key}".encode()):
            raise ApiError("Incorrect API key provided.", status=401, code="invalid_api_key")

    async def _call(self, work: Callable[[], _T]) -> _T:
        try:
            async with self._free:
                return await run_in_threadpool(work)
        except QueryTooLongError as error:
            raise ApiError(str(error), code="context_length_exceeded") from None
        except CapabilityError:
            raise ApiError("The model gives no logprobs, or continues no raw prompts.") from None


def create_app(system: RagSystem, *, key: str | None = None) -> Starlette:
    """Return the ASGI application over a system.

    Args:
        system: The system to serve.
        key: The key that clients must send as a bearer token; None reads it from the
            environment (:data:`KEY_VARIABLE`), empty asks for none.
    """
    lab = _Lab(system, os.environ.get(KEY_VARIABLE) if key is None else key)
    routes: list[tuple[str, str, _Handler]] = [
        ("/health", "GET", lab.health),
        ("/v1/models", "GET", lab.models),
        ("/v1/chat/completions", "POST", lab.chat),
        ("/v1/completions", "POST", lab.completions),
    ]
    return Starlette(
        routes=[Route(path, _guarded(handler), methods=[verb]) for path, verb, handler in routes],
        exception_handlers={HTTPException: _on_http_error},
    )


def _guarded(handler: _Handler) -> _Handler:
    """Turn every failure into the protocol's error; tracebacks go to the log alone."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except ApiError as error:
            return JSONResponse(error.body, error.status)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            # The reason goes to the log of the server, not to the client.
            _log.error("%s", error, exc_info=not isinstance(error, RagwitnessError))
            message = "The server had an error while processing your request."
            return JSONResponse(ApiError(message, kind="server_error").body, 500)

    return guarded


async def _on_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = f"Invalid URL ({request.method} {request.url.path})."
    return JSONResponse(ApiError(message).body, status)


def _check_model(name: str | None) -> None:
    if name not in (None, MODEL_NAME):
        raise ApiError(
            f"The model {name!r} does not exist.", status=404, param="model", code="model_not_found"
        )


# Running the lab server.

_say = partial(print, flush=True)  # a reader of the pipe waits for the address


def serve(
    system: RagSystem,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    announce: Callable[[str], None] = _say,
) -> None:
    """Serve a system until Ctrl-C, then return.

    Args:
        system: The system to serve.
        host: Address to listen on; anything but the loopback is reachable by others.
        port: Port; 0 takes a free one.
        announce: Called with each line for the user: the base URL once it listens, and at the
            end how many prompts lost passages. By default they are printed at once, to a pipe
            too.

    Raises:
        InputError: The address cannot be listened on.
    """
    listener = listen(host, port)
    url = f"{origin(host, listener)}/v1"

    def ready() -> None:
        announce(f"Listening on {url}")
        if not is_loopback(host) and not os.environ.get(KEY_VARIABLE):
            announce(f"Anyone who reaches this address can ask; set {KEY_VARIABLE} to a key.")

    serve_app(create_app(system), listener, ready)
    # Shortened prompts showed fewer passages than k: recall is lower than the settings say.
    if system.shortened:
        announce(
            f"{system.shortened} of {system.prompts} prompts lost passages: the generator reads "
            f"at most {system.generator.context_length} tokens."
        )
    announce("Stopped.")
