"""Models behind an OpenAI-compatible endpoint: another machine's, or a GGUF file's in here.

Chat models write texts with log-probabilities of their tokens. They do not score a given text
and do not go on from a given beginning: the protocol's chat has no place for either. A GGUF file
does both, by the native interface of llama.cpp's server.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import (
    CapabilityError,
    InputError,
    ModelError,
    TargetError,
    TargetResponseError,
    import_extra,
)
from ragwitness.core.files import files_digest
from ragwitness.core.types import Answer, Query, TokenLogprob
from ragwitness.models.base import ChatPrompt, Generation, PromptTooLongError, TextScores
from ragwitness.models.bent_file import refuse_bent
from ragwitness.models.reader.model import PACKAGED_WEIGHTS
from ragwitness.models.reader.tokens import ReaderTokenizer
from ragwitness.targets.failures import Key, find_key
from ragwitness.targets.openai import Endpoint, OpenAITarget, parse_endpoint
from ragwitness.targets.resolve import open_target
from ragwitness.targets.transport import JsonClient, TransportOptions

T = TypeVar("T")

CONTEXT_VARIABLE = "RAGWITNESS_CHAT_CONTEXT"
"""Tokens that chat models read, prompt and answer together. Unset: what an endpoint says, else
4,096; of a GGUF file what its model was trained for, and at most 8,192, for memory's sake."""

THREADS_VARIABLE = "RAGWITNESS_CHAT_THREADS"
"""Threads of a GGUF file's model. One by default: on a machine that is busy, two wait for each
other and are many times slower."""

_UNKNOWN_CONTEXT = 4096  # what the smallest of today's models and servers read by default
_LARGEST_CONTEXT = 8192

_OPTIONS = TransportOptions(read_timeout=600.0, concurrency=32)

# Where lists of models say how much one reads: llama.cpp, vLLM, OpenRouter, Groq, LM Studio.
_LENGTHS = ("n_ctx", "max_model_len", "context_length", "context_window", "max_context_length")

# How endpoints refuse a prompt for its length: llama.cpp; OpenAI and vLLM; Anthropic; TGI.
_TOO_LONG = re.compile(
    r"context (size|length|window)|context_length_exceeded|prompt is too long|`inputs` tokens",
    re.IGNORECASE,
)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="endpoints", daemon=True).start()
    return loop


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run requests in the one event loop of all endpoints, which has a thread, and wait.

    Systems are built and asked inside running loops and in many threads; connections stay open
    from one call to the next because their loop does.
    """
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def close_with(owner: object, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close connections when their owner is collected: a model has no ``close``."""
    goes = weakref.finalize(owner, lambda: asyncio.run_coroutine_threadsafe(close(), _loop()))
    goes.atexit = False


