"""How well one audit did, every rate with its interval and its n."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership.results.evaluation import Cost, Measured
from ragwitness.stats.evaluation import auc, auc_interval, evaluate, tpr_at_fpr
from ragwitness.stats.p_values import conformal_p_values
from ragwitness.stats.rates import Rate, share_of
from ragwitness.text.overlap import without_copies
from ragwitness.text.words import core, split_words

Scores = Mapping[str, float]
"""Statistic by document id; documents without one are unscorable."""

_LEVELS = (0.05, 0.01)


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """Statistics of at least ``threshold`` are called in; ``why`` says who chose it."""

    threshold: float
    why: str


def best_threshold(inside: Sequence[float], outside: Sequence[float]) -> float:
    """Return the threshold of best balanced accuracy; among equals the middle of the gap.

    Args:
        inside: Statistics of calibration documents inside.
        outside: The same outside.
    """
    values = np.unique([*inside, *outside])
    if values.size < 2:
        return float(values[0]) if values.size else 0.0
    # Candidates lie between observed statistics: no threshold touches a calibration document.
    middles = (values[1:] + values[:-1]) / 2
    hits = np.array([np.mean(np.asarray(inside) >= t) for t in middles]) if inside else 0.0
    rejects = np.array([np.mean(np.asarray(outside) < t) for t in middles]) if outside else 0.0
    return float(middles[int(np.argmax(hits + rejects))])


def area(inside: Sequence[float], outside: Sequence[float]) -> Rate | None:
    """Return the AUC with its interval; None where a side has fewer than two documents."""
    if min(len(inside), len(outside)) < 2:
        return None
    values = np.array([*inside, *outside], dtype=np.float64)
    truth = np.array([True] * len(inside) + [False] * len(outside))
    # Interval by DeLong's variance on the logit scale (stats/evaluation.py).
    return Rate(auc(values, truth), *auc_interval(values, truth), values.size)


def measure(
    audit: str,
    scores: Scores,
    truth: Mapping[str, bool],
    *,
    known_in: Sequence[float],
    known_out: Sequence[float],
    retrieved: Mapping[str, bool] | None,
    outcomes: Mapping[str, float],
    cost: Cost,
    decision: DecisionRule | None = None,
) -> Measured | None:
    """Measure one audit; None where a class has fewer than two scored documents.

    Args:
        audit: Its name.
        scores: Statistic of every scored audited document.
        truth: Whether each audited document is a member.
        known_in: Statistics of calibration documents inside.
        known_out: The same outside.
        retrieved: Whether each member was retrieved.
        outcomes: Named outcomes, mean per document.
        cost: Per document.
        decision: Threshold; None takes the best one on the calibration documents.
    """
    # 1. A document without a score is counted below as unscorable and never as an outsider.
    names = [name for name in truth if name in scores]
    labels = np.array([truth[name] for name in names], dtype=np.bool_)
    if min(int(labels.sum()), int((~labels).sum())) < 2 or not known_out:
        return None
    values = np.array([scores[name] for name in names], dtype=np.float64)
    # 2. The threshold comes from calibration documents, never from those it is reported on.
    if decision is None:
        best = best_threshold(known_in, known_out)
        decision = DecisionRule(best, "best threshold of the calibration documents")
    cut = decision.threshold
    called = values >= cut
    # 3. Conformal p-values against documents known outside: exact if those are exchangeable with
    # the audited ones that are outside.
    p_values = conformal_p_values(values, known_out)
    evaluation = evaluate(
        values.tolist(),
        labels.tolist(),
        decisions=called.tolist(),
        p_values=p_values.tolist(),
        alpha=_LEVELS[0],
        unscorable=len(truth) - len(names),
        decided_by=decision.why,
    )
    near = None
    # 4. Members that were retrieved alone: tells a weak score from a weak retriever.
    if retrieved is not None:
        inside = [scores[n] for n in names if truth[n] and retrieved.get(n, False)]
        near = area(inside, values[~labels].tolist())
    return Measured(
        audit=audit,
        auc=evaluation.auc,
        accuracy=evaluation.accuracy,
        precision=share_of(labels[called]) if called.any() else None,
        recall=share_of(called[labels]),
        f1=evaluation.f1,
        threshold=cut,
        decided_by=evaluation.decided_by,
        tpr_at_1_fpr=evaluation.tpr_at_1_fpr,
        # Low false-positive rates, as Carlini et al. (2022) ask: what an accusation would run at.
        tpr_at_01_fpr=tpr_at_fpr(values, labels, 0.001),
        false_positives={f"{a:g}": share_of(p_values[~labels] <= a) for a in _LEVELS},
        true_positives={f"{a:g}": share_of(p_values[labels] <= a) for a in _LEVELS},
        unscorable=share_of([name not in scores for name in truth]),
        recall_at_k=None
        if retrieved is None
        else share_of([retrieved.get(name, False) for name in truth if truth[name]]),
        auc_retrieved=near,
        outcomes=dict(outcomes),
        cost=cost,
        scores={name: float(scores[name]) for name in names},
        roc=evaluation.roc,
    )


# Controls of an audit: guessers that see no target, and near-duplicates.


# One random split of a corpus: inside, outside, calibration, shadow.

_FEWEST_SPLIT = 40  # documents; with fewer no part is worth a figure
_FEWEST_PART = 2  # documents of a part: an area under a curve needs two of each class
_OUTSIDE_SPLIT = 0.75  # share of the documents outside that may be audited or calibrate


@dataclass(frozen=True, slots=True)
class CorpusSplit:
    """Disjoint parts of one corpus.

    Attributes:
        indexed: Documents in the target; ``members`` and ``known_in`` are part of it.
        members: Audited documents inside.
        non_members: Audited documents outside.
        known_in: Calibration documents inside: thresholds are chosen on them.
        known_out: Calibration documents outside: thresholds and p-values rest on them.
        shadow: Documents for the shadow system, outside.
    """

    indexed: tuple[Document, ...]
    members: tuple[Document, ...]
    non_members: tuple[Document, ...]
    known_in: tuple[Document, ...]
    known_out: tuple[Document, ...]
    shadow: tuple[Document, ...]


def divide(
    corpus: Sequence[Document],
    *,
    members: int,
    non_members: int,
    calibration: int,
    seed: int,
    shadow: bool = True,
) -> CorpusSplit:
    """Index a random half of the corpus and draw the other parts.

    Copies of a text count once, or the same text would stand inside and outside. Where the
    corpus is too small for what is asked, the parts outside shrink alike.

    Args:
        corpus: Documents of one source.
        members: Audited documents inside.
        non_members: Audited documents outside.
        calibration: Calibration documents, inside and outside each.
        seed: Of the split.
        shadow: Whether a quarter of the documents outside is left for a shadow system.

    Raises:
        InputError: Fewer than 40 different documents, or a part outside would hold fewer than 2.
    """
    shuffled = list(without_copies(corpus))
    needed = max(_FEWEST_SPLIT, _documents_needed(non_members, calibration))
    if len(shuffled) < needed:
        raise InputError(
            f"{len(shuffled)} different documents are too few to divide into an index and, outside"
            f" it, {non_members} non-members with {calibration} for calibration.",
            f"Give a corpus of at least {needed}"
            + (
                f", or set --calibration {non_members}."
                if _documents_needed(non_members, non_members) <= len(shuffled) >= _FEWEST_SPLIT
                else "."
            ),
        )
    random.Random(seed).shuffle(shuffled)
    # 1. A random half is the database.
    half = len(shuffled) // 2
    inside, outside = shuffled[:half], shuffled[half:]
    # 2. Both parts outside shrink by one share, so that a quarter is left for the shadow system.
    usable = (_OUTSIDE_SPLIT if shadow else 1.0) * len(outside)
    share = min(1.0, usable / (non_members + calibration))
    audited, spared = int(non_members * share), int(calibration * share)
    # 3. Inside, calibration has what it asks for, or a quarter.
    members = min(members, max(3 * half // 4, half - calibration))
    return CorpusSplit(
        indexed=tuple(inside),
        members=tuple(replace(d, member=True) for d in inside[:members]),
        non_members=tuple(replace(d, member=False) for d in outside[:audited]),
        known_in=tuple(inside[members : members + calibration]),
        known_out=tuple(outside[audited : audited + spared]),
        shadow=tuple(outside[audited + spared :]),
    )


def _documents_needed(first: int, second: int) -> int:
    """Documents of which both parts outside, shrunk by one share, keep two."""
    # floor(part * share) >= 2 with share = 0.75 * outside / (first + second), half of all outside.
    share = _FEWEST_PART / min(first, second)
    return 2 * math.ceil(share * (first + second) / _OUTSIDE_SPLIT)


_FEWEST = 10  # documents per class that the guesser learns from


def _words(text: str) -> list[str]:
    """Words of any script; punctuation alone counts as one, so no text is without any."""
    return [core(word.text).casefold() or word.text for word in split_words(text)]


def blind_words(
    inside: Sequence[Document],
    outside: Sequence[Document],
    learnt_inside: Sequence[Document],
    learnt_outside: Sequence[Document],
) -> Rate | None:
    """AUC of a classifier that reads the texts alone: TF-IDF and logistic regression.

    It never asks the target. If it tells members from non-members, the split leaks, and no
    figure of any audit on this split means what it seems to. It learns from documents that are
    not audited, so its scores of the audited ones are fixed beforehand and their interval holds.

    Args:
        inside: Audited documents of the database.
        outside: Audited documents that are not in it.
        learnt_inside: Other documents of the database.
        learnt_outside: Other documents that are not in it.
    """
    if min(len(learnt_inside), len(learnt_outside)) < _FEWEST:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    guesser = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, tokenizer=_words, token_pattern=None),
        LogisticRegression(C=10.0, max_iter=1000, class_weight="balanced"),
    )
    texts = [document.text for document in (*learnt_inside, *learnt_outside)]
    guesser.fit(texts, [1] * len(learnt_inside) + [0] * len(learnt_outside))
    guessed = guesser.predict_proba([document.text for document in (*inside, *outside)])[:, 1]
    return area(guessed[: len(inside)].tolist(), guessed[len(inside) :].tolist())


def blind_length(inside: Sequence[Document], outside: Sequence[Document]) -> Rate | None:
    """AUC of the number of words: members longer than non-members by chance or by bias."""
    return area(
        [float(len(split_words(document.text))) for document in inside],
        [float(len(split_words(document.text))) for document in outside],
    )


def nearest_likeness(asked: Sequence[Document], indexed: Sequence[Document]) -> NDArray[np.float64]:
    """TF-IDF cosine of each document to its nearest one in the index, itself left out.

    Args:
        asked: Documents, n of them.
        indexed: The database.

    Returns:
        Likeness, shape (n,), 0 to 1.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, tokenizer=_words, token_pattern=None)
    vectors = vectorizer.fit_transform([document.text for document in indexed])
    texts = np.array([document.text for document in indexed], dtype=object)
    nearest = []
    for document in asked:
        likeness = (vectors @ vectorizer.transform([document.text]).T).toarray()[:, 0]
        likeness[texts == document.text] = 0.0
        nearest.append(float(likeness.max(initial=0.0)))
    return np.array(nearest)


def near_duplicates(split: CorpusSplit) -> tuple[frozenset[str], float]:
    """Return the quarter of the non-members most like the index, and its median likeness."""
    likeness = nearest_likeness(split.non_members, split.indexed)
    order = likeness.argsort()[::-1][: max(2, len(likeness) // 4)]
    ids = frozenset(split.non_members[int(index)].id for index in order)
    return ids, float(sorted(likeness[order])[len(order) // 2])


def rate_of(inside: Sequence[float], outside: Sequence[float]) -> Rate:
    """Return the AUC; a control that could not be measured stays in sight, without a value."""
    nothing = Rate(math.nan, math.nan, math.nan, len(inside) + len(outside))
    return area(inside, outside) or nothing


def blind_controls(split: CorpusSplit) -> dict[str, Rate]:
    """AUC of guessers that never ask the target, for before anything is spent on it."""
    audited = {document.id for document in split.members}
    learnable = [document for document in split.indexed if document.id not in audited]
    words = blind_words(
        split.members, split.non_members, learnable, (*split.known_out, *split.shadow)
    )
    length = blind_length(split.members, split.non_members)
    return {"blind words": words or rate_of([], []), "blind length": length or rate_of([], [])}
