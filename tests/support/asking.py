"""A small audit of two rounds, and a program that runs it at an endpoint so it can be killed.

python -m tests.support.asking URL RUN_FOLDER OUT DOCUMENTS [MAX_QUERIES] [MAX_FILE_BYTES]
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import nullcontext
from pathlib import Path

from ragwitness.core.errors import RagwitnessError
from ragwitness.core.types import Capability, Document, Probe, Query, Score
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Worker
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.support.full_disk import full_disk

AT_ONCE = 4


class TwoRounds:
    """Two questions together, then one about their answers."""

    name = "two rounds"
    requires = frozenset({Capability.TOP_LOGPROBS})

    def probe(self, document: Document) -> Probe:
        asked = [Query(f"{document.text}, part {part}", 8, top_logprobs=1) for part in "ab"]
        answers = yield asked
        for _ in range(2):
            for answer in answers:
                if answer.error or answer.tokens is None:
                    return Score(None, reason=answer.error or "no log-probabilities came")
            if len(answers) == 1:
                break
            said = " ".join(answer.text for answer in answers)
            answers = yield [Query(f"{document.text} {said}", 8, top_logprobs=1)]
        return Score(answers[0].tokens[0].logprob, features=(float(int(answers[0].text, 16)),))


def documents(n: int) -> list[Document]:
    return [Document(f"d{i}", f"text number {i}") for i in range(n)]


async def ask(
    url: str, run: Path, n: int, budget: Budget | None = None, **options: float
) -> tuple[list[Outcome], RateLimiter]:
    """Run the audit; quick to retry."""
    with RateLimiter.of_run(run, budget, AT_ONCE) as limiter:
        transport = TransportOptions(
            retry=RetryPolicy(retries=3, first=0.005, longest=0.02),
            concurrency=AT_ONCE,
            setback=limiter.setback,
            **options,
        )
        async with await OpenAITarget.connect(f"{url}#m", transport) as target:
            with ResponseStore(run / "answers.jsonl") as journal:
                worker = Worker(target, journal, AT_ONCE, limiter=limiter)
                return await worker.run(TwoRounds(), documents(n), "documents"), limiter


def scores(outcomes: list[Outcome]) -> str:
    """The scores, as bytes can be compared."""
    rows = [(o.document.id, o.score.value, o.score.features, o.score.reason) for o in outcomes]
    return json.dumps(rows, indent=1)


def main(url: str, run: str, out: str, n: str, cap: str = "0", size: str = "0") -> None:
    budget = Budget(queries=int(cap) or None)
    try:
        with full_disk(int(size)) if int(size) else nullcontext():
            outcomes, _ = asyncio.run(ask(url, Path(run), int(n), budget))
    except RagwitnessError as error:
        sys.exit(f"error: {error.message}\n  next: {error.hint}")
    Path(out).write_text(scores(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
