"""A tiny language model and embedder, and servers in a thread, for the tests beside."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import uvicorn
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError
from ragwitness.core.types import Document, Role, TokenLogprob
from ragwitness.models.base import ChatPrompt, Generation, TextScores
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import RagSystem, build_system

CORPUS = [
    Document("d0", "Maria Keller came on 2024-03-01 with a fever of 39.4 degrees and a red rash."),
    Document("d1", "The contract with Nordwind ends in 2027 and pays 5200 euros every month."),
    Document("d2", "My router loses its connection whenever the microwave oven is running."),
    Document("d3", "Травма колена лечилась покоем и холодом три недели подряд."),
    Document("d4", "患者は頭痛と発熱を訴えて来院した。"),
    Document("d5", "Penguins of the southern coast hunt krill in small and noisy groups."),
]

_PIECE = re.compile(r"\s*\S+|\s+$")


class FakeModel:
    """Copies from the context: the word after the last word said, where it stands there."""

    name = "fake@1"

    def __init__(self, context_length: int = 400, delay: float = 0.0) -> None:
        self.context_length = context_length
        self.delay = delay
        self.prompts: list[ChatPrompt] = []
        self.calls = 0
        self.running = 0
        self.most_running = 0

    def count_tokens(self, text: str) -> int:
        return len(_PIECE.findall(text))

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        prompts = after or [ChatPrompt(()) for _ in texts]
        return [self._score(t, p, top) for t, p in zip(texts, prompts, strict=True)]

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
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        time.sleep(self.delay)
        self.calls += 1
        self.prompts += prompts
        try:
            return [self._generate(p, max_tokens, top_logprobs, stop, seed) for p in prompts]
        finally:
            self.running -= 1

    def _score(self, text: str, prompt: ChatPrompt, top: int) -> TextScores:
        spans = [(m.start(), m.end()) for m in _PIECE.finditer(text)]
        context = _system(prompt)
        rows = [self._token(text[:a], text[a:b], context, top) for a, b in spans]
        return TextScores(
            ids=np.arange(len(spans)),
            offsets=np.array(spans, np.int64).reshape(-1, 2),
            logprobs=np.array([row.logprob for row in rows], float),
            ranks=np.zeros(len(spans), np.int64),
            tokens=tuple(rows) if top else (),
            prompt_tokens=self._read(prompt),
        )

    def _generate(
        self, prompt: ChatPrompt, limit: int, top: int, stop: Sequence[str], seed: int | None
    ) -> Generation:
        read = self._read(prompt)
        if read + limit > self.context_length:
            raise ModelError("too long at /secret/path")
        context, said = _system(prompt), prompt.prefill or prompt.messages[-1].content
        tokens: list[TokenLogprob] = []
        for _ in range(limit):
            word = _next_word(context, said)
            if word is None:
                break
            tokens.append(self._token(said, f" {word}", context, top))
            said += f" {word}"
        text = "".join(token.token for token in tokens)
        for end in stop:
            if end in text:
                text = text[: text.index(end)]
        finish = "length" if len(tokens) == limit else "stop"
        return Generation(text, tuple(tokens), finish, read, len(tokens))

    def _token(self, before: str, token: str, context: str, top: int) -> TokenLogprob:
        sure = _next_word(context, before) == token.strip()
        spread = int(hashlib.sha256((before + token).encode()).hexdigest()[:6], 16) / 16**6
        logprob = math.log(0.95 if sure else 0.01 + 0.02 * spread)
        others = [(f" other{i}", -5.0 - i) for i in range(20)]
        ranked = sorted([(token, logprob), *others], key=lambda pair: -pair[1])
        return TokenLogprob(token, logprob, tuple(ranked[:top]))

    def _read(self, prompt: ChatPrompt) -> int:
        said = [m.content for m in prompt.messages] + [prompt.prefill]
        return sum(self.count_tokens(text) for text in said) + 4


class FakeEmbedder:
    """Hashes words into a unit vector."""

    name = "hashes@1"

    def __init__(self, dim: int = 64) -> None:
        self.dim = dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) % self.dim] += 1
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows


def make_system(model: FakeModel | None = None, **config: Any) -> RagSystem:
    config.setdefault("k", 2)
    return build_system(
        CORPUS,
        RagConfig(**config),
        generator=model or FakeModel(),
        embedder=FakeEmbedder(),
    )


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Run an ASGI app on a free loopback port; yield its base URL with /v1."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        log_level="critical",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(5)
        listener.close()


def _system(prompt: ChatPrompt) -> str:
    return "".join(m.content for m in prompt.messages if m.role is Role.SYSTEM)


def _next_word(context: str, said: str) -> str | None:
    last, words = said.split()[-1:], context.split()
    if not last or last[0] not in words[:-1]:
        return None
    return words[words.index(last[0]) + 1]
