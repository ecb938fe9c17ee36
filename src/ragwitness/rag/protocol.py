"""Requests of the OpenAI protocol, checked; and the errors it answers with."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ragwitness.core.types import Answer, Query, TokenLogprob

if TYPE_CHECKING:
    from starlette.requests import Request

_DEFAULT_MAX_TOKENS = 256


class ApiError(Exception):
    """An error that is sent to the client, in the shape of the protocol.

    Args:
        message: The cause, for people.
        status: HTTP status.
        kind: The protocol's error type.
        param: The parameter at fault, where there is one.
        code: The protocol's error code, where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {
            "error": {"message": message, "type": kind, "param": param, "code": code}
        }


def _encodable(text: str) -> str:
    """JSON can spell half a surrogate pair; no tokenizer can read one."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("the text holds a lone surrogate and is not valid Unicode")
    return text


_Text = Annotated[str, AfterValidator(_encodable)]
_Stop = _Text | Annotated[list[_Text], Field(max_length=4)] | None


class _AnyRequest(BaseModel):
    """Parameters of both endpoints; unknown ones are ignored, as elsewhere.

    Without a temperature the answer is greedy, so that asking twice gives the same.
    """

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    model: _Text | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    n: Literal[1] | None = None
    stop: _Stop = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings, empty ones left out."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop for stop in stops if stop)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the token counts."""
        return bool((self.stream_options or {}).get("include_usage"))


class _TextPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    type: Literal["text"]
    text: _Text