class EndpointModel:
    """A :class:`~ragwitness.models.base.LanguageModel` that writes, and does not score.

    Args:
        target: The endpoint with its model.
        context: Tokens that it reads; None asks for it.

    Raises:
        TargetError: The endpoint is not there.

    Attributes:
        callers: Questions worth asking at a time.
        can_score: False: see :meth:`score`.
        context_length: Tokens it reads, prompt and answer together.
    """

    callers = 32
    can_score = False

    def __init__(self, target: OpenAITarget, context: int | None = None) -> None:
        self._target, self._answers = target, False
        close_with(self, target.close)
        self.context_length = context or wait_for(self._listed_context()) or _UNKNOWN_CONTEXT

    @classmethod
    def load(cls, address: str) -> EndpointModel:
        """Open ``URL#MODEL``, ``openai/MODEL`` or ``openai-api/NAME/MODEL``, keys as of targets.

        Raises:
            InputError: The address cannot be read, or names no model of several.
            TargetError: The endpoint does not answer.
        """
        target = wait_for(open_target(address, _OPTIONS))
        assert isinstance(target, OpenAITarget)  # noqa: S101 - the registry passes no other address
        return cls(target, _whole_number(CONTEXT_VARIABLE))

    @property
    def name(self) -> str:
        """The address; the weights behind it are unknown."""
        return self._target.name

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, rather too many: as the embedded reader counts.

        Its vocabulary of 6,144 tokens is a tenth of a chat model's or less, so its tokens are
        shorter (docs/chat-models.md has the comparison).
        """
        return len(_estimator().encode(text))

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Refuse: the protocol gives no log-probabilities of a given text.

        Raises:
            CapabilityError: Always.
        """
        del texts, after, top
        raise CapabilityError(
            f"{self.name} is a chat model: it writes texts and cannot score given ones (logprobs"
            " of a prompt), as an auditor's own model must.",
            "Use the embedded reader: --proxy reader; or hf:NAME_OR_FOLDER.",
        )

    def generate(
        self,
        prompts: Sequence[ChatPrompt],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        stop: Sequence[str] = (),
        seed: int | None = None,
    ) -> list[Generation]:
        """Answer each conversation; see :class:`~ragwitness.models.base.LanguageModel`.

        Raises:
            PromptTooLongError: The endpoint refuses a prompt for its length.
            CapabilityError: A prompt begins the answer, or log-probabilities are refused.
            TargetError: The endpoint does not answer as a chat model does.
        """
        query = Query("", max_tokens, temperature, top_logprobs, seed)

        async def ask_all() -> list[Answer]:
            asking = (self._ask(prompt, query, stop) for prompt in prompts)
            return list(await asyncio.gather(*asking))

        return [self._read(*pair) for pair in zip(prompts, wait_for(ask_all()), strict=True)]

    async def _ask(self, prompt: ChatPrompt, query: Query, stop: Sequence[str]) -> Answer:
        if prompt.prefill or not prompt.messages:
            raise CapabilityError(
                f"{self.name} is a chat model: it answers messages, and does not go on with a text"
                " as it stands.",
                "Ask it through /chat/completions, or use hf:NAME_OR_FOLDER.",
            )
        try:
            answer = await self._target.chat(prompt.messages, query, stop)
        except TargetResponseError as error:
            if _TOO_LONG.search(error.message):
                raise PromptTooLongError(error.message) from None
            if self._answers:
                raise
            hint = f"{error.hint} A model must answer chats: URL#MODEL."
            raise TargetResponseError(error.message, hint) from None
        self._answers = True
        return answer

    def _read(self, prompt: ChatPrompt, answer: Answer) -> Generation:
        """Turn an answer into a generation; what the endpoint does not count is counted here."""
        read, written = answer.prompt_tokens, answer.completion_tokens
        if read is None:
            read = sum(self.count_tokens(message.content) for message in prompt.messages)
        if written is None:
            written = self.count_tokens(answer.text)
        finished = answer.finish_reason or "stop"
        return Generation(answer.text, answer.tokens or (), finished, read, written)

    async def _listed_context(self) -> int | None:
        try:
            listed = await self._target.listed()
        except TargetResponseError:  # many a chat endpoint has no list of its models
            return None
        within = listed.get("meta")
        entry = listed | (within if isinstance(within, dict) else {})
        lengths = (entry.get(name) for name in _LENGTHS)
        return next((length for length in lengths if type(length) is int and length > 0), None)


