"""What a curator's filters remove: planted traces against ordinary traffic, by adversary.

    python benchmarks/canary_curation.py --data ../shared/data [--traces 400] [--ordinary 2000]

Ordinary traffic is FairytaleQA's documents and questions; a third of the questions carry one of
twelve ordinary requests ("Please answer in one sentence."). Traces are planted in other rows. The
adversary knows what is planted: 30 leaked traces and ordinary traffic are what it builds on, and
its threshold removes 1 % or 5 % of the ordinary traffic that it tunes on; both shares are counted
on traces that did not leak and on other ordinary traffic.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from ragwitness.canary.draw import Design, DrawSecret, bits_of, draw_slots
from ragwitness.canary.examples import Example, read_examples
from ragwitness.canary.families import Family
from ragwitness.canary.traces import check_corpus, traces_of_pool
from ragwitness.core.errors import InputError
from ragwitness.stats.rates import proportion_interval
from research.canary.curator import LEAKED, REQUESTS, WORD, Score, above, mined

RESULT_TYPES = {
    "name, signature, 1 slot": Design(candidates=128),
    "name, phrase, 1 slot": Design(candidates=128, family=Family.PHRASE),
    "name, phrase, 8 slots": Design(candidates=128, slots=8, family=Family.PHRASE),
}  # fmt: skip


def known(leaked: Sequence[str], ordinary: Sequence[str]) -> Score:
    """The one regular expression of the review: the paper's trigger, or the fixed request."""
    del leaked, ordinary
    form = re.compile(r"prefix_[a-z0-9]{10}|immediately after the first clause of the final answer")
    return lambda texts: np.array([len(form.findall(text)) for text in texts], float)


def copies(leaked: Sequence[str], ordinary: Sequence[str]) -> Score:
    """Near-duplicates: how like a question's end is to the likest other (Jaccard of 3-grams)."""
    del leaked, ordinary

    def score(texts: Sequence[str]) -> np.ndarray:
        sets = [_ends(text) for text in texts]
        holders: dict[str, list[int]] = {}
        for at, one in enumerate(sets):
            for gram in one:
                holders.setdefault(gram, []).append(at)
        found = []
        for at, one in enumerate(sets):
            shared = Counter(other for gram in one for other in holders[gram] if other != at)
            found.append(max((n / len(one | sets[o]) for o, n in shared.items()), default=0.0))
        return np.array(found)

    return score


def _ends(text: str) -> set[str]:
    words = WORD.findall(text.lower())[-24:]
    return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}


def perplexity(leaked: Sequence[str], ordinary: Sequence[str]) -> Score:
    """The least likely stretch of 60 characters, by character 5-grams of ordinary traffic."""
    del leaked
    after, before = Counter[str](), Counter[str]()
    for text in ordinary:
        for at in range(len(text) - 5):
            before[text[at : at + 4]] += 1
            after[text[at : at + 5]] += 1

    def one(text: str) -> float:
        values = np.array([
            -math.log((after[text[n : n + 5]] + 0.05) / (before[text[n : n + 4]] + 5))
            for n in range(max(0, len(text) - 5))
        ])  # fmt: skip
        return (
            float(np.convolve(values, np.ones(60) / 60, "valid").max()) if len(values) > 60 else 0
        )

    return lambda texts: np.array([one(text) for text in texts])


def rarity(leaked: Sequence[str], ordinary: Sequence[str]) -> Score:
    """How many words no ordinary text has."""
    del leaked
    usual = {w.lower() for text in ordinary for w in WORD.findall(text)}
    return lambda texts: np.array(
        [len({w.lower() for w in WORD.findall(t)} - usual) for t in texts], float
    )


def classifier(leaked: Sequence[str], ordinary: Sequence[str]) -> Score:
    """Logistic regression on words and pairs of words of leaked traces and ordinary traffic."""
    bag = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    rows = bag.fit_transform([*leaked, *ordinary])
    model = LogisticRegression(C=10, class_weight="balanced", max_iter=300)
    model.fit(rows, [1] * len(leaked) + [0] * len(ordinary))
    return lambda texts: np.asarray(model.decision_function(bag.transform(list(texts))))


ADVERSARIES = {
    "known pattern": known, "mined patterns": mined, "near-duplicates": copies,
    "perplexity": perplexity, "rare words": rarity, "classifier": classifier,
}  # fmt: skip


def texts_of(kind: Design, pool: Sequence[Example]) -> list[str]:
    """Planted traces, as a curator reads them; what cannot carry a mark is left out."""
    for number in range(50):
        secret = DrawSecret(number.to_bytes(32, "big"), bytes(32))
        draw = draw_slots(kind, secret)
        try:
            check_corpus(pool, draw)
        except InputError:
            continue
        fitting = [one for one in pool if _fits(one)]
        traces = traces_of_pool(fitting, kind, draw, bits_of(secret, "", "traces"))
        return [f"{one.document}\n{one.query}" for one in traces]
    raise SystemExit("the corpus holds too many markers")


def _fits(one: Example) -> bool:
    from ragwitness.canary.examples import with_trigger

    try:
        with_trigger(one.document, "A Name", one.id)
    except InputError:
        return False
    return True


def main() -> None:
    """Print a row per kind of traces and adversary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=int, default=400)
    parser.add_argument("--ordinary", type=int, default=2000)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = read_examples(given.data / "fairytaleqa.jsonl")
    order = rng.permutation(len(rows))[: given.traces + 2 * given.ordinary]
    pool = [rows[at] for at in order]
    planted, usual = pool[: given.traces], pool[given.traces :]
    ordinary = [
        f"{one.document}\n{one.query}" + (f" {REQUESTS[n % 12]}" if n % 3 == 0 else "")
        for n, one in enumerate(usual)
    ]
    tuned, other = ordinary[: given.ordinary], ordinary[given.ordinary :][: given.ordinary // 2]
    print(f"{LEAKED} leaked traces; 95 % intervals\n")
    print("| traces | adversary | removed at 1 % | ordinary | removed at 5 % | ordinary |")
    print("|---|---|---|---|---|---|")
    for label, kind in RESULT_TYPES.items():
        texts = texts_of(kind, planted)
        leaked, kept = texts[:LEAKED], texts[LEAKED:]
        for name, make in ADVERSARIES.items():
            half = len(tuned) // 2
            score = make(leaked, tuned[:half])
            cells = []
            for share in (0.01, 0.05):
                for read in (kept, other):
                    hits, of = int(above(score, tuned[half:], read, share).sum()), len(read)
                    low, high = proportion_interval(hits, of)
                    cells.append(f"{hits / of:.2f} [{low:.2f}, {high:.2f}]")
            print(f"| {label} (n = {len(kept)}) | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
