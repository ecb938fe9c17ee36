"""From scores to verdicts, for every membership audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.bet import Bet
from ragwitness.core.types import Decision, Document, Evidence, Score, Verdict
from ragwitness.membership.e_values import Guesses, closed_e_benjamini_hochberg, e_value
from ragwitness.membership.results.odds import rarity
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
        score: The score of the audit.
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
        outside: Statistics of documents known to be outside, shape (n,); for one with several
            windows, those of its first window, its first two and so on. A document of w windows is
            ranked among those of w or more, each by its first w (``windows.running_scores``).
            W is at most the median number of windows of these documents.
        inside: Statistics of documents known to be inside a system like the target, shape (m,);
            without any, no document is called out.
        alpha: Level of the verdicts.
        odd: Ids of out-of-distribution documents; their p-values are set to 1 before correction.
        groups: Of the documents behind ``outside`` and ``inside``, shapes (n,) and (m,); each group
            has one vote. None takes each document by itself.
    """
    # 1. p- and q-values against documents known to be outside.
    scored = [item for item in items if item.statistic is not None]
    item_groups = [item.document.group for item in scored]
    by_out, by_in = ((item_groups, known) for known in groups) if groups else (None, None)
    p_in, votes = _p_values(scored, outside, 1.0, by_out)
    p_out, _ = _p_values(scored, inside, -1.0, by_in)
    ranked, ranked_inside = len(outside) > 0, len(inside) > 0
    is_odd = np.array([item.document.id in odd for item in scored], dtype=bool)
    # 2. Against membership a low statistic is the evidence: the same test on negated values.
    q_in, q_out = (benjamini_hochberg(np.where(is_odd, 1.0, p)) for p in (p_in, p_out))

    # 3. A decision where one test refuses and the other does not.
    verdicts, row = [], iter(range(len(scored)))
    for item in items:
        if item.statistic is None:
            verdicts.append(_unscorable(item))
            continue
        n = next(row)
        says_in, says_out = ranked and q_in[n] <= alpha, ranked_inside and q_out[n] <= alpha
        decision = Decision.INCONCLUSIVE
        if says_in != says_out:
            decision = Decision.IN if says_in else Decision.OUT
        verdicts.append(
            Verdict(
                document=item.document.id,
                decision=decision,
                p_value=float(p_in[n]) if ranked else None,
                q_value=float(q_in[n]) if ranked else None,
                p_out=float(p_out[n]) if ranked_inside else None,
                score=item.statistic,
                classifier=item.classifier,
                queries=item.queries,
                evidence=item.score.evidence,
                reason=_why(decision, p_in[n], int(votes[n]), len(scored), bool(says_in)),
                member=item.document.member,
                windows=int(item.score.details.get("windows asked", 0)),
                share=item.score.details.get("share asked", 1.0),
            )
        )
    return tuple(verdicts)


