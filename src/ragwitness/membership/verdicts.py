"""From scores to verdicts, for every membership audit."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.types import Decision, Document, Score, Verdict
from ragwitness.membership.windows import running_scores
from ragwitness.stats.p_values import (
    Groups,
    benjamini_hochberg,
    conformal_p_values,
    votes_of,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A probed document with the statistic its p-value is computed from.

    Attributes:
        document: The document.
        score: What the audit returned.
        statistic: Higher means more evidence of membership; None where unscorable.
        classifier: Membership probability by the audit classifier, where there is one.
        queries: Spent on it.
    """

    document: Document
    score: Score
    statistic: float | None
    classifier: float | None
    queries: int


def judge(
    items: Sequence[Judged],
    *,
    outside: Sequence[ArrayLike],
    inside: Sequence[ArrayLike],
    alpha: float,
    odd: Set[str] = frozenset(),
    groups: tuple[Sequence[str | None], Sequence[str | None]] | None = None,
) -> tuple[Verdict, ...]:
    """Give each document a verdict.

    ``in`` refuses "it is outside" and ``out`` refuses "it is inside", each at level ``alpha``
    after Benjamini-Hochberg over all scored documents. Neither or both: inconclusive.

    Args:
        items: The audited documents.
        outside: Statistics of documents known to be outside, shape (n,); of one with several
            windows, those of its first window, its first two and so on. A document of w windows is
            ranked among those of w or more, each by its first w (``windows.running_scores``);
            w is at most the number that half of these documents have.
        inside: Statistics of documents known to be inside a system like the target, shape (m,);
            without any, no document is called out.
        alpha: Level of the verdicts.
        odd: Ids of documents that these others are unlike: nothing may rest on their p-values, and
            they are rejected nowhere, so that the correction holds for the others.
        groups: Of the documents behind ``outside`` and ``inside``, shapes (n,) and (m,); each group
            has one vote. None takes each document by itself.
    """
    # 1. p- and q-values against documents known to be outside.
    scored = [item for item in items if item.statistic is not None]
    own = [item.document.group for item in scored]
    by_out, by_in = ((own, theirs) for theirs in groups) if groups else (None, None)
    p_in, votes = _p_values(scored, outside, 1.0, by_out)
    ranked = bool(len(scored) and len(outside))
    left = np.array([item.document.id in odd for item in scored], dtype=bool)
    q_in = benjamini_hochberg(np.where(left, 1.0, p_in)) if ranked else p_in
    # 2. Against membership a low statistic is the evidence: the same test on negated values.
    known = bool(len(scored) and len(inside))
    p_out = _p_values(scored, inside, -1.0, by_in)[0] if known else None
    q_out = benjamini_hochberg(np.where(left, 1.0, p_out)) if p_out is not None else None

    # 3. A decision where one test refuses and the other does not.
    verdicts, place = [], 0
    for item in items:
        if item.statistic is None:
            verdicts.append(_unscorable(item))
            continue
        says_in = ranked and q_in[place] <= alpha
        says_out = q_out is not None and q_out[place] <= alpha
        decision = (
            Decision.IN
            if says_in and not says_out
            else Decision.OUT
            if says_out and not says_in
            else Decision.INCONCLUSIVE
        )
        verdicts.append(
            Verdict(
                document=item.document.id,
                decision=decision,
                p_value=float(p_in[place]) if ranked else None,
                q_value=float(q_in[place]) if ranked else None,
                p_out=None if p_out is None else float(p_out[place]),
                score=item.statistic,
                classifier=item.classifier,
                queries=item.queries,
                evidence=item.score.evidence,
                reason=_why(decision, p_in[place], int(votes[place]), len(scored), bool(says_in)),
                member=item.document.member,
                windows=int(item.score.details.get("windows asked", 0)),
                share=item.score.details.get("share asked", 1.0),
            )
        )
        place += 1
    return tuple(verdicts)


def _p_values(
    items: Sequence[Judged],
    known: Sequence[ArrayLike],
    sign: float,
    groups: Groups | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rank each document by its first windows, among the known ones that have as many.

    It counts by all of its windows, but by no more than half of the known documents have: whoever
    is longer than most of them would be ranked among too few to decide anything.

    Returns:
        P-values, 1 where the first windows could not be read, and the votes behind each.
    """
    found, votes = np.ones(len(items)), np.zeros(len(items), dtype=np.int64)
    running = [np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in known]
    most = sorted(map(len, running))[len(running) // 2] if running else 0
    scores = [[*running_scores(item.score)[:-1], item.statistic or 0.0][:most] for item in items]
    for count in set(map(len, scores)) - {0}:
        mine = [at for at, one in enumerate(scores) if len(one) == count and one[-1] == one[-1]]
        beside = [
            at for at, r in enumerate(running) if len(r) >= count and not np.isnan(r[count - 1])
        ]
        if not beside:
            continue
        own, theirs = groups or ((None,) * len(items), (None,) * len(running))
        named = [own[at] for at in mine], [theirs[at] for at in beside]
        found[mine] = conformal_p_values(
            [sign * scores[at][-1] for at in mine],
            [sign * running[at][count - 1] for at in beside],
            named if groups else None,
        )
        votes[mine] = votes_of(named[1])
    return found, votes


def _unscorable(item: Judged) -> Verdict:
    return Verdict(
        document=item.document.id,
        decision=Decision.INCONCLUSIVE,
        p_value=None,
        score=None,
        queries=item.queries,
        reason=item.score.reason or "no score",
        member=item.document.member,
    )


def _why(decision: Decision, p: float, outside: int, tests: int, both: bool) -> str | None:
    """Say why a scored document is not decided."""
    if decision is not Decision.INCONCLUSIVE:
        return None
    if not outside:
        return "its first windows, or those of all documents known to be outside, were not read"
    if both:
        return "unlike documents outside, and unlike documents inside"
    if p <= 1 / (outside + 1) + 1e-12:
        return f"{outside} known-outside documents are too few to decide among {tests}"
    return "the evidence does not decide"
