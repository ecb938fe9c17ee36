"""What the harness adds to the waiting: 1,000 queries at a server that takes 50 ms for each.

    python benchmarks/overhead.py [queries] [concurrency] [units ...]

The same queries, by the same client and as many at a time, go out from a bare loop of tasks and
from a worker with its rate limiter, journal and ledger. Goals: at most 5 % more wall time, at least
90 % of the throughput. Then the peak memory of runs of 1,000 and 20,000 units (two processes):
flat within 10 %. The server has a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Worker
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.transport import TransportOptions

_SECONDS, _ROUNDS = 0.05, 3
_ANSWER = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 2},
}


class _One:
    """An audit of one query."""

    name = "one"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        (answer,) = yield [Query(document.text, 8)]
        if answer.error:
            return Score(None, reason=answer.error)
        return Score(float(len(answer.text)))


class _AtOnce:
    """A target in this process, for memory alone."""

    name = "at once"
    capabilities = frozenset({Capability.TEXT})

    async def ask(self, query: Query) -> Answer:
        return Answer("Yes.", prompt_tokens=len(query.prompt), completion_tokens=2)

    async def close(self) -> None:
        return None


def _documents(n: int) -> list[Document]:
    return [Document(f"d{i}", f"Is text number {i} in the database?") for i in range(n)]


async def _serve() -> None:
    """Answer chat completions after a while; print the port."""
    body = json.dumps(_ANSWER).encode()
    reply = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        + f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.decode("latin-1").lower().splitlines()
            length = next(int(x[15:]) for x in lines if x.startswith("content-length:"))
            await reader.readexactly(length)
            await asyncio.sleep(_SECONDS)
            writer.write(reply)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _bare(url: str, documents: list[Document], concurrency: int) -> float:
    """Ask as many at a time, keep nothing."""
    waiting = iter(documents)
    options = TransportOptions(concurrency=concurrency)
    async with await OpenAITarget.connect(f"{url}#m", options) as target:

        async def take() -> None:
            for document in waiting:
                await target.ask(Query(document.text, 8))

        clock = time.perf_counter()
        await asyncio.gather(*(take() for _ in range(concurrency)))
        return time.perf_counter() - clock


async def _harness(url: str, documents: list[Document], concurrency: int) -> float:
    """Ask through worker, rate limiter, journal and ledger."""
    with (
        tempfile.TemporaryDirectory() as folder,
        RateLimiter.of_run(Path(folder), at_once=concurrency) as limiter,
        ResponseStore(Path(folder) / "answers.jsonl") as journal,
    ):
        options = TransportOptions(concurrency=concurrency, setback=limiter.setback)
        async with await OpenAITarget.connect(f"{url}#m", options) as target:
            worker = Worker(target, journal, concurrency, limiter=limiter)
            clock = time.perf_counter()
            outcomes = await worker.run(_One(), documents, "documents")
            seconds = time.perf_counter() - clock
    if any(outcome.score.value is None for outcome in outcomes):
        raise SystemExit("a query failed; the comparison would not be fair")
    return seconds


def _overhead(queries: int, concurrency: int) -> None:
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"  # type: ignore[union-attr]
            documents, bare, harness = _documents(queries), [], []
            asyncio.run(_bare(url, documents[: 2 * concurrency], concurrency))  # warm
            for _ in range(_ROUNDS):  # in turn: what else the machine does meets both
                bare.append(asyncio.run(_bare(url, documents, concurrency)))
                harness.append(asyncio.run(_harness(url, documents, concurrency)))
        finally:
            server.terminate()
    one, other = statistics.median(bare), statistics.median(harness)
    print(
        f"{queries} queries of {1000 * _SECONDS:.0f} ms, {concurrency} at a time, median of"
        f" {_ROUNDS}: bare {one:.2f} s, harness {other:.2f} s"
        f" ({100 * (other / one - 1):+.1f} % wall time, {100 * one / other:.1f} % of the"
        f" throughput; least possible {queries * _SECONDS / concurrency:.2f} s)"
    )


async def _many(units: int) -> None:
    proxy = load_language_model("reader")  # what every command holds
    proxy.count_tokens("warm")
    with (
        tempfile.TemporaryDirectory() as folder,
        RateLimiter.of_run(Path(folder)) as limiter,
        ResponseStore(Path(folder) / "answers.jsonl") as journal,
    ):
        worker = Worker(_AtOnce(), journal, 4, limiter=limiter)
        await worker.run(_One(), _documents(units), "documents")


def _memory(units: list[int]) -> None:
    peaks = []
    for count in units:
        command = [sys.executable, __file__, "--units", str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
        print(f"{count} units: peak {peaks[-1]:.1f} MB")
    more = peaks[-1] - peaks[0]
    print(
        f"from the first to the last: {100 * more / peaks[0]:+.1f} %,"
        f" {1024 * more / max(1, units[-1] - units[0]):.2f} KB a unit (documents and outcomes)"
    )


def main() -> None:
    """Compare wall time, then memory."""
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(_serve())
    elif sys.argv[1:2] == ["--units"]:
        asyncio.run(_many(int(sys.argv[2])))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    else:
        numbers = [int(text) for text in sys.argv[1:]]
        queries, concurrency, *units = numbers + [1000, 16][len(numbers) :]
        _overhead(queries, concurrency)
        _memory(units or [1000, 20_000])


if __name__ == "__main__":
    main()
