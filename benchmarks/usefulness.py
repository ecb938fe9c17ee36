"""What a private index finds at epsilon 1, 3 and 10, by mechanism, and the limit of them all.

    python -m benchmarks.usefulness --data DIR [--out build/usefulness]

A question counts as answered if the slot of its own document is among the 10 returned. Neighbours:
another document in one slot; delta = 1e-6; the budget covers all questions of all accounts. Two
corpora: HealthCareMagic (997 doctors' answers, asked with the patients' questions; public text:
medical-qa, another source) and FairytaleQA (1,000 passages asked with their questions; public
text: the stories of the other half). Vectors are hashed words (2^14) weighted by idf of the public
text. Bounds, thresholds, uses and codes are chosen on public documents with their own questions.
Questions are drawn with replacement, and a question asked again counts as a new one: nothing is
remembered. Cells that are done are kept in --out and not run again.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.comparison.differences import paired_difference
from ragwitness.privacy.codes import Placement
from ragwitness.privacy.gaussian import sigma_for
from ragwitness.privacy.ranges import score_sensitivity
from ragwitness.privacy.sampler import ShakeBits
from research.usefulness import (
    coins_for,
    fresh_limit,
    kept_share,
    recall_limit,
    set_chances,
    set_weight,
)

Values = NDArray[Any]
_TOP, _DELTA, _SLOTS = 10, 1e-6, 1000
_EPSILONS, _QUESTIONS = (1.0, 3.0, 10.0), (100, 1_000, 10_000)
_WORDS = 1 << 14
_DRAWS, _STREAMS, _ASKED = 10, 5, 1000
_QUANTILES = (0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the public pairs' scores
_USES = (1, 2, 3, 5, 8, 13, 20, 50)
_HEADS = (1, 3, 6, 10)  # expected slots that are returned without being relevant
_RELEVANT = 20  # documents a question, on average
_CODES = (8, 32, 128, 512, 2048)


@dataclass(frozen=True, eq=False)
class Side:
    """Documents and the questions asked about them; ``own`` is each question's document."""

    documents: Values
    questions: Values
    own: NDArray[np.int64]

    @property
    def scores(self) -> Values:
        """Cosines, shape (questions, documents)."""
        return _scores(self)


