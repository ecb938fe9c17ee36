"""The check of calibration documents: false alarms where sets are alike, and what it notices.

    python benchmarks/unlike_sets.py DATA [--splits 400] [--only null|kinds|missed] [--method mba]

DATA is the folder of the data sets (jsonl). Nothing is asked of any target. Under the null one
corpus is split at random, 40 documents in question against 100 that calibrate (and other sizes),
so every alarm is false. Then 40 dialogues meet 100 calibration documents of several other kinds.

With --only missed the two kinds that the comparison misses, mixtures of few foreign documents among
alike ones, are asked for real: a system of our own holds 500 dialogues, and 140 others, 25 of the
other source and 10 articles are scored once. Then mixtures are drawn 500 times from these scores.
Every verdict in is wrong there, and is labelled exact. Answers are kept in build/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Document
from ragwitness.membership.assumptions import likeness
from ragwitness.membership.method_registry import build_audit
from ragwitness.membership.results.assumptions import LEVEL
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Worker
from ragwitness.stats.p_values import benjamini_hochberg, conformal_p_values
from ragwitness.stats.rates import proportion_interval

_NULL = (
    ("medical-qa", 40, 100),
    ("healthcaremagic", 40, 100),
    ("medical-qa", 20, 20),
    ("medical-qa", 5, 100),
    ("medical-qa", 1, 100),
    ("patients", 40, 100),
)
_ASKED, _KNOWN, _INDEXED, _ALPHA = 40, 100, 500, 0.05
_JOURNALS = Path("build/benchmarks/unlike_sets")


def read(data: Path, name: str) -> list[str]:
    """Return the texts of a corpus in their order."""
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return [row.get("text") or row["document"] for row in rows]


def _documents(texts: list[str]) -> tuple[Document, ...]:
    return tuple(Document(str(at), text) for at, text in enumerate(texts))


def kinds(data: Path, rng: random.Random) -> Mapping[str, Callable[[list[str]], list[str]]]:
    """Return 20 kinds of unlike calibration sets, each made from free dialogues or elsewhere."""

    def other(name: str, words: int | None = None) -> Callable[[list[str]], list[str]]:
        return lambda _: [
            " ".join(text.split()[:words]) for text in rng.sample(read(data, name), _KNOWN)
        ]

    def each(change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
        return lambda free: [change(text) for text in free[:_KNOWN]]

    def mixed(name: str, share: float) -> Callable[[list[str]], list[str]]:
        n = round(_KNOWN * share)
        return lambda free: free[: _KNOWN - n] + rng.sample(read(data, name), n)

    def first_half(text: str) -> str:
        return " ".join(text.split()[: len(text.split()) // 2])

    return {
        "other source, same field": other("medical-qa"),
        "articles": other("farad"),
        "articles, first 150 words": other("farad", 150),
        "abstracts": other("pubmedqa"),
        "records of patients": other("patients"),
        "fairy tales": other("fairytaleqa"),
        "transcripts of meetings": other("qmsum"),
        "shortest third": lambda free: sorted(free, key=len)[:_KNOWN],
        "longest third": lambda free: sorted(free, key=len)[-_KNOWN:],
        "first half of each": each(first_half),
        "question alone": each(lambda text: text.split("Doctor:")[0]),
        "answer alone": each(lambda text: text.split("Doctor:")[-1]),
        "another year": each(lambda text: f"Posted on 14 March 2009. {text}"),
        "lower case": each(str.lower),
        "capitals": each(str.upper),
        "no punctuation": each(lambda t: "".join(c for c in t if c.isalnum() or c == " ")),
        "a line a sentence": each(lambda text: text.replace(". ", ".\n")),
        "half of them records": mixed("patients", 0.5),
        "a quarter of other source": mixed("medical-qa", 0.25),
        "a tenth of articles": mixed("farad", 0.1),
    }


def _null(data: Path, splits: int) -> None:
    for name, asked, known in _NULL:
        texts, alarms = read(data, name), 0
        for seed in range(splits):
            drawn = _documents(random.Random(seed).sample(texts, asked + known))
            alarms += likeness(drawn[:asked], drawn[asked:]).unlike
        low, high = proportion_interval(alarms, splits)
        print(
            f"| {name} | {asked} | {known} | {alarms} of {splits}"
            f" | {alarms / splits:.4f} [{low:.4f}, {high:.4f}] | {LEVEL} |",
            flush=True,
        )


def _power(data: Path, draws: int) -> None:
    for asked in (_ASKED, 10, 1):
        spoke: dict[str, int] = {}
        for seed in range(draws):
            rng = random.Random(seed)
            texts = read(data, "healthcaremagic")
            rng.shuffle(texts)
            for name, made in kinds(data, rng).items():
                found = likeness(_documents(texts[:asked]), _documents(made(texts[asked:])))
                spoke[name] = spoke.get(name, 0) + found.unlike
        for name, count in spoke.items():
            print(f"| {name} | {asked} | {count} of {draws} |", flush=True)


async def _missed(data: Path, method: str, draws: int) -> None:
    """Print how often a wrong verdict stands where the comparison says nothing."""
    rng = random.Random(0)
    dialogues = read(data, "healthcaremagic")
    rng.shuffle(dialogues)
    indexed, free = dialogues[:_INDEXED], dialogues[_INDEXED : _INDEXED + _ASKED + _KNOWN]
    foreign = {"medical-qa": 25, "farad": 10}
    parts = {"dialogues": free} | {
        name: rng.sample(read(data, name), count) for name, count in foreign.items()
    }
    target = LabTarget(build_system(_documents(indexed), RagConfig()))
    audit = build_audit(method, load_language_model("reader"))
    _JOURNALS.mkdir(parents=True, exist_ok=True)
    scores: dict[str, NDArray[np.float64]] = {}
    with ResponseStore(_JOURNALS / f"{method}.jsonl") as journal:
        for name, texts in parts.items():
            named = [Document(f"{name}-{at}", text) for at, text in enumerate(texts)]
            found = await Worker(target, journal, 4).run(audit, named, name)
            values = [one.score.value for one in found if one.score.value is not None]
            scores[name] = np.array(values, dtype=np.float64)
    kinds_: dict[str, tuple[str | None, int]] = {
        "alike": (None, 0),
        "a quarter of other source": ("medical-qa", 25),
        "a tenth of articles": ("farad", 10),
    }
    for kind, (other, count) in kinds_.items():
        draw, low, wrong, accusing = np.random.default_rng(0), 0, 0, 0
        for _ in range(draws):
            mixed = draw.permutation(scores["dialogues"])
            asked, known = mixed[:_ASKED], mixed[_ASKED:]
            if other is not None:
                known = np.concatenate([known[: known.size - count], scores[other]])
            p = conformal_p_values(asked, known.tolist())
            called = int((benjamini_hochberg(p) <= _ALPHA).sum())
            low += int((p <= _ALPHA).sum())
            wrong += called
            accusing += bool(called)
        start, end = proportion_interval(accusing, draws)
        print(
            f"| {method} | {kind} | {low / (draws * _ASKED):.4f} | {wrong / draws:.4f}"
            f" | {accusing} of {draws} [{start:.4f}, {end:.4f}] |",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--splits", type=int, default=400)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only", choices=("null", "kinds", "missed"))
    parser.add_argument("--method", default="mba")
    options = parser.parse_args()
    if options.data is None:
        print("skipped: give the folder of the data sets")
        return
    if options.only == "missed":
        asyncio.run(_missed(options.data, options.method, 500))
        return
    if options.only != "kinds":
        _null(options.data, options.splits)
    if options.only != "null":
        _power(options.data, options.draws)


if __name__ == "__main__":
    main()
