"""Bodies of requests: what they may hold, and nothing else.

There is no field for a tenant or an account. An unknown field is refused rather than ignored: who
sends one expects it to do something.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragwitness.rag.requests import ApiError, ChatRequest
from ragwitness.types import Query

__all__ = ["LONGEST_QUERY", "RetrievalBody", "ServiceChat"]

LONGEST_QUERY = 8_000
"""Characters of a query."""

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

_Text = Annotated[str, Field(max_length=LONGEST_QUERY)]
_Token = Annotated[str, Field(max_length=256, pattern=r"^[\x20-\x7e]*$")]


class _Part(BaseModel):
    model_config = _STRICT

    type: Literal["text"]
    text: _Text


class _Message(BaseModel):
    model_config = _STRICT

    role: Literal["system", "developer", "user", "assistant"]
    content: _Text | list[_Part]

    @property
    def text(self) -> str:
        parts = self.content if isinstance(self.content, list) else [self.content]
        return "".join(part if isinstance(part, str) else part.text for part in parts)


class _StreamOptions(BaseModel):
    model_config = _STRICT

    include_usage: bool = False


class _Noise(BaseModel):
    """What a client adds to the noise, so that nobody can have looked for it beforehand.

    Attributes:
        nonce: The client's own random text.
        checkpoint: The log's checkpoint that it saw last.
    """

    model_config = _STRICT

    nonce: _Token = ""
    checkpoint: _Token = ""


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
