"""Peak memory of an audit of many documents, with journal, report and JSON.

    python benchmarks/memory.py [documents] [method ...]

The target answers at once with tokens drawn at random, each with 20 alternatives, as much as any
endpoint may send; everything else is the audit as a user runs it. Each method has a process of
its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ragwitness.core.types import Answer, Capability, Document, Query, TokenLogprob
from ragwitness.membership.method_registry import build_audit
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.run import run_audit
from ragwitness.models.model_registry import load_language_model
from ragwitness.report.html import write_html
from ragwitness.report.result_registry import to_json
from ragwitness.text.sample import load_sample

_WORDS, _KNOWN, _ANSWER, _ALTERNATIVES = 120, 100, 60, 20


class _Talker:
    """Answers with random words, their log-probabilities and 20 alternatives."""

    name = "talker"
    capabilities = frozenset(Capability)

    def __init__(self, words: list[str]) -> None:
        self._words = words

    async def ask(self, query: Query) -> Answer:
        rng = random.Random(query.prompt)
        tokens = []
        for _ in range(min(query.max_tokens or _ANSWER, _ANSWER)):
            drawn = rng.choices(self._words, k=_ALTERNATIVES)
            top = tuple((f" {word}", -0.5 - 0.3 * place) for place, word in enumerate(drawn))
            tokens.append(TokenLogprob(*top[0], top))
        return Answer("".join(token.token for token in tokens), tuple(tokens), "length")

    async def close(self) -> None:
        return None


def _audit(method: str, count: int) -> None:
    words = [word for document in load_sample() for word in document.text.split()]
    rng = random.Random(0)
    documents = [
        Document(f"d{number}", " ".join(rng.choices(words, k=_WORDS)))
        for number in range(count + _KNOWN)
    ]
    plan = AuditPlan(tuple(documents[_KNOWN:]), known_out=tuple(documents[:_KNOWN]))
    audit = build_audit(method, load_language_model("reader"))
    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(run_audit(plan, _Talker(words), audit, run=Path(folder)))
        write_html(result, Path(folder) / "report.html")
        (Path(folder) / "result.json").write_text(json.dumps(to_json(result)), encoding="utf-8")
        journal = (Path(folder) / "answers.jsonl").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{method}: {count} documents of {_WORDS} words, {result.queries} queries,"
        f" peak {peak:.0f} MB, journal {journal / 1e6:.0f} MB, {time.monotonic() - clock:.0f} s"
    )


def main() -> None:
    """Run each method in a process of its own."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    methods = sys.argv[2:] or ["s-rag", "mba"]
    if len(methods) == 1:
        _audit(methods[0], count)
        return
    for method in methods:
        subprocess.run([sys.executable, __file__, str(count), method], check=True)


if __name__ == "__main__":
    main()
