"""A small corpus with names and numbers in it, made over HTTP and checked by other means."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from ragwitness.core.types import Document
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.synthesis.agents import MakingConfig
from ragwitness.synthesis.generator_registry import build_method, guard_config
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.private.evolution import Candidates, PrivateConfig
from ragwitness.synthesis.run import SynthesisResult, run_synthesis, write_made
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from ragwitness.text.overlap import Vocabulary, shared_runs
from ragwitness.text.sample import load_sample
from ragwitness.text.secrets import Secret, SecretIndex

NAMES = ["Ada Fenn", "Ben Oakley", "Cora Hale", "Dov Marsh", "Eli Stone", "Fay Reed"]


def corpus(n: int = 6) -> list[Document]:
    texts = [document.text for document in load_sample()[:n]]
    return [
        Document(f"d{i}", f"{text} Signed by {NAMES[i % 6]}, call 555 010 20{i:02d}.")
        for i, text in enumerate(texts)
    ]


def secrets(documents: list[Document]) -> list[Secret]:
    return [Secret(NAMES[i % 6], "name", d.id) for i, d in enumerate(documents)]


def make(
    url: str,
    documents: list[Document],
    run: Path | None,
    *,
    method: str = "sage",
    budget: Budget | None = None,
    evaluation: bool = False,
    config: MakingConfig | None = None,
    timeout: float = 5.0,
    private: tuple[PrivateConfig, Candidates] | None = None,
) -> SynthesisResult:
    known = secrets(documents)
    guard = SyntheticGuard(
        [d.text for d in documents], known, guard_config(method, GuardConfig(pii="contacts"))
    )
    made = build_method(
        method, config, known, pii="contacts", evaluation=evaluation, private=private
    )

    async def work() -> SynthesisResult:
        with RateLimiter.of_run(run, budget, 3) as limiter:
            options = TransportOptions(
                retry=RetryPolicy(retries=1, first=0.005, longest=0.01),
                read_timeout=timeout,
                setback=limiter.setback,
            )
            async with await OpenAITarget.connect(f"{url}#m", options) as target:
                return await run_synthesis(
                    documents, made, guard, target, run=run, in_flight=3, limiter=limiter
                )

    return asyncio.run(work())


def assert_safe(path: Path, documents: list[Document]) -> list[dict[str, str]]:
    """Check a written file by other means than the guard's."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    texts = [row["text"] for row in rows]
    vocabulary = Vocabulary()
    said, known = vocabulary.tokenize(texts), vocabulary.tokenize([d.text for d in documents])
    assert not shared_runs(said, known, 8).outputs.any()
    assert not SecretIndex(secrets(documents)).pairs(texts)
    assert not any(name.split()[0] in text for name in NAMES for text in texts)
    assert not any("555" in text for text in texts)
    return rows


def assert_safe_after(
    out: Path, result: SynthesisResult, documents: list[Document]
) -> list[dict[str, str]]:
    write_made(out, result)
    return assert_safe(out, documents)
