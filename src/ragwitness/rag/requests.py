"""Requests of the OpenAI protocol, checked; and the errors it answers with."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ragwitness.types import Query

__all__ = ["ApiError", "ChatRequest", "CompletionRequest", "parse_request"]

_DEFAULT_MAX_TOKENS = 256


class ApiError(Exception):
    """An error the client is told of, in the protocol's own shape.

    Args:
        message: What is wrong, for people.
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


class _Request(BaseModel):
    """What both endpoints understand; unknown parameters are ignored, as elsewhere.

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


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    type: Literal["text"]
    text: _Text


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: _Text | list[_Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


_R = TypeVar("_R", bound=BaseModel)


class ChatRequest(_Request):
    """``POST /v1/chat/completions``; the last user message is the query."""

    messages: Annotated[list[_Message], Field(min_length=1)]
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
        asked = [message.text for message in self.messages if message.role == "user"]
        if not asked:
            raise ApiError("messages must hold a message of the role user.", param="messages")
        # A model returns logprobs only with at least one alternative; extra ones are cut off.
        top = max(1, self.top_logprobs or 0) if self.logprobs else 0
        limit = self.max_completion_tokens or self.max_tokens or _DEFAULT_MAX_TOKENS
        return Query(asked[-1], limit, self.temperature or 0.0, top, self.seed)


class CompletionRequest(_Request):
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
        first = error.errors(include_url=False, include_context=False)[0]
        param = str(first["loc"][0]) if first["loc"] else None
        message = f"Invalid value for {param}: {first['msg']}."
        raise ApiError(message, param=param, code="invalid_value") from None
