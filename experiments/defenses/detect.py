"""How well audits' questions are told from those of users: by a classifier, and by Mirabel.

::

    PYTHONPATH=. python experiments/defenses/detect.py DATA

DATA is the folder of the data sets. Documents and users' questions about them are those of
``medical-qa.jsonl``; further users' questions are those of ``nq-open-dev.jsonl``. Three tables:
the share of each kind's first question that a classifier of words and characters flags where it
flags 1 % of users' questions, trained on every kind (ten folds by document) and on the published
kinds alone; and the share that Mirabel flags, with MiniLM, over an index that holds the documents.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.core.types import Document
from ragwitness.membership.joint import NATURAL
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.methods.runon import QUESTION, SENTENCE
from ragwitness.membership.plan import among
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.config import RagConfig
from ragwitness.rag.defenses.mirabel import hide_threshold
from ragwitness.rag.pipeline import build_system
from ragwitness.stats.rates import proportion_interval

DOCUMENTS = 120
ALARMS = 0.01

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "mba": ("mba", {}),
    "rag-mia": ("rag-mia", {}),
    "s-rag": ("s-rag:few", {}),
    "runon, first wording": ("runon", {"sentence": QUESTION}),
    "runon, second wording": ("runon", {"question": SENTENCE}),
    "runon, natural": ("runon", {"question": NATURAL[0], "sentence": NATURAL[1]}),
}
PUBLISHED = ("mba", "rag-mia", "s-rag")


def first_questions(name: str, options: dict[str, Any], documents: Sequence[Document]) -> list[str]:
    """Return the first question of an audit about each document; empty where it has none."""
    audit = among(
        build_audit(name, load_language_model("reader"), configure(name, options)), documents
    )
    found = list[str]()
    for document in documents:
        generator = audit.probe(document)
        try:
            found.append(next(generator)[0].prompt)
        except StopIteration:
            found.append("")
    return found


def features(texts: Sequence[str], fitted: Any = None) -> tuple[Any, Any]:
    """Return vectors of words and characters, and what made them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    if fitted is None:
        fitted = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True),
        ).fit(texts)
    return fitted.transform(texts), fitted


def told(flags: Sequence[bool]) -> str:
    """Return a share with its exact interval."""
    low, high = proportion_interval(int(sum(flags)), len(flags))
    return f"{sum(flags)}/{len(flags)} [{low:.3f}, {high:.3f}]"


def classified(
    asked: dict[str, list[str]], users: Sequence[str], kinds: Sequence[str]
) -> dict[str, str]:
    """Return the share of each kind that is flagged at 1 % of false alarms.

    Halves of documents and of users' questions train; the other halves are judged, both ways.
    """
    from sklearn.linear_model import LogisticRegression

    flagged: dict[str, list[bool]] = {kind: [] for kind in [*asked, "users"]}
    for half in (0, 1):
        train = [q for kind in kinds for q in asked[kind][half::2] if q]
        own = list(users[half::2])
        vectors, made = features([*train, *own])
        judge = LogisticRegression(max_iter=1000, class_weight="balanced")
        judge.fit(vectors, [1] * len(train) + [0] * len(own))
        other = list(users[1 - half :: 2])
        scores = judge.decision_function(features(other, made)[0])
        # The bar is set on one half of the held-out users' questions and judged on the other.
        bar = float(np.quantile(scores[::2], 1 - ALARMS))
        flagged["users"] += (scores[1::2] > bar).tolist()
        for kind, questions in asked.items():
            held = [q for q in questions[1 - half :: 2] if q]
            flagged[kind] += (judge.decision_function(features(held, made)[0]) > bar).tolist()
    return {kind: told(flags) for kind, flags in flagged.items()}


def by_mirabel(asked: dict[str, list[str]], indexed: Sequence[Document]) -> dict[str, str]:
    """Return the share of each kind's questions whose nearest passage Mirabel hides."""
    config = RagConfig(retrieval="minilm", metric="ip", k=4)
    index = build_system(indexed, config, generator=load_language_model("repeat")).index
    return {
        kind: told([_hidden(index, question, len(indexed)) for question in questions if question])
        for kind, questions in asked.items()
    }


def _hidden(index: Any, question: str, count: int) -> bool:
    scores = [hit.score for hit in index.search(question, 10 * count)]
    threshold = hide_threshold(scores)
    return threshold is not None and max(scores) > threshold


def main() -> None:
    """Ask, judge, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    rows = [json.loads(line) for line in (given.data / "medical-qa.jsonl").open(encoding="utf-8")]
    random.Random(3).shuffle(rows)
    documents = [Document(row["id"], row["text"]) for row in rows[:DOCUMENTS]]
    open_questions = (given.data / "nq-open-dev.jsonl").open(encoding="utf-8")
    users = [row["question"] for row in rows[DOCUMENTS : DOCUMENTS + 600]]
    users += [json.loads(line)["question"] for line in open_questions][:600]
    random.Random(4).shuffle(users)
    asked = {kind: first_questions(*given, documents) for kind, given in KINDS.items()}
    everything = classified(asked, users, list(asked))
    published = classified(asked, users, PUBLISHED)
    # Users ask about indexed documents too, in their own words.
    about = {"users": [row["question"] for row in rows[:DOCUMENTS]]}
    indexed = [Document(row["id"], row["text"]) for row in rows[: DOCUMENTS + 600]]
    hidden = by_mirabel(asked | about, indexed)
    print("| question | classifier, every kind known | published kinds known | hidden by Mirabel |")
    print("|---|---|---|---|")
    for kind in [*asked, "users"]:
        print(f"| {kind} | {everything[kind]} | {published[kind]} | {hidden[kind]} |")


if __name__ == "__main__":
    main()
