"""Embedders by name, those behind an HTTP endpoint included."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragwitness.errors import InputError, TargetError, TargetResponseError
from ragwitness.kit.registry import Listing, Registry
from ragwitness.models.base import Embedder
from ragwitness.models.endpoint import close_with, wait_for
from ragwitness.models.registry import EMBEDDERS
from ragwitness.models.registry import load_embedder as load_local
from ragwitness.targets.failures import find_key
from ragwitness.targets.openai import Endpoint, parse_endpoint
from ragwitness.targets.transport import JsonClient, TransportOptions

KEY_VARIABLE = "RAGWITNESS_EMBEDDINGS_KEY"
"""Environment variable with the key of the embeddings endpoint; unset, ``OPENAI_API_KEY`` goes
to ``https://api.openai.com`` alone, as for targets."""

_BATCH = 64
"""Texts per request."""


def load_embedder(spec: str = "minilm") -> Embedder:
    """Return the embedder ``spec`` names, opened once per process.

    Args:
        spec: ``minilm``, ``hf:NAME_OR_FOLDER`` (transformers), or ``URL#MODEL`` of anything that
            answers ``POST URL/embeddings`` as OpenAI does, e.g. ``http://host:port/v1#bge``.

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
    """
    if spec.lower().startswith(("http://", "https://")):
        return _endpoint(spec)
    return load_local(spec)


@cache
def _endpoint(spec: str) -> EndpointEmbedder:
    return EndpointEmbedder(spec)


class EndpointEmbedder:
    """Asks an OpenAI-compatible endpoint for embeddings; safe across threads.

    Args:
        spec: ``URL#MODEL``; the URL without ``/embeddings``.
        options: Limits of the connection; ``key_env`` None takes :data:`KEY_VARIABLE`.

    Raises:
        InputError: The address has no model or cannot be read, or the key is unusable.
    """

    def __init__(self, spec: str, options: TransportOptions | None = None) -> None:
        endpoint = _read(spec)
        options = options or TransportOptions()
        own = KEY_VARIABLE if os.environ.get(KEY_VARIABLE) else None
        key = find_key(endpoint.url, options.key_env or own)
        self._client = JsonClient(endpoint.url, key, options)
        close_with(self, self._client.close)
        self._url, self._model = endpoint.url, endpoint.model
        self._dim: int | None = None

    @property
    def name(self) -> str:
        """Base URL and model; what stands behind them cannot be seen."""
        return f"{self._url}#{self._model}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, dim).

        Raises:
            TargetUnreachableError: No connection or complete reply after all retries.
            TargetResponseError: A refusal, a server that keeps failing, or a reply that holds
                no usable vectors.
        """
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        try:
            return wait_for(self._embed(list(texts)))
        except TargetError as error:
            hint = f"Check that it serves this model; its key belongs into {KEY_VARIABLE}."
            raise type(error)(error.message, hint) from error

    async def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
        return np.concatenate(await asyncio.gather(*map(self._ask, batches)))

    async def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        payload = {"model": self._model, "input": texts, "encoding_format": "float"}
        reply = await self._client.post("/embeddings", payload)
        try:
            # All vectors of one endpoint have one size, from call to call.
            vectors = _vectors(reply, len(texts))
            if self._dim not in (None, vectors.shape[1]):
                raise _UnusableError("the vectors' size has changed")
        except _UnusableError as error:
            raise TargetResponseError(f"{self._url} gave no usable embeddings: {error}.") from None
        self._dim = vectors.shape[1]
        return vectors


class _UnusableError(Exception):
    """Why a reply holds no embeddings."""


class _EmbeddingRow(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    index: int
    embedding: Annotated[list[float], Field(min_length=1)]


class _EmbeddingReply(BaseModel):
    data: list[_EmbeddingRow]


def _read(spec: str) -> Endpoint:
    try:
        endpoint = parse_endpoint(spec)
    except InputError:
        endpoint = None
    if endpoint is None or endpoint.model is None:
        # Not repeated here: what stands there may be a secret.
        raise InputError(
            "The embedder's address names no model, or cannot be read.",
            "Write URL#MODEL, e.g. http://host:port/v1#bge-small, without user name, password "
            f"or query; a key belongs into the environment variable {KEY_VARIABLE}.",
        )
    return endpoint


def _vectors(reply: object, count: int) -> NDArray[np.float32]:
    """Read a reply's vectors in the order of the texts and scale them to unit length.

    Raises:
        _UnusableError: Another form, number or size of vectors, or one without direction.
    """
    try:
        rows = sorted(_EmbeddingReply.model_validate(reply).data, key=lambda row: row.index)
    except ValidationError:
        raise _UnusableError("a field of the protocol is missing or has another type") from None
    if [row.index for row in rows] != list(range(count)):
        raise _UnusableError(f"{len(rows)} vectors for {count} texts, or wrongly numbered")
    if len({len(row.embedding) for row in rows}) > 1:
        raise _UnusableError("vectors of several sizes")
    vectors = np.array([row.embedding for row in rows])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise _UnusableError("a vector of zeros, which has no direction")
    units: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return units


# Embedders of tenants by name, one of our own without a model among them.

_MOST = 4096


class HashingEmbedder:
    """Signed feature hashing of words and pairs of words: lexical, no model, the same everywhere.

    Args:
        dimension: Of the vectors, from 16 to 4,096.

    Raises:
        InputError: ``dimension`` is outside that.
    """

    def __init__(self, dimension: int) -> None:
        if not 16 <= dimension <= _MOST:
            raise InputError(
                f"Hashed vectors have 16 to {_MOST} dimensions, not {dimension}.",
                "Write hashing:256.",
            )
        self._dimension = dimension

    @property
    def name(self) -> str:
        """The form that names it."""
        return f"hashing:{self._dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit-length vectors, shape (n, dimension); zeros for a text without words."""
        rows = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature in _features(text):
                # One hash gives place and sign (Weinberger et al. 2009): signs make collisions
                # cancel on average.
                drawn = int.from_bytes(hashlib.blake2b(feature, digest_size=8).digest(), "big")
                row[(drawn >> 1) % self._dimension] += 1.0 if drawn & 1 else -1.0
            row /= float(np.linalg.norm(row)) or 1.0
        return rows


_EMBEDDERS = Registry(
    "embedder",
    {**EMBEDDERS, "hashing": Listing(HashingEmbedder, form="hashing:DIMENSION")},
    more=", URL#MODEL",
)


def tenant_embedder(spec: str) -> Embedder:
    """Return the embedder ``spec`` names, loaded once per process.

    Args:
        spec: ``hashing:DIMENSION``, or what ``lab serve --retrieval`` takes: ``minilm``,
            ``hf:NAME_OR_FOLDER``, ``URL#MODEL``.

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
    """
    if spec.lower().startswith(("http://", "https://")):
        return load_embedder(spec)
    name, rest = _EMBEDDERS.split(spec)
    if name == "hashing":
        if not (rest.isascii() and rest.isdigit()):
            raise InputError(f"The embedder {spec!r} names no dimension.", "Write hashing:256.")
        return HashingEmbedder(int(rest))
    return load_embedder(spec)


def _features(text: str) -> list[bytes]:
    from ragwitness.text.words import core, split_words

    # Pairs keep some of the word order, which single words lose.
    found = (core(word.text).casefold() for word in split_words(text))
    words = [word.encode() for word in found if word]
    return words + [b" ".join(pair) for pair in pairwise(words)]
