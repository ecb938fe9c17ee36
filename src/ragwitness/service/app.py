"""The service over HTTP: deny by default, the tenant from the key, equal refusals."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ragwitness.attest.receipts import RequestSignature
from ragwitness.core.errors import TargetError
from ragwitness.core.types import Query
from ragwitness.rag.pipeline import QueryTooLongError
from ragwitness.rag.protocol import (
    ApiError,
    ChatRequest,
    chat_reply,
    chat_stream,
    parse_request,
    read_json,
)
from ragwitness.service import lines
from ragwitness.service.answers import Generator
from ragwitness.service.meters import (
    TooMany,
    limit_headers,
    unauthorized,
)
from ragwitness.service.principals import (
    KeyRates,
    Principal,
    confirm,
    key_owners,
    read_meters,
    split_key,
)
from ragwitness.service.retrieval import RetrievalQuery, Retrieved, Retriever, SpentError
from ragwitness.service.store import SharedReads, Store, StoreGoneError
from ragwitness.service.window import no_log

# Bodies of requests: what they may hold, and nothing else.
#
# There is no field for a tenant or an account. A field that the protocol does not know is refused:
# who sends one expects it to do something. One that it knows and this service does not act on is
# left out and named in a header: clients send many of them by themselves.

IGNORED = frozenset(
    "audio frequency_penalty function_call functions logit_bias max_retries metadata modalities"
    " parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention"
    " reasoning_effort response_format safety_identifier service_tier store tool_choice tools"
    " top_k top_p user verbosity web_search_options".split()
)
"""Parameters of chat completions that do nothing here."""

_IDLE = frozenset(
    "annotations audio cache_control file function_call image_url include_obfuscation input_audio"
    " name refusal tool_call_id tool_calls video_url".split()
)
"""Fields of messages, of their parts and of streams' options that do nothing here."""

IGNORED_HEADER = "X-Ragwitness-Ignored"
KEY_HEADER = "X-Ragwitness-Account-Key"

MOST_TOKENS = 1024
"""Tokens of an answer; more are asked for in vain."""

LONGEST_QUERY = 8_000
"""Characters of a query."""

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

_KEY = re.compile(r"([0-9a-f]{64})?", re.ASCII)

_Text = Annotated[str, Field(max_length=LONGEST_QUERY)]
_Token = Annotated[str, Field(max_length=256, pattern=r"^[\x20-\x7e]*$")]


class _Spoken(BaseModel):
    """What a client says; fields that do nothing are passed over, unknown ones are refused."""

    model_config = _STRICT

    @model_validator(mode="before")
    @classmethod
    def _without_idle(cls, given: Any) -> Any:
        if isinstance(given, dict):
            given = {name: value for name, value in given.items() if name not in _IDLE}
        return given


class _Part(_Spoken):
    type: str
    text: str = ""


class _Message(_Spoken):
    """Of a user, what is asked; every other message is read and not used."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        if not isinstance(self.content, list):
            return self.content or ""
        if other := [part.type for part in self.content if part.type != "text"]:
            raise ApiError(f"Only text can be asked, not {other[0]}.", param="messages")
        return "".join(part.text for part in self.content)


class _StreamOptions(_Spoken):
    include_usage: bool = False


class _Noise(BaseModel):
    """What a client adds to the noise, so that nobody can have looked for it beforehand.

    Attributes:
        nonce: The client's own random text.
        checkpoint: The log's checkpoint that it saw last.
        sequence: How many of its queries came before, for an account that signs.
        blinding: Blinding of its commitment to the query, 32 bytes in hex.
        signature: Over all of it, 64 bytes in hex (docs/attest.md).
    """

    model_config = _STRICT

    nonce: _Token = ""
    checkpoint: _Token = ""
    sequence: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None
    blinding: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")] | None = None

    @property
    def signed(self) -> RequestSignature | None:
        """The account's signature; None for a request without one.

        Raises:
            ApiError: A part of it is missing.
        """
        sequence, blinding, signature = self.sequence, self.blinding, self.signature
        if sequence is None and blinding is None and signature is None:
            return None
        if sequence is None or blinding is None or signature is None:
            raise ApiError("Give sequence, blinding and signature, or none of them.")
        return RequestSignature(sequence, bytes.fromhex(blinding), bytes.fromhex(signature))


class ServiceChat(ChatRequest, _Noise):
    """``POST /v1/chat/completions``; the last user message is the query.

    No log-probabilities: they would add to what an answer tells of the passages.
    """

    model_config = _STRICT

    messages: Annotated[list[_Message], Field(min_length=1, max_length=256)]  # type: ignore[assignment]
    stream_options: _StreamOptions | None = None  # type: ignore[assignment]
    logprobs: Literal[False] | None = None
    top_logprobs: None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the token counts."""
        return self.stream_options is not None and self.stream_options.include_usage

    def query(self) -> Query:
        """Return the query.

        Raises:
            ApiError: There is no user message, or nothing in it.
        """
        query = super().query()
        query = replace(query, max_tokens=min(query.max_tokens, MOST_TOKENS))
        if not query.prompt.strip() or len(query.prompt) > LONGEST_QUERY:
            raise ApiError(
                f"The last user message must have 1 to {LONGEST_QUERY} characters.",
                param="messages",
            )
        return query


