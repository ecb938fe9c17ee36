"""The service over HTTP: deny by default, the tenant from the key, equal refusals."""

from __future__ import annotations

import asyncio
import copy
import logging
import math
import re
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
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
from ragwitness.core.threads import in_thread
from ragwitness.core.types import Answer, Query
from ragwitness.models.base import LanguageModel
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import PromptTemplate, RagConfig, load_template
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import QueryTooLongError, RagSystem
from ragwitness.rag.protocol import (
    ApiError,
    ChatRequest,
    chat_reply,
    chat_stream,
    parse_request,
    read_json,
)
from ragwitness.service.principals import Principal, confirm, key_owners, read_meters, split_key
from ragwitness.service.retrieval import RetrievalQuery, Retrieved, Retriever, SpentError
from ragwitness.service.store import SharedReads, Store, StoreGoneError
from ragwitness.service.window import no_log

_log = logging.getLogger(__name__)

# Bodies of requests. There is no field for a tenant or an account. An unknown field is refused,
# because its sender expects an effect. A known field without effect here is left out and named in
# a header, because many clients send such fields by themselves.

IGNORED = frozenset(
    "audio frequency_penalty function_call functions logit_bias max_retries metadata modalities"
    " parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention"
    " reasoning_effort response_format safety_identifier service_tier store tool_choice tools"
    " top_k top_p user verbosity web_search_options".split()
)
"""Parameters of chat completions that do nothing here."""

IGNORED_HEADER = "X-Ragwitness-Ignored"
KEY_HEADER = "X-Ragwitness-Account-Key"

MOST_TOKENS = 1024
"""Most tokens of an answer, whatever is asked for."""

LONGEST_QUERY = 8_000
"""Characters of a query."""

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
_LENIENT = ConfigDict(strict=True, extra="ignore")

_KEY = re.compile(r"([0-9a-f]{64})?", re.ASCII)

_Text = Annotated[str, Field(max_length=LONGEST_QUERY)]
_Token = Annotated[str, Field(max_length=256, pattern=r"^[\x20-\x7e]*$")]


class _Part(BaseModel):
    model_config = _LENIENT

    type: str
    text: str = ""


class _Message(BaseModel):
    """A message; only the last of the role ``user`` is used."""

    model_config = _LENIENT

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        if not isinstance(self.content, list):
            return self.content or ""
        if others := [item.type for item in self.content if item.type != "text"]:
            raise ApiError(f"Only text can be asked, not {others[0]}.", param="messages")
        return "".join(item.text for item in self.content)


class _StreamOptions(BaseModel):
    model_config = _LENIENT

    include_usage: bool = False


class _Noise(BaseModel):
    """A client's part in the key of the noise, so that a provider cannot try keys beforehand.

    Attributes:
        nonce: The client's own random text.
        checkpoint: The log's checkpoint that it saw last.
        sequence: Number of its earlier queries, for an account that signs.
        blinding: Blinding of its commitment to the query, 32 bytes in hex.
        signature: Over all of it, 64 bytes in hex (docs/attest.md).
    """

    model_config = _STRICT

    nonce: _Token = ""
    checkpoint: _Token = ""
    sequence: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None
    blinding: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")] | None = None

    def retrieval(self, text: str | list[float]) -> RetrievalQuery:
        """Return the query for the retriever.

        Raises:
            ApiError: A part of the account's signature is missing.
        """
        sequence, blinding, signature = self.sequence, self.blinding, self.signature
        signed = None
        if sequence is not None and blinding is not None and signature is not None:
            signed = RequestSignature(sequence, bytes.fromhex(blinding), bytes.fromhex(signature))
        elif (sequence, blinding, signature) != (None, None, None):
            raise ApiError("Give sequence, blinding and signature, or none of them.")
        return RetrievalQuery(text, self.nonce, self.checkpoint, signed)