@cache
def _scores(side: Side) -> Values:
    return np.asarray(side.questions @ side.documents.T)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("build/usefulness"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "cells.jsonl"
    done = {tuple(row["cell"]): row for row in _lines(kept)} if kept.exists() else {}
    for name in ("healthcaremagic", "fairytaleqa"):
        wanted = [
            (name, mechanism, questions, epsilon)
            for mechanism, (_, once) in _MECHANISMS.items()
            for questions in ((0,) if once else _QUESTIONS)
            for epsilon in _EPSILONS
        ]
        missing = [cell for cell in wanted if cell not in done]
        if missing or (name, "size") not in done:
            private, public = _corpus(name, options.data)
            plain = _rate(_found(private, private.scores[:_ASKED] + _lots(private, 0)))
            size = {"cell": [name, "size"], "documents": len(private.documents),
                    "questions": len(private.questions), "without": plain}  # fmt: skip
            done[name, "size"] = _keep(kept, size)
            for cell in missing:
                done[cell] = _keep(kept, _run(cell, private, public))
        _print(name, done)


def _run(cell: tuple[str, str, int, float], private: Side, public: Side) -> dict[str, Any]:
    start = time.process_time()
    _, mechanism, questions, epsilon = cell
    hits, chosen = _MECHANISMS[mechanism][0](private, public, questions, epsilon)
    return {
        "cell": list(cell),
        "rate": _rate(hits),
        "chosen": chosen,
        "cpu": round(time.process_time() - start, 2),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


# The corpora.


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _keep(path: Path, row: dict[str, Any]) -> dict[str, Any]:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return row


def pairs_of(name: str, data: Path) -> list[tuple[list[str], list[tuple[int, str]]]]:
    """Documents of the private side and of the public one, 1,000 each, and who asks for which."""
    rng = np.random.default_rng(0)
    if name == "healthcaremagic":
        sides = [
            [(row["answer"], [row["question"]]) for row in _lines(data / f"{file}.jsonl")]
            for file in (name, "medical-qa")
        ]
    else:
        asked: dict[tuple[str, str], list[str]] = {}
        for row in _lines(data / f"{name}.jsonl"):
            asked.setdefault((row["story"], row["document"]), []).append(row["question"])
        stories = sorted({story for story, _ in asked})
        half = {stories[at] for at in rng.permutation(len(stories))[: len(stories) // 2]}
        sides = [
            [(text, found) for (story, text), found in asked.items() if (story in half) == inside]
            for inside in (True, False)
        ]
    made = []
    for side in sides:
        kept = [side[at] for at in rng.permutation(len(side))[:_SLOTS]]
        pairs = [(at, text) for at, (_, questions) in enumerate(kept) for text in questions]
        pairs = [pairs[at] for at in rng.permutation(len(pairs))]
        made.append(([document for document, _ in kept], pairs))
    return made


def _corpus(name: str, data: Path) -> tuple[Side, Side]:
    """The private side and the public one, each 1,000 documents at most."""
    private, public = pairs_of(name, data)
    embed = _hashed_words([*public[0], *(text for _, text in public[1])])
    return tuple(  # type: ignore[return-value]
        Side(
            embed(documents),
            embed([text for _, text in pairs]),
            np.array([at for at, _ in pairs]),
        )
        for documents, pairs in (private, public)
    )


def _hashed_words(public: list[str]) -> Callable[[list[str]], Values]:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    count = HashingVectorizer(
        n_features=_WORDS, alternate_sign=False, norm=None, stop_words="english"
    )
    weigh = TfidfTransformer(sublinear_tf=True).fit(count.transform(public))
    return lambda texts: np.asarray(weigh.transform(count.transform(texts)).todense(), np.float32)


# What is returned: 1 where the own document is among the first ten.


def _found(side: Side, scores: Values) -> Values:
    own = scores[np.arange(len(scores)), side.own[: len(scores)]]
    return np.asarray((scores > own[:, None]).sum(axis=1) < _TOP, np.float64)


def _lots(side: Side, seed: int) -> Values:
    """What decides between equal scores."""
    shape = (min(_ASKED, len(side.questions)), len(side.documents))
    return 1e-9 * np.random.default_rng(seed).random(shape)


def _rate(hits: Values) -> list[float]:
    """Mean, its interval, and how many questions were asked."""
    rate = paired_difference(hits, np.zeros_like(hits), seed=0)
    return [rate.value, max(0.0, rate.low), rate.high, len(hits)]


Found = tuple[Values, dict[str, Any]]


def _noisy(side: Side, scores: Values, sigma: float) -> Values:
    rng = np.random.default_rng(1)
    hits = [_found(side, scores + sigma * rng.standard_normal(scores.shape)) for _ in range(_DRAWS)]
    return np.asarray(np.mean(hits, axis=0))


def _noise(private: Side, _public: Side, questions: int, epsilon: float) -> Found:
    """The service today: all scores, sensitivity 2."""
    sigma = sigma_for(epsilon, _DELTA, questions, score_sensitivity("replace"))
    return _noisy(private, private.scores[:_ASKED], sigma), {"sigma": sigma}


def _bounds(public: Side) -> Iterator[tuple[float, float]]:
    """Bounds to clip to, from the scores of public pairs; a step comes nearest to a threshold."""
    own = public.scores[np.arange(len(public.own)), public.own]
    levels = np.quantile(own, _QUANTILES).tolist()
    for low, high in product([0.0, *levels], levels):
        if low < high:
            yield low, high


def _best(public: Side, measure: Callable[[Side, Values, float], Values]) -> tuple[float, float]:
    """Bounds under which public questions find most."""
    asked = Side(public.documents, public.questions[:200], public.own[:200])

    def worth(clip: tuple[float, float]) -> float:
        return float(measure(asked, np.clip(asked.scores, *clip), clip[1] - clip[0]).mean())

    return max(_bounds(public), key=worth)


def _clipped(private: Side, public: Side, questions: int, epsilon: float) -> Found:
    """Noise on scores between public bounds."""
    unit = sigma_for(epsilon, _DELTA, questions, 1.0)
    # Between bounds that differ by w, noise of w sigma keeps the budget.
    low, high = _best(public, lambda side, scores, width: _noisy(side, scores, unit * width))
    scores = np.clip(private.scores[:_ASKED], low, high)
    return _noisy(private, scores, unit * (high - low)), {"clip": [low, high]}


def _in_sets(side: Side, scores: Values, weight: float) -> Values:
    rows = np.arange(len(scores))
    own = side.own[: len(scores)]
    others = scores[np.arange(scores.shape[1])[None] != own[:, None]].reshape(len(scores), -1)
    return set_chances(scores[rows, own], others, weight, _TOP)


def _sets(private: Side, public: Side, questions: int, epsilon: float) -> Found:
    """The joint exponential mechanism on scores between public bounds."""
    unit = set_weight(epsilon, _DELTA, questions, 1.0)
    low, high = _best(public, lambda side, scores, width: _in_sets(side, scores, unit / width))
    scores = np.clip(private.scores[:_ASKED], low, high)
    return _in_sets(private, scores, unit / (high - low)), {"clip": [low, high]}


def _vectors(private: Side, _public: Side, _questions: int, epsilon: float) -> Found:
    """The documents' vectors get noise once; every question is answered from those."""
    sigma, rng = sigma_for(epsilon, _DELTA, 1, 2.0), np.random.default_rng(1)
    asked = private.questions[:_ASKED]
    hits = []
    for _ in range(3):
        noise = rng.standard_normal(private.documents.shape, np.float32)
        hits.append(_found(private, asked @ (private.documents + sigma * noise).T))
    return np.asarray(np.mean(hits, axis=0)), {"sigma": sigma}


def _coded(side: Side, codes: int, epsilon: float) -> Values:
    """Each document under one of so many public groups of words: that of its rarest word."""
    group = np.random.default_rng(2).integers(0, codes, _WORDS)

    def grouped(rows: Values) -> Values:
        found = np.zeros((len(rows), codes))
        at, word = np.nonzero(rows)
        np.maximum.at(found, (at, group[word]), rows[at, word])
        return found

    own = grouped(side.documents).argmax(axis=1)
    placement = Placement(len(own), _TOP, epsilon, codes)
    asked = grouped(side.questions[:_ASKED])
    hits = []
    for draw in range(_DRAWS):
        bits = ShakeBits(f"codes {draw}".encode())
        drawn = np.array([placement.draw([group], bits) for group in own.tolist()])
        hits.append(_found(side, asked[:, drawn] + _lots(side, draw)))
    return np.asarray(np.mean(hits, axis=0))


def _codes(private: Side, public: Side, _questions: int, epsilon: float) -> Found:
    """One public word for each document, drawn once; every question is answered from those."""
    codes = max(_CODES, key=lambda count: _coded(public, count, epsilon).mean())
    return _coded(private, codes, epsilon), {"codes": codes}


def _coins(private: Side, public: Side, questions: int, epsilon: float) -> Found:
    """A coin for each slot; a document pays for the questions that it is relevant to."""
    levels = [_level(side, public) for side in (private, public)]
    own = (public.scores / levels[1][:, None])[np.arange(len(public.own)), public.own]
    best, chosen = -1.0, (0.0, 1, 1)
    for threshold in np.quantile(own, _QUANTILES).tolist():
        relevant = public.scores >= threshold * levels[1][:, None]
        if relevant.sum() > _RELEVANT * len(relevant):
            continue  # nobody can pay for that, and it takes hours
        seen = _visits(public, threshold * levels[1], questions, 0)
        for heads, uses in product(_HEADS, _USES):
            worth = float(_tossed(public, seen, heads, uses, epsilon).mean())
            if worth > best:
                best, chosen = worth, (threshold, heads, uses)
    threshold, heads, uses = chosen
    levelled = threshold * levels[0]
    hits = [
        _tossed(private, _visits(private, levelled, questions, stream), heads, uses, epsilon)
        for stream in range(1, _STREAMS + 1)
    ]
    coins = coins_for(epsilon, _DELTA, uses, heads / len(private.documents))
    told = {"threshold": threshold, "heads": heads, "uses": uses, "high": coins.chances[0]}
    return np.concatenate(hits), told


@dataclass(frozen=True, eq=False)
class Visits:
    """Which questions of a stream are relevant to which documents.

    Attributes:
        question: Place in the stream, by visit, ascending.
        before: Visits of the same document before this one.
        own: The visit at which the question's own document is relevant; -1 for none, by question.
    """

    question: NDArray[np.int64]
    before: NDArray[np.int64]
    own: NDArray[np.int64]


@cache
def _level(side: Side, public: Side) -> Values:
    """Per question the second best score among public documents other than its own.

    The threshold is a multiple of it: a document is relevant where it beats what public documents
    would do. It depends on the question and on public text alone.
    """
    scores = side.questions @ public.documents.T
    if side is public:
        scores[np.arange(len(scores)), side.own] = -1.0
    return np.maximum(np.partition(scores, -2, axis=1)[:, -2], 1e-3)


def _visits(side: Side, threshold: Values, questions: int, stream: int) -> Visits:
    rng = np.random.default_rng((3, stream))
    asked = rng.integers(0, len(side.questions), questions)
    relevant = (side.scores >= threshold[:, None])[asked]
    question, document = np.nonzero(relevant)
    order = np.argsort(document, kind="stable")
    starts = np.searchsorted(document[order], np.arange(len(side.documents)))
    before = np.empty(len(order), np.int64)
    before[order] = np.arange(len(order)) - starts[document[order]]
    own = np.full(questions, -1)
    mine = np.flatnonzero(side.own[asked[question]] == document)
    own[question[mine]] = mine
    return Visits(question, before, own)


@cache
def _coins_of(epsilon: float, uses: int, low: float) -> Any:
    return coins_for(epsilon, _DELTA, uses, low)


def _tossed(side: Side, seen: Visits, heads: int, uses: int, epsilon: float) -> Values:
    """Chance that each question of the stream finds its document, exact."""
    slots = len(side.documents)
    coins = _coins_of(epsilon, uses, heads / slots)
    pays = seen.before < uses
    paying = np.bincount(seen.question[pays], minlength=len(seen.own))
    mine = (seen.own >= 0) & pays[seen.own] if len(pays) else np.zeros(len(seen.own), bool)
    high, low = coins.chances
    rivals = paying - mine
    table = {count: kept_share(count, slots, _TOP, coins) for count in set(rivals.tolist())}
    kept = np.array([table[count] for count in rivals.tolist()])
    return np.asarray(np.where(mine, high, low) * kept)


_MECHANISMS: dict[str, tuple[Callable[[Side, Side, int, float], Found], bool]] = {
    "noise (the service)": (_noise, False),
    "noise, clipped": (_clipped, False),
    "sets, clipped": (_sets, False),
    "noise on vectors, once": (_vectors, True),
    "codes, once": (_codes, True),
    "coins": (_coins, False),
}
"""Name, what runs it, and whether its price does not depend on the number of questions."""


def _print(name: str, done: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    size = done[name, "size"]
    slots = size["documents"]
    print(f"\n{name}: {slots} documents, {size['questions']} questions;"
          f" without privacy {_text(size['without'])}; chance {_TOP / slots:.3f}\n")  # fmt: skip
    print("| mechanism | questions | " + " | ".join(f"epsilon {e:g}" for e in _EPSILONS) + " |")
    print("|---|---|" + "---|" * len(_EPSILONS))
    for mechanism, (_, once) in _MECHANISMS.items():
        for questions in (0,) if once else _QUESTIONS:
            rates = [done[name, mechanism, questions, e]["rate"] for e in _EPSILONS]
            asked = f"{questions:,}" if questions else "any number"
            print(f"| {mechanism} | {asked} | " + " | ".join(map(_text, rates)) + " |")
    for questions in _QUESTIONS:
        limits = [fresh_limit(e, _DELTA, _TOP, slots, questions) for e in _EPSILONS]
        print(f"| limit: fresh noise for each answer | {questions:,} | "
              + " | ".join(f"{limit:.3f}" for limit in limits) + " |")  # fmt: skip
    limits = [recall_limit(e, _DELTA, _TOP, slots) for e in _EPSILONS]
    print("| limit: any mechanism | one or more | "
          + " | ".join(f"{limit:.3f}" for limit in limits) + " |")  # fmt: skip


def _text(rate: list[float]) -> str:
    return f"{rate[0]:.3f} [{rate[1]:.3f}, {rate[2]:.3f}]"


if __name__ == "__main__":
    main()