class RetrievalBody(_Noise):
    """``POST /v1/retrieval``: a text, or its vector where the client embeds by itself."""

    query: _Text | None = None
    vector: Annotated[list[float], Field(min_length=1, max_length=1 << 16)] | None = None

    @model_validator(mode="after")
    def _one(self) -> RetrievalBody:
        if (self.query is None) == (self.vector is None):
            raise ValueError("give either query or vector")
        if self.query is not None and not self.query.strip():
            raise ValueError("the query is blank")
        return self


_GONE = "The service cannot reach its database."  # what was reserved stays spent
MODEL_NAME = "rag"
LARGEST_BODY = 256 * 1024
"""Bytes of a request."""

_SLOWEST_BODY = 30  # seconds
_MODEL = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "rag"}
_UNUSED = frozenset({"api-version"})  # query parameters that clients send by themselves

_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Service:
    """Handlers over one database."""

    store: Store
    generator: Generator
    retriever: Retriever
    rates: KeyRates | None
    keys: SharedReads

    async def live(self, _request: Request) -> Response:
        # This process answers, whatever its database does: a supervisor need not restart it.
        return JSONResponse({"status": "ok"})

    async def health(self, _request: Request) -> Response:
        # No key is asked for and none is counted: a balancer looks here every few seconds.
        await asyncio.to_thread(self.store.check)
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        await self._principal(request)
        return JSONResponse({"object": "list", "data": [_MODEL]})

    async def model(self, request: Request) -> Response:
        await self._principal(request)
        return JSONResponse(_MODEL)

    async def usage(self, request: Request) -> Response:
        principal = await self._principal(request)
        policy = principal.policy
        claim = policy.claim
        promise: dict[str, object] = {"epsilon": claim.epsilon, "covers": "ids", "texts": "none"}
        if claim.texts:
            promise["texts"] = "of documents that share a word with the question"
        if policy.placement is not None:
            return JSONResponse({"object": "usage", "promise": promise})
        window, left = self.retriever.window(principal)
        # Looking at a meter is free, and it shows the account's own queries and its payer's alone:
        # what the whole index has spent depends on others, and is an operator's to see.
        reading = await asyncio.to_thread(read_meters, self.store, principal, window)
        limits = {"account": claim.queries, "payer": claim.payer_queries or 0}
        used = {"account": reading.account, "payer": reading.payer}
        meters = {
            name: {"limit": limit, "used": used[name], "left": max(0, limit - used[name])}
            for name, limit in limits.items()
        }
        if claim.texts:
            promise["texts"] = (
                f"{policy.reads:.0%} of the index, to an account that asks all it may"
            )
        body = {
            "object": "usage",
            "window": window,
            "seconds_left": left,
            "meters": meters,
            "promise": promise | {"delta": claim.delta},
        }
        return JSONResponse(body, headers=limit_headers(claim, reading, left))

    async def retrieval(self, request: Request) -> Response:
        principal = await self._principal(request)
        body = parse_request(RetrievalBody, await _read_json(request))
        # Slots are public numbers, drawn by lot; no score leaves, noisy or not.
        what = body.query if body.query is not None else body.vector
        claim = principal.policy.claim
        found = await self._retrieve(
            principal, RetrievalQuery(what or "", body.nonce, body.checkpoint, body.signed)
        )
        reply: dict[str, object] = {"object": "retrieval", "ids": list(found.slots)}
        if claim.texts:
            reply["documents"] = list(found.documents)
        if found.reading is not None:
            reply |= {"window": found.window, "sequence": found.sequence, **_receipt(found)}
        return JSONResponse(reply, headers=_limits(principal, found))

    async def chat(self, request: Request) -> Response:
        principal = await self._principal(request)
        body = await _read_json(request)
        ignored: list[str] = []
        if isinstance(body, dict):
            ignored = sorted(name for name in body if name in IGNORED)
            body = {name: value for name, value in body.items() if name not in IGNORED}
        asked = parse_request(ServiceChat, body)
        if asked.model not in (None, MODEL_NAME):
            raise ApiError(
                "That model does not exist.", status=404, param="model", code="model_not_found"
            )
        query = asked.query()
        # 1. What the generator could not read is refused here, before anything is charged.
        await self.generator.check(query)
        # 2. Selected, and charged before where that costs something.
        found = await self._retrieve(
            principal, RetrievalQuery(query.prompt, asked.nonce, asked.checkpoint, asked.signed)
        )
        # 3. From here on only what was selected is looked at: post-processing costs no privacy.
        texts = [str(document["text"]) for document in found.documents]
        answer = await self.generator.answer(query, texts, asked.stops)
        headers = _limits(principal, found)
        if ignored:
            headers[IGNORED_HEADER] = ", ".join(ignored)
        if asked.stream:
            events: Iterator[str] = chat_stream(
                answer, MODEL_NAME, 0, usage=asked.wants_usage, more=_receipt(found)
            )
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        # The receipt is one more field of the reply; other clients pass over it.
        reply = chat_reply(answer, MODEL_NAME, 0) | _receipt(found)
        return JSONResponse(reply, headers=headers)

    async def checkpoint(self, request: Request) -> Response:
        principal = await self._principal(request)
        log = self.retriever.log(principal)
        if log is None:
            raise ApiError("Answers of this tenant stand in no log.", status=404, code="no_log")
        # A client names this checkpoint in its next query, so that the noise cannot have been
        # looked for before the checkpoint was there.
        key = request.headers.get(KEY_HEADER, "")
        if not _KEY.fullmatch(key):
            raise ApiError(f"{KEY_HEADER} is not 32 bytes in lower-case hex.")
        told = await log.checkpoint(principal, bytes.fromhex(key))
        return JSONResponse({"object": "checkpoint", **told})

    async def _principal(self, request: Request) -> Principal:
        """Return who asks; whatever else the request claims is refused or not looked at."""
        given = request.headers.getlist("authorization")
        header = given[0] if len(given) == 1 else None  # two keys are none
        key_id, secret = split_key(header)
        # Read anew for each request, though many share a read: a revoked key ends at once.
        principal = confirm(secret, (await self.keys.of([key_id])).get(key_id))
        if principal is None:
            raise unauthorized()
        wait = self.rates.wait(principal.account) if self.rates else 0.0
        # Names for the line of the log; the handler below never reads them back.
        request.scope["ragwitness"] = {
            "tenant": principal.tenant_name,
            "account": principal.account_name,
        }
        if wait:
            raise TooMany("This key asks too often.", "rate_limited", wait)
        if set(request.query_params) - _UNUSED:
            raise ApiError("This service takes no query parameters.")
        return principal

    async def _retrieve(self, principal: Principal, query: RetrievalQuery) -> Retrieved:
        try:
            return await self.retriever.retrieve(principal, query)
        except SpentError as error:
            lines.say("refused", {"account": principal.account_name, "by": error.by})
            # Revoked since it was authenticated: the same words as for a key that never was.
            if error.by == "key":
                raise unauthorized() from None
            if error.by == "log":
                raise no_log() from None
            headers = limit_headers(principal.policy.claim, error.reading, error.seconds_left)
            raise TooMany(
                "No query is left in this window.", "budget_spent", error.seconds_left, headers
            ) from None