class _ChatMessage(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: _Text | list[_TextPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(piece.text for piece in self.content)
        return self.content or ""


_R = TypeVar("_R", bound=BaseModel)


class ChatRequest(_AnyRequest):
    """``POST /v1/chat/completions``; the last user message is the query."""

    messages: Annotated[list[_ChatMessage], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    def query(self) -> Query:
        """Return the query.

        Raises:
            ApiError: No user message, or alternatives without log-probabilities.
        """
        if self.top_logprobs is not None and not self.logprobs:
            raise ApiError(
                "top_logprobs is only allowed when logprobs is true.", param="top_logprobs"
            )
        # The system has no memory of a conversation: its last question is answered.
        questions = [message.text for message in self.messages if message.role == "user"]
        if not questions:
            raise ApiError("messages must hold a message of the role user.", param="messages")
        # A model returns logprobs only with at least one alternative; extra ones are cut off.
        top = max(1, self.top_logprobs or 0) if self.logprobs else 0
        limit = self.max_completion_tokens or self.max_tokens or _DEFAULT_MAX_TOKENS
        return Query(questions[-1], limit, self.temperature or 0.0, top, self.seed)


class CompletionRequest(_AnyRequest):
    """``POST /v1/completions``; the prompt retrieves and is continued."""

    prompt: _Text | Annotated[list[_Text], Field(min_length=1, max_length=1)]
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None

    def query(self) -> Query:
        """Return the query.

        Raises:
            ApiError: Nothing is asked for.
        """
        limit = _DEFAULT_MAX_TOKENS if self.max_tokens is None else self.max_tokens
        if self.stream:
            raise ApiError("Raw completions are not streamed here.", param="stream")
        if not limit and not self.echo:
            raise ApiError("max_tokens may be 0 only where echo is true.", param="max_tokens")
        text = self.prompt if isinstance(self.prompt, str) else self.prompt[0]
        top = 0 if self.logprobs is None else max(1, self.logprobs)
        return Query(text, limit, self.temperature or 0.0, top, self.seed)


def parse_request(kind: type[_R], body: object) -> _R:
    """Check a request's JSON.

    Raises:
        ApiError: A parameter is missing, has the wrong type or is out of range.
    """
    if not isinstance(body, dict):
        raise ApiError("The request must be a JSON object.")
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        # Of a choice, what was wrong in the one that fits furthest.
        errors = error.errors(include_url=False, include_context=False)
        first = max(errors, key=lambda one: len(one["loc"]))
        param = str(first["loc"][0]) if first["loc"] else None
        message = f"Invalid value for {param or 'the request'}: {first['msg']}."
        raise ApiError(message, param=param, code="invalid_value") from None


async def read_json(request: Request, most: int) -> object:
    """Return the JSON of a body of at most ``most`` bytes.

    Raises:
        ApiError: It is longer, or no JSON.
    """
    # Counted as it arrives: a Content-Length is the client's word, and whoever sends without end
    # must not fill the memory.
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise ApiError(f"The request is larger than {most} bytes.", status=413)
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise ApiError("The request body is not valid JSON.") from None


# Replies of the OpenAI protocol, whole and streamed.

Json: TypeAlias = dict[str, Any]

# The protocol's stand-in for minus infinity, which JSON cannot say.
_LEAST = -9999.0


def chat_reply(answer: Answer, model: str, top: int) -> Json:
    """Return the body of a chat completion.

    Args:
        answer: The answer of the system.
        model: The name it is served under.
        top: Alternatives to show per token.
    """
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text, "refusal": None},
        "logprobs": _chat_logprobs(answer.tokens, top),
        "finish_reason": answer.finish_reason,
    }
    return _envelope("chat.completion", "chatcmpl", model, [choice]) | {"usage": _usage(answer)}


def chat_stream(
    answer: Answer, model: str, top: int, *, usage: bool, more: Json | None = None
) -> Iterator[str]:
    """Yield the server-sent events of a chat completion, one per token.

    Args:
        answer: The answer of the system.
        model: The name it is served under.
        top: Alternatives to show per token.
        usage: Whether an event with the token counts follows.
        more: Fields of the first event beside the protocol's.
    """
    head = _envelope("chat.completion.chunk", "chatcmpl", model, [])

    def choices(delta: Json, logprobs: Json | None, finish: str | None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return head | {"choices": [choice]}

    first = choices({"role": "assistant", "content": ""}, None, None)
    yield _event(first | (more or {}))
    for piece, token in _pieces(answer):
        logprobs = None if token is None else _chat_logprobs([token], top)
        yield _event(choices({"content": piece}, logprobs, None))
    yield _event(choices({}, None, answer.finish_reason))
    yield from _end(head, answer, usage)


def completion_reply(answer: Answer, model: str, top: int | None) -> Json:
    """Return the body of a raw completion; ``answer.tokens`` include an echoed prompt.

    Args:
        answer: The answer of the system, behind the echoed prompt.
        model: The name it is served under.
        top: Alternatives to show per token; None shows no log-probabilities.
    """
    tokens = None if top is None else answer.tokens
    choice = {
        "index": 0,
        "text": answer.text,
        "logprobs": _completion_logprobs(tokens, top or 0, 0),
        "finish_reason": answer.finish_reason,
    }
    return _envelope("text_completion", "cmpl", model, [choice]) | {"usage": _usage(answer)}


def _pieces(answer: Answer) -> Iterator[tuple[str, TokenLogprob | None]]:
    """The text piece by piece: by token where the tokens join to it, else at once."""
    tokens = answer.tokens or ()
    if tokens and "".join(token.token for token in tokens) == answer.text:
        yield from ((token.token, token) for token in tokens)
        return
    # A generator that spells its tokens otherwise: the text first, then each one's numbers.
    yield answer.text, None
    yield from (("", token) for token in tokens)


def _end(head: Json, answer: Answer, usage: bool) -> Iterator[str]:
    if usage:
        yield _event(head | {"choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def _event(body: Json) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False, allow_nan=False)}\n\n"


def _envelope(kind: str, prefix: str, model: str, choices: list[Json]) -> Json:
    return {
        "id": f"{prefix}-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "choices": choices,
    }


def _usage(answer: Answer) -> Json:
    read, written = answer.prompt_tokens or 0, answer.completion_tokens or 0
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _chat_logprobs(tokens: Sequence[TokenLogprob] | None, top: int) -> Json | None:
    if tokens is None:
        return None
    content = [
        _chat_token(token.token, token.logprob)
        | {"bytes": list(token.token.encode())}
        | {"top_logprobs": [_chat_token(*alternative) for alternative in token.top[:top]]}
        for token in tokens
    ]
    return {"content": content, "refusal": None}


def _chat_token(token: str, logprob: float) -> Json:
    # In an alternative a replacement character stands for part of a character: its bytes are
    # not known here, and wrong ones would be worse than none. The tokens of the answer join to
    # it, so theirs are.
    data = None if "\ufffd" in token else list(token.encode())
    return {"token": token, "logprob": _number(logprob), "bytes": data}


def _completion_logprobs(tokens: Sequence[TokenLogprob] | None, top: int, at: int) -> Json | None:
    """Parallel lists over the tokens; offsets count characters of the returned text."""
    if tokens is None:
        return None
    offsets: list[int] = []
    for token in tokens:
        offsets.append(at)
        at += len(token.token)
    return {
        "tokens": [token.token for token in tokens],
        "token_logprobs": [_number(token.logprob) for token in tokens],
        "top_logprobs": [_alternatives(token, top) for token in tokens] if top else None,
        "text_offset": offsets,
    }


def _alternatives(token: TokenLogprob, top: int) -> Json | None:
    if math.isnan(token.logprob):
        return None
    listed: Json = {}
    for text, logprob in token.top[:top]:
        listed.setdefault(text, _number(logprob))  # parts of characters may look alike
    return listed


def _number(logprob: float) -> float | None:
    """A number JSON can say; None for the first token, which nothing precedes."""
    return None if math.isnan(logprob) else max(logprob, _LEAST)