class GgufModel(EndpointModel):
    """A chat model out of a GGUF file, run in this process by llama.cpp.

    llama.cpp's server listens on a free port of the loopback, with a secret key. So a file is asked
    by the same protocol as any endpoint. Answers do not depend on earlier questions, and sampling
    draws from all tokens.

    Args:
        file: The GGUF file.

    Raises:
        MissingExtraError: The extra ``chat`` is not installed.
        ModelError: The file is missing, cut short, no GGUF, or of an unknown architecture.
    """

    callers = 1
    can_score = True

    def __init__(self, file: str) -> None:
        path = Path(file)
        if not path.is_file():
            raise ModelError(
                f"There is no file {file}.", "Name a GGUF file; make chat fetches a small one."
            )
        library = import_extra("xllamacpp", "A GGUF file", "chat")
        key = Key(None, secrets.token_urlsafe())
        context = _whole_number(CONTEXT_VARIABLE) or _LARGEST_CONTEXT
        parameters = _parameters(library, path, context, str(key.value))
        refuse_bent(path)
        self._server = library.Server(parameters)
        root = self._server.listening_address
        self._native = JsonClient(root, key, _OPTIONS)
        close_with(self, self._native.close)
        super().__init__(OpenAITarget(Endpoint(f"{root}/v1", path.stem), _OPTIONS, key=key))
        reply: Any = wait_for(self._native.send("POST", "/tokenize", {"content": "a"}))
        self._plain_token = int(reply["tokens"][-1])
        self._name = f"gguf:{path.stem}@{files_digest([path])[:6]}"

    @property
    def name(self) -> str:
        """``gguf:``, the file's name and the first six digits of its sha256."""
        return self._name

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer."""
        reply: Any = wait_for(self._native.send("POST", "/tokenize", {"content": text}))
        return len(reply["tokens"])

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Score each text; see :class:`~ragwitness.models.base.LanguageModel`.

        Half a character beyond the first 100 tokens of its place has the probability of the last
        of them, which is never below its own.
        """
        prompts = after or [ChatPrompt(())] * len(texts)
        pairs = zip(texts, prompts, strict=True)
        return [wait_for(self._score(text, prompt, top)) for text, prompt in pairs]

    async def _score(self, text: str, prompt: ChatPrompt, top: int) -> TextScores:
        # 1. The conversation in the model's own form, and its tokens with those of the text.
        start = prompt.prefill
        if prompt.messages:
            turns = [{"role": turn.role.value, "content": turn.content} for turn in prompt.messages]
            form: Any = await self._native.send("POST", "/apply-template", {"messages": turns})
            start = form["prompt"] + start
        listed: Any = await self._native.send(
            "POST",
            "/tokenize",
            {"content": start + text}
            | dict.fromkeys(("add_special", "parse_special", "with_pieces"), True),
        )
        ids = [token["id"] for token in listed["tokens"]]
        if len(ids) > self.context_length:
            raise PromptTooLongError(
                f"{len(ids)} tokens do not fit into the {self.context_length} that {self.name}"
                " reads."
            )
        ends = _character_ends([token["piece"] for token in listed["tokens"]], start + text)
        first = next((n for n, end in enumerate(ends) if end > len(start)), len(ids))
        # 2. One step for each token of the text: the probability of its token.
        rows = [
            await self._next_token(ids[:n], ids[n], top) if n else _UNSCORED
            for n in range(first, len(ids))
        ]
        offsets = [
            (max(0, ends[n - 1] - len(start)) if n else 0, ends[n] - len(start))
            for n in range(first, len(ids))
        ]
        return TextScores(
            np.array(ids[first:], np.int64),
            np.array(offsets, np.int64).reshape(-1, 2),
            np.array([row.logprob for row, _ in rows]),
            np.array([rank for _, rank in rows], np.int64),
            tuple(row for row, _ in rows) if top else (),
            first,
        )

    async def _next_token(self, ids: list[int], true: int, top: int) -> tuple[TokenLogprob, int]:
        """Return the token at a place with its probability and rank."""
        body = {"prompt": ids, "n_predict": 1, "n_probs": max(_LISTED, top), "temperature": 0.0}
        body |= {"cache_prompt": True}
        step: Any = None
        # The token is forced, so that its probability is reported; a piece of a character is not.
        for forced in (true, self._plain_token):
            steered = body | {"logit_bias": [[forced, _FORCE]]}
            reply: Any = await self._native.send("POST", "/completion", steered)
            if steps := reply.get("completion_probabilities"):
                (step,) = steps
                break
        listed = step["top_logprobs"]
        entry = (
            step if step["id"] == true else next((t for t in listed if t["id"] == true), listed[-1])
        )
        rank = sum(token["logprob"] > entry["logprob"] for token in listed)
        alternatives = tuple((token["token"], token["logprob"]) for token in listed[:top])
        return TokenLogprob(entry["token"], min(0.0, entry["logprob"]), alternatives), rank


_LISTED = 100  # alternatives of a place that are listed: larger ranks are equal
_FORCE = 1000.0  # added to the logit of a token that must come; probabilities are those before
_UNSCORED = (TokenLogprob("", float("nan")), 0)


def _character_ends(pieces: Sequence[str | list[int]], text: str) -> list[int]:
    """Return the character of ``text`` at which each token ends; a start token ends at 0."""
    encoded = [p.encode() if isinstance(p, str) else bytes(p) for p in pieces]
    spelled, content = b"".join(encoded), text.encode()
    # A start token and a leading space that the tokenizer adds are no part of the text.
    extra = len(spelled) - len(content)
    ends, total = list[int](), -extra
    for piece in encoded:
        total += len(piece)
        ends.append(len(content[: max(0, total)].decode(errors="ignore")))
    return ends