class ServiceChat(ChatRequest, _Noise):
    """``POST /v1/chat/completions``; the last user message is the query.

    No log-probabilities: they would reveal more of the passages than an answer does.
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
            ApiError: There is no user message, or it is blank or too long.
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
    def _query_or_vector(self) -> RetrievalBody:
        if (self.query is None) == (self.vector is None):
            raise ValueError("give either query or vector")
        if self.query is not None and not self.query.strip():
            raise ValueError("the query is blank")
        return self


# Answers over the selected documents.


class Generator:
    """Answers a query from given texts.

    Args:
        model: Writes the answers; one behind another server sees query and texts.
        template: Shows it the texts.
    """

    def __init__(self, model: LanguageModel, template: PromptTemplate) -> None:
        # A stand-in for the passages of a query: the overhead of a prompt is measured once.
        config = RagConfig(template=template)
        self._system = RagSystem([Passage("", 0, 1, "-")], _SelectedTexts(1), model, config)
        self._free = asyncio.Semaphore(self._system.parallel)

    async def check(self, query: Query) -> None:
        """Find out before anything is charged whether the model can read the query.

        Raises:
            QueryTooLongError: It does not fit what the model reads, even without any text.
        """
        await asyncio.to_thread(self._system.prompt, query.prompt, query.max_tokens)

    async def answer(self, query: Query, texts: Sequence[str], stop: Sequence[str]) -> Answer:
        """Return the answer.

        Raises:
            QueryTooLongError: The query does not fit what the model reads.
            ModelError: A model of ours failed.
            TargetError: Another server failed.
        """
        # The mechanism has selected the texts. A pipeline with a retriever of its own would search
        # again without noise, and reveal documents that nobody paid for.
        system = copy.copy(self._system)  # measured once, and another database per query
        system.passages = tuple(Passage("", 0, len(text), text) for text in texts)
        system.index = _SelectedTexts(len(texts))
        async with self._free:
            return await in_thread(system.answer, query, stop)


class _SelectedTexts:
    """An index that returns all its texts in their order."""

    name = "selected"

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int) -> list[Hit]:
        del query, k
        return [Hit(i, 0.0) for i in range(self._size)]


def make_generator(spec: str, template: str = "plain") -> Generator:
    """Return the generator ``spec`` names.

    Args:
        spec: As for :func:`~ragwitness.models.model_registry.load_language_model`.
        template: Name of a prompt template, or its file.

    Raises:
        InputError: ``spec`` has no valid form, or there is no such template.
        ModelError: The model cannot be loaded.
        TargetError: The endpoint does not answer.
    """
    prompt = load_template(template)
    return Generator(load_language_model(spec), prompt)


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
    keys: SharedReads

    async def live(self, _request: Request) -> Response:
        # This process answers, whatever its database does: a supervisor need not restart it.
        return JSONResponse({"status": "ok"})

    async def health(self, _request: Request) -> Response:
        # No key is needed: a load balancer asks every few seconds.
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
        if policy.placement is not None:
            if claim.texts:
                promise["texts"] = "of documents that share a word with the question"
            return JSONResponse({"object": "usage", "promise": promise})
        if claim.texts:
            promise["texts"] = (
                f"{policy.reads:.0%} of the index, to an account that asks all it may"
            )
        # A meter is read for free. An account sees its own queries and its payer's alone: the
        # spending of the whole index depends on others, and only an operator sees it.
        window, seconds_left = self.retriever.window(principal)
        used = await asyncio.to_thread(read_meters, self.store, principal, window)
        # Each meter with its limit and the rest.
        limits = {"account": claim.queries, "payer": claim.payer_queries or 0}
        meters = {
            name: {"limit": limit, "used": used[name], "left": max(0, limit - used[name])}
            for name, limit in limits.items()
        }
        body = {
            "object": "usage",
            "window": window,
            "seconds_left": seconds_left,
            "meters": meters,
            "promise": promise | {"delta": claim.delta},
        }
        return JSONResponse(body)

    async def retrieval(self, request: Request) -> Response:
        principal = await self._principal(request)
        body = parse_request(RetrievalBody, await _read_json(request))
        query = body.retrieval(body.query if body.query is not None else body.vector or "")
        result = await self.retriever.retrieve(principal, query)
        # Slots are public numbers, drawn by lot; no score leaves, noisy or not.
        reply: dict[str, object] = {"object": "retrieval", "ids": list(result.slots)}
        if principal.policy.claim.texts:
            reply["documents"] = list(result.documents)
        if principal.policy.placement is None:
            reply |= {"window": result.window, "sequence": result.sequence, **_receipt(result)}
        return JSONResponse(reply)

    async def chat(self, request: Request) -> Response:
        principal = await self._principal(request)
        body = await _read_json(request)
        ignored: list[str] = []
        if isinstance(body, dict):
            ignored = sorted(name for name in body if name in IGNORED)
            body = {name: value for name, value in body.items() if name not in IGNORED}
        chat = parse_request(ServiceChat, body)
        if chat.model not in (None, MODEL_NAME):
            raise ApiError(
                "That model does not exist.", status=404, param="model", code="model_not_found"
            )
        query = chat.query()
        # 1. A query that the generator cannot read is refused before anything is charged.
        await self.generator.check(query)
        # 2. Selected, and charged before where that costs something.
        result = await self.retriever.retrieve(principal, chat.retrieval(query.prompt))
        # 3. From here on only the selection is used: post-processing costs no privacy.
        texts = [str(document["text"]) for document in result.documents]
        answer = await self.generator.answer(query, texts, chat.stops)
        headers = {IGNORED_HEADER: ", ".join(ignored)} if ignored else {}
        # The receipt is one more field of the reply; other clients pass over it.
        receipt = _receipt(result)
        if chat.stream:
            events: Iterator[str] = chat_stream(
                answer, MODEL_NAME, 0, usage=chat.wants_usage, more=receipt
            )
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        return JSONResponse(chat_reply(answer, MODEL_NAME, 0) | receipt, headers=headers)

    async def checkpoint(self, request: Request) -> Response:
        principal = await self._principal(request)
        log = self.retriever.log(principal)
        if log is None:
            raise ApiError("The answers of this tenant are not logged.", status=404, code="no_log")
        # A client names this checkpoint in its next query: noise cannot be tried before it exists.
        key = request.headers.get(KEY_HEADER, "")
        if not _KEY.fullmatch(key):
            raise ApiError(f"{KEY_HEADER} is not 32 bytes in lower-case hex.")
        checkpoint = await log.checkpoint(principal, bytes.fromhex(key))
        return JSONResponse({"object": "checkpoint", **checkpoint})

    async def _principal(self, request: Request) -> Principal:
        """Return who asks; no other field of the request is believed."""
        keys = request.headers.getlist("authorization")
        header = keys[0] if len(keys) == 1 else None  # two keys are none
        key_id, secret = split_key(header)
        # Read anew for each request, though many share a read: a revoked key ends at once.
        principal = confirm(secret, (await self.keys.of([key_id])).get(key_id))
        if principal is None:
            raise _unauthorized()
        # Names for the line of the log; no handler reads them.
        request.scope["ragwitness"] = {
            "tenant": principal.tenant_name,
            "account": principal.account_name,
        }
        if set(request.query_params) - _UNUSED:
            raise ApiError("This service takes no query parameters.")
        return principal


def create_app(store: Store, generator: Generator, *, retriever: Retriever | None = None) -> Any:
    """Return the ASGI application.

    Args:
        store: The database; its tenants are made by ``ragwitness service tenants``.
        generator: Writes the chat's answers.
        retriever: Used instead of one over ``store``.
    """
    keys = SharedReads(partial(key_owners, store))
    service = _Service(store, generator, retriever or Retriever(store), keys)
    # Paths without a key first, then those of OpenAI's protocol and the service's own.
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
        # The operator finds a request by this number; it tells a client nothing.
        began, number = time.perf_counter(), uuid.uuid4().hex
        # One line a request: who, where, how long. It holds neither query nor answer.
        fields: dict[str, object] = {"request": number, "path": path}
        try:
            response = await handler(request)
        except Exception as error:
            response = _reply_to(error)
            if isinstance(error, SpentError):
                fields["refused_by"] = error.by
            elif response.status_code >= 500:
                fields["cause"] = place_of(error)
            if isinstance(error, StoreGoneError):  # its words hold no statement and no value
                fields["reason"] = error.message
        response.headers["X-Request-Id"] = number
        # An answer that a proxy kept would be repeated without a record and outside the odometer.
        response.headers["Cache-Control"] = "no-store"
        fields |= {
            "status": response.status_code,
            "ms": round(1000 * (time.perf_counter() - began), 1),
            **request.scope.get("ragwitness", {}),
        }
        _log.info("request", extra={"fields": fields})
        return response

    return guarded


def place_of(error: BaseException) -> str:
    """Return type and place of an exception, without its message, which may quote a query."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def _reply_to(error: Exception) -> Response:
    """Return the reply to a failure."""
    headers = {}
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)
    if isinstance(error, ApiError):
        reply = error
    elif isinstance(error, SpentError):
        # A key that was revoked meanwhile gets the words of a key that never was. The words for a
        # spent meter are the same for each meter.
        if error.by in ("key", "log"):
            reply = no_log() if error.by == "log" else _unauthorized()
        else:
            message = "No query is left in this window."
            reply = ApiError(message, status=429, kind="rate_limit_error", code="budget_spent")
            headers["Retry-After"] = str(max(1, math.ceil(error.seconds_left)))
    elif isinstance(error, QueryTooLongError):
        reply = ApiError("The query is too long.", code="context_length_exceeded")
    elif isinstance(error, StoreGoneError):  # what was reserved stays spent
        message = "The service cannot reach its database."
        reply = ApiError(message, status=503, kind="server_error", code="unavailable")
    elif isinstance(error, TargetError):
        message = "The generator behind this service did not answer."
        reply = ApiError(message, status=502, kind="server_error")
    else:
        # Every other failure is ours and gets one reply: an exception's text may quote a document.
        message = "The server had an error while processing your request."
        reply = ApiError(message, status=500, kind="server_error")
    return JSONResponse(reply.body, reply.status, headers)


def _unauthorized() -> ApiError:
    """Return the refusal of a missing, malformed, unknown, wrong or revoked key."""
    return ApiError("Incorrect API key provided.", status=401, code="invalid_api_key")


def _receipt(result: Retrieved) -> dict[str, Any]:
    """Return the field of a reply that holds the receipt: a text, to be stored as it is."""
    return {} if result.receipt is None else {"receipt": result.receipt}


async def _on_http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse(ApiError("There is nothing here.").body, status)


async def _read_json(request: Request) -> object:
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            return await read_json(request, LARGEST_BODY)
    except TimeoutError:
        raise ApiError("The request took too long to arrive.", status=408) from None