def create_app(
    store: Store,
    generator: Generator,
    *,
    retriever: Retriever | None = None,
    rates: KeyRates | None = None,
) -> Any:
    """Return the ASGI application.

    Args:
        store: The database; its tenants are made by ``ragwitness service tenants``.
        generator: Writes the chat's answers.
        retriever: Used instead of one over ``store``.
        rates: Rates of each key; None: any.
    """
    keys = SharedReads(partial(key_owners, store))
    service = _Service(store, generator, retriever or Retriever(store), rates, keys)
    routes: list[tuple[str, str, _Handler]] = [
        ("/live", "GET", service.live),
        ("/health", "GET", service.health),
        ("/v1/models", "GET", service.models),
        (f"/v1/models/{MODEL_NAME}", "GET", service.model),
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
        # The number names a request to its operator and tells a client nothing.
        began, number = time.perf_counter(), uuid.uuid4().hex
        cause = None
        try:
            response = await handler(request)
        except Exception as error:
            response, cause = _told(error)
        response.headers["X-Request-Id"] = number
        # An answer that a proxy kept would be repeated without a record and outside the odometer.
        response.headers["Cache-Control"] = "no-store"
        # One line a request: who, where, how long. Neither query nor answer stands in it.
        fields = {
            "request": number,
            "path": path,
            "status": response.status_code,
            "ms": round(1000 * (time.perf_counter() - began), 1),
            **request.scope.get("ragwitness", {}),
        }
        if cause is not None:
            fields["cause"] = lines.place_of(cause)
        if isinstance(cause, StoreGoneError):  # its words hold no statement and no value
            fields["reason"] = cause.message
        lines.say("request", fields)
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
        return _reply(ApiError(_GONE, status=503, kind="server_error", code="unavailable")), error
    if isinstance(error, TargetError):
        message = "The generator behind this service did not answer."
        return _reply(ApiError(message, status=502, kind="server_error")), error
    # Every other failure is ours and gets one reply: an exception's text may quote a document.
    message = "The server had an error while processing your request."
    return _reply(ApiError(message, status=500, kind="server_error")), error


def _reply(error: ApiError) -> Response:
    return JSONResponse(error.body, error.status, getattr(error, "headers", None))


def _receipt(found: Retrieved) -> dict[str, Any]:
    """Return the field of a reply that holds the receipt: a text, to be stored as it is."""
    return {} if found.receipt is None else {"receipt": found.receipt}


def _limits(principal: Principal, found: Retrieved) -> dict[str, str]:
    if found.reading is None:
        return {}
    return limit_headers(principal.policy.claim, found.reading, found.seconds_left)


async def _on_http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse(ApiError("There is nothing here.").body, status)


async def _read_json(request: Request) -> object:
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            return await read_json(request, LARGEST_BODY)
    except TimeoutError:
        raise ApiError("The request took too long to arrive.", status=408) from None