def _parameters(library: Any, path: Path, context: int, key: str) -> Any:
    threads = _whole_number(THREADS_VARIABLE) or 1
    parameters = library.CommonParams()
    parameters.model.path, parameters.model_alias = str(path), {path.stem}
    parameters.n_ctx, parameters.n_parallel, parameters.fit_params = context, 1, False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    # No answer may depend on what was asked before.
    parameters.cache_prompt, parameters.cache_ram_mib, parameters.warmup = False, 0, False
    # The whole distribution, as everywhere here: a temperature is the only change to it.
    parameters.sampling.top_k, parameters.sampling.top_p, parameters.sampling.min_p = 0, 1.0, 0.0
    parameters.api_keys, parameters.ui, parameters.endpoint_slots = [key], False, False
    parameters.verbosity = -1
    return parameters


def _whole_number(variable: str) -> int | None:
    """Return the number in an environment variable; None where it is not set.

    Raises:
        InputError: It is no whole number above 0.
    """
    value = os.environ.get(variable, "").strip()
    if value and not (value.isascii() and value.isdigit() and int(value)):
        raise InputError(
            f"{variable} is {value!r}.", "Set it to a whole number above 0, or unset it."
        )
    return int(value) if value else None


@cache
def _estimator() -> ReaderTokenizer:
    return ReaderTokenizer(PACKAGED_WEIGHTS)


# Embeddings of an endpoint.

KEY_VARIABLE = "RAGWITNESS_EMBEDDINGS_KEY"
"""Environment variable with the key of the embeddings endpoint; unset, ``OPENAI_API_KEY`` goes
to ``https://api.openai.com`` alone, as for targets."""

_BATCH = 64
"""Texts per request."""


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
        variable = KEY_VARIABLE if os.environ.get(KEY_VARIABLE) else None
        key = find_key(endpoint.url, options.key_env or variable)
        self._client = JsonClient(endpoint.url, key, options)
        close_with(self, self._client.close)
        self._url, self._model = endpoint.url, endpoint.model
        self._dim: int | None = None

    @property
    def name(self) -> str:
        """Base URL and model; the weights behind them are unknown."""
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
        reply = await self._client.send("POST", "/embeddings", payload)
        try:
            # All vectors of one endpoint have one size, from call to call.
            vectors = _vectors(reply, len(texts))
            if self._dim not in (None, vectors.shape[1]):
                raise ValueError("the vectors' size has changed")
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error}" if isinstance(error, ValueError) else "a field is missing or odd"
            raise TargetResponseError(f"{self._url} gave no usable embeddings: {reason}.") from None
        self._dim = vectors.shape[1]
        return vectors


def _read(spec: str) -> Endpoint:
    try:
        endpoint = parse_endpoint(spec)
    except InputError:
        endpoint = None
    if endpoint is None or endpoint.model is None:
        # The address is not quoted: it may hold a secret.
        raise InputError(
            "The embedder's address names no model, or cannot be read.",
            "Write URL#MODEL, e.g. http://host:port/v1#bge-small, without user name, password "
            f"or query; a key belongs into the environment variable {KEY_VARIABLE}.",
        )
    return endpoint


def _vectors(reply: Any, count: int) -> NDArray[np.float32]:
    """Read a reply's vectors in the order of the texts and scale them to unit length.

    Raises:
        ValueError: Another form, number or size of vectors, or one without direction.
        KeyError: A field is missing.
        TypeError: A field has another type.
    """
    rows = sorted(reply["data"], key=lambda row: row["index"])
    if [row["index"] for row in rows] != list(range(count)):
        raise ValueError(f"{len(rows)} vectors for {count} texts, or wrongly numbered")
    if len({len(row["embedding"]) for row in rows}) > 1:
        raise ValueError("vectors of several sizes")
    try:
        vectors = np.array([row["embedding"] for row in rows], np.float64)
    except ValueError:  # its message quotes the reply
        raise TypeError from None
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise ValueError("a vector of zeros or of no numbers, which has no direction")
    units: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return units