def with_odds(
    verdicts: Sequence[Verdict],
    scores: Mapping[str, Score],
    guesses: Guesses,
    alpha: float,
    *,
    refused: bool,
    alone: bool = True,
    withheld: Set[str] = frozenset(),
) -> tuple[Verdict, ...]:
    """Add each document's e-value, and call those ``in`` that closed e-BH rejects at ``alpha``.

    Args:
        verdicts: Those by ranks; their level and this one add up to that of the audit.
        scores: By id of the document.
        guesses: Of every won bet.
        alpha: Level of the verdicts by e-values.
        refused: Whether the target says such words anyway: then nothing rests on e-values.
        alone: Whether nothing rests on ranks.
        withheld: Ids of documents whose words the target may have been sent before.
    """
    e_values = [e_value(scores[v.document].bets, guesses) for v in verdicts]
    counted = [
        1.0 if v.document in withheld else e for v, e in zip(verdicts, e_values, strict=True)
    ]
    levels = closed_e_benjamini_hochberg(counted)
    # One more document would be called in from this e-value on, at the latest.
    needed = len(verdicts) / (alpha * min(len(verdicts), 1 + int(np.sum(levels <= alpha))))
    combined = []
    for verdict, e, level in zip(verdicts, e_values, levels.tolist(), strict=True):
        by_ranks, by_odds = verdict.decision is Decision.IN, level <= alpha and not refused
        by = " and ".join(["ranks"] * by_ranks + ["odds"] * by_odds) or None
        decision, reason = verdict.decision, verdict.reason
        if by_odds:
            out = decision is Decision.OUT
            decision = Decision.INCONCLUSIVE if out else Decision.IN
            reason = _CONFLICT if out else _said_so(scores[verdict.document].bets, guesses)
        elif decision is Decision.INCONCLUSIVE and alone:
            reason = reason if verdict.score is None else _WEAK.format(e, needed)
        evidence = _guessed(verdict.evidence, scores[verdict.document].bets, guesses)
        combined.append(
            replace(
                verdict,
                decision=decision,
                reason=reason,
                evidence=evidence,
                e_value=e,
                e_level=level,
                by=by,
            )
        )
    return tuple(combined)


_CONFLICT = "unlike documents inside by its rank, and unlike documents outside by its e-value"
_WEAK = (
    "an e-value of {:.3g}, and {:.3g} would suffice: the words were not said, or are easy to guess"
)


def _said_so(bets: Sequence[Bet], guesses: Guesses) -> str:
    """Say how rarely a model without the document would say what was said."""
    nats = sum(sum(guesses[bet]) for bet in bets if bet.words)
    return f"a model that had not read it would say these words {rarity(nats)}"


def _guessed(
    evidence: Sequence[Evidence], bets: Sequence[Bet], guesses: Guesses
) -> tuple[Evidence, ...]:
    """Set the guess of the reference models beside words that were said."""
    chances = [
        ("".join(bet.words).strip(), math.exp(-sum(guesses[bet]))) for bet in bets if bet.words
    ]

    def baseline(item: Evidence) -> float:
        # The words of evidence keep the punctuation behind the last.
        return next((p for words, p in chances if item.word.startswith(words)), item.baseline)

    return tuple(replace(item, baseline=baseline(item)) for item in evidence)


def _p_values(
    items: Sequence[Judged], calibration: Sequence[ArrayLike], sign: float, groups: Groups | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rank each document by its first windows, among the known ones that have as many.

    A document counts by all of its windows, but by no more than the known documents' median: a
    longer one would be ranked among too few to decide anything.

    Returns:
        P-values, 1 where the first windows could not be read, and the votes behind each.
    """
    p_values, votes = np.ones(len(items)), np.zeros(len(items), dtype=np.int64)
    # A row of running scores for each known document.
    running = [np.atleast_1d(np.asarray(row, dtype=np.float64)) for row in calibration]
    median = sorted(map(len, running))[len(running) // 2] if running else 0
    scores = [[*running_scores(item.score)[:-1], item.statistic or 0.0][:median] for item in items]
    item_groups, calib_groups = groups or ((None,) * len(items), (None,) * len(running))
    for count in set(map(len, scores)) - {0}:
        # Documents of this many windows, and the known ones that have them too.
        item_idx = [i for i, s in enumerate(scores) if len(s) == count and not np.isnan(s[-1])]
        calib_idx = [
            i for i, r in enumerate(running) if len(r) >= count and not np.isnan(r[count - 1])
        ]
        if not calib_idx:
            continue
        named = [item_groups[i] for i in item_idx], [calib_groups[i] for i in calib_idx]
        p_values[item_idx] = conformal_p_values(
            [sign * scores[i][-1] for i in item_idx],
            [sign * running[i][count - 1] for i in calib_idx],
            named if groups else None,
        )
        votes[item_idx] = votes_of(named[1])
    return p_values, votes


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
