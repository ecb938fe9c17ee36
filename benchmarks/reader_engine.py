"""The reader's engine against the one before it, in one run: prefill, decoding, a server, equality.

``python benchmarks/reader_engine.py CORPUS [--probes 500] [--repeat 3]``

CORPUS is JSON Lines of documents. The opponent reads with the former attention (all heads of a
block at once, maximum taken off, weights fetched for 128 tokens at a time), decodes every answer
alone, a core each, and guesses nothing. Both sides run in this process in turns on the same
prompts, S-RAG's over a lexical system; processor time is counted except where seconds are said.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import numpy as np
import uvicorn

from ragwitness.core.threads import one_blas_thread
from ragwitness.core.types import Document, Query
from ragwitness.membership.methods.srag import SRag, SRagConfig
from ragwitness.models.base import ChatPrompt, Generation
from ragwitness.models.decoding import Decoding
from ragwitness.models.reader import batch, forward
from ragwitness.models.reader.batch import Batch
from ragwitness.models.reader.forward import KeyValues, Network
from ragwitness.models.reader.model import Reader
from ragwitness.rag.pipeline import PARALLEL, RagSystem, build_system
from ragwitness.rag.server import create_app
from ragwitness.text.documents import load_documents

IN_FLIGHT = 8


class FormerNetwork(Network):
    """The same weights under the former attention."""

    def _attend(
        self, index: int, cache: KeyValues, stop: int, queries: np.ndarray, mixed: np.ndarray
    ) -> None:
        count, shared = len(queries), self.config.key_value_heads
        keys, values = cache.keys[index, ..., :stop], cache.values[index, :, :stop]
        grouped = queries.transpose(1, 0, 2).reshape(shared, -1, self.config.head_dim)
        scores = grouped @ keys
        if count > 1:
            scores.reshape(shared, -1, count, stop)[..., stop - count :] += self._unseen[
                :count, :count
            ]
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        found = scores @ values
        found /= scores.sum(-1, keepdims=True)
        heads = found.reshape(self.config.heads, count, -1).transpose(1, 0, 2)
        mixed.reshape(heads.shape)[...] = heads


class FormerReader(Reader):
    """Decodes the answers of each call by themselves, and as many calls at a time as cores."""

    @property
    def callers(self) -> int:
        return PARALLEL

    def _decode(self, encoded: Sequence[np.ndarray], answers: Sequence[Decoding]) -> None:
        with self._turns, one_blas_thread():
            alone = Batch(self._network, self.prefixes, 1)
            alone.complete(encoded, answers, self.tokenizer.stop_ids)


def _no_guess(said: np.ndarray, most: int) -> np.ndarray:
    del most
    return said[:0]


@contextmanager
def former_engine() -> Iterator[None]:
    """What is the same for every reader of the process, as it was."""
    kept = batch.guess, forward.PASS_TOKENS, forward.LEAST_ROWS
    batch.guess, forward.PASS_TOKENS, forward.LEAST_ROWS = _no_guess, forward.BLOCK_TOKENS, 1
    try:
        yield
    finally:
        batch.guess, forward.PASS_TOKENS, forward.LEAST_ROWS = kept


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def queries(reader: Reader, documents: Sequence[Document], mode: str) -> Iterator[Query]:
    """The first questions of S-RAG about each document."""
    audit = SRag(reader, SRagConfig(mode=mode))  # type: ignore[arg-type]
    for document in documents:
        try:
            yield from next(audit.probe(document))
        except StopIteration:
            continue


def operations(network: Network, tokens: int) -> float:
    """Floating-point operations that a prompt needs, the logits of its last position with it."""
    c = network.config
    inner, outer = c.heads * c.head_dim, 2 * c.key_value_heads * c.head_dim
    project, rest = c.width * (inner + outer), c.width * (inner + 3 * c.mlp_width)
    attend = inner * (tokens + 1)  # a position sees half of them on average, twice
    body = tokens * ((c.layers - 1) * (project + rest + attend) + project)
    return 2.0 * (body + rest + c.width * c.vocabulary)


def prefill(new: Reader, old: Reader, prompts: Sequence[np.ndarray], repeat: int) -> None:
    square = np.random.default_rng(0).standard_normal((1024, 1024), np.float32)
    tokens, rates = sum(map(len, prompts)), []

    def read(reader: Reader) -> None:
        for ids in prompts:
            reader.prefixes.reading(ids, capacity=len(ids), keep=1, reuse=False).hidden()

    with one_blas_thread():
        for _ in range(repeat):
            peak = 4 * 2 * 1024**3 / spent(lambda: [square @ square for _ in range(4)])
            with former_engine():
                before = spent(lambda: read(old))
            after = spent(lambda: read(new))
            done = sum(operations(new._network, len(ids)) for ids in prompts) / after
            rates.append((tokens / before, tokens / after, before / after, done / peak))
    names = ("former tok/s", "tok/s", "ratio", "of sgemm")
    for name, row in zip(names, zip(*rates, strict=True), strict=True):
        print(f"prefill, {len(prompts)} prompts of {tokens // len(prompts)}, {name}:", end=" ")
        print(
            " ".join(f"{value:.2f}" if value < 100 else f"{value:.0f}" for value in row), flush=True
        )


def decode_rate(reader: Reader, asked: Sequence[ChatPrompt], most: int) -> float:
    """Tokens generated per processor second, without the reading of the prompts."""
    answers = [
        Decoding(
            reader._vocabulary,
            prompt_tokens=0,
            room=most,
            temperature=0.0,
            top=20,
            stop=(),
            seed=None,
        )
        for _ in asked
    ]
    encoded = [reader._prompt_ids(prompt) for prompt in asked]
    read = 0.0
    for ids in encoded:
        reading = reader.prefixes.reading(ids, capacity=len(ids), keep=1, reuse=False)
        read += spent(reading.hidden)
    whole = spent(lambda: reader._decode(encoded, answers))
    made = sum(answer.result().completion_tokens for answer in answers)
    return made / max(1e-9, whole - read)


def decoding(new: Reader, old: Reader, asked: Sequence[ChatPrompt], most: int) -> None:
    for together in (1, 8, 32):
        part = asked[:together]
        with former_engine(), one_blas_thread():
            old.prefixes.clear()
            before = decode_rate(old, part, most)
        with one_blas_thread():
            new.prefixes.clear()
            after = decode_rate(new, part, most)
        print(f"decoded, {together} together: {before:.0f} and {after:.0f} tokens/s", end="")
        print(f", ratio {after / before:.1f}", flush=True)


@contextmanager
def served(system: RagSystem) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(system, key=""), log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
    finally:
        server.should_exit = True
        thread.join()


def serving(new: RagSystem, old: RagSystem, asked: Sequence[Query], repeat: int) -> None:
    def ask(url: str, query: Query) -> str:
        body = {
            "messages": [{"role": "user", "content": query.prompt}],
            "max_tokens": query.max_tokens,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": 20,
        }
        found = httpx2.post(url, json=body, timeout=600).raise_for_status().json()
        return str(found["choices"][0]["message"]["content"])

    def all_of(url: str) -> list[str]:
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            return list(pool.map(lambda query: ask(url, query), asked))

    for _ in range(repeat):
        seconds, cpu, texts, read = [], [], [], []
        for system in (old, new):
            store = system.generator.prefixes  # type: ignore[attr-defined]
            store.clear()
            before = store.reused_tokens, store.read_tokens
            with former_engine() if system is old else one_blas_thread(), served(system) as url:
                start = time.perf_counter()
                cpu.append(spent(lambda: texts.append(all_of(url))))  # noqa: B023
                seconds.append(time.perf_counter() - start)
            reused = store.reused_tokens - before[0]
            read.append(reused / (reused + store.read_tokens - before[1]))
        same = sum(a == b for a, b in zip(*texts, strict=True))
        former, now = (len(asked) / one for one in seconds)
        print(f"served, {len(asked)} single-mode queries, {IN_FLIGHT} in flight:", end=" ")
        print(f"{former:.2f} and {now:.2f} queries/s, ratio {now / former:.2f}", end="")
        print(f" (of processor time {cpu[0] / cpu[1]:.2f}); same text {same};", end=" ")
        print(f"tokens reused {read[0]:.0%} and {read[1]:.0%}", flush=True)


def equality(new: Reader, old: Reader, probes: Sequence[tuple[ChatPrompt, int]]) -> None:
    def ask(reader: Reader, probe: tuple[ChatPrompt, int]) -> Generation:
        prompt, most = probe
        return reader.generate([prompt], max_tokens=most, top_logprobs=20)[0]

    with former_engine():
        expected = [ask(old, probe) for probe in probes]
    alone = [ask(new, probe) for probe in probes]
    mixed = list(range(len(probes)))
    random.Random(1).shuffle(mixed)
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        found = dict(zip(mixed, pool.map(lambda i: ask(new, probes[i]), mixed), strict=True))
    same = [(a, b) for a, b in zip(expected, alone, strict=True) if a.text == b.text]
    tokens = [pair for a, b in same for pair in zip(a.tokens, b.tokens, strict=True)]
    listed = [
        ([t for t, _ in a.top], [t for t, _ in b.top], abs(a.logprob - b.logprob))
        for a, b in tokens
    ]
    print(f"{len(probes)} probes: same text {len(same)}, same order of 20 alternatives", end=" ")
    print(f"{sum(a == b for a, b, _ in listed)} of {len(listed)} tokens,", end=" ")
    print(f"largest difference of a log-probability {max(d for _, _, d in listed):.1e};", end=" ")
    print("alone and among others the same to the last bit:", end=" ")
    print(sum(found[place] == one for place, one in enumerate(alone)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--probes", type=int, default=500)
    parser.add_argument("--queries", type=int, default=48)
    parser.add_argument("--prompts", type=int, default=32, help="for prefill and decoding")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    documents = list(load_documents(options.corpus).documents)
    random.Random(0).shuffle(documents)
    new = Reader.load()
    old = FormerReader.load()
    old._network.__class__ = FormerNetwork
    systems = [build_system(documents[:600], generator=one) for one in (new, old)]

    def prompts(mode: str, count: int) -> list[tuple[ChatPrompt, int]]:
        # Half of the documents are in the database.
        asked = itertools.islice(queries(new, documents[540:], mode), count)
        return [(systems[0].prompt(q.prompt, q.max_tokens), q.max_tokens) for q in asked]

    few = prompts("few", options.prompts)
    prefill(new, old, [new._prompt_ids(prompt) for prompt, _ in few[:8]], options.repeat)
    decoding(new, old, [prompt for prompt, _ in few], 64)
    asked = itertools.islice(queries(new, documents[540:], "few"), options.queries)
    serving(systems[0], systems[1], list(asked), options.repeat)
    equality(new, old, prompts("probing", options.probes))


if __name__ == "__main__":
    main()
