"""What an audit takes for granted, tested on the texts before its first query.

A conformal p-value holds where documents outside are like those that calibrate. Texts that a
classifier tells apart are not: 40 dialogues against 100 articles gave eight false accusations.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Decision, Document, Verdict
from ragwitness.membership.methods.response_parsing.replies import cut_words
from ragwitness.membership.plan import (
    AuditPlan,
    CalibrationSet,
    folded,
    nearest,
    without_drafts,
)
from ragwitness.membership.results.assumptions import (
    ASSUMED_AUC,
    LEVEL,
    ODD,
    SetLikeness,
    VerdictPower,
    VerdictReach,
)
from ragwitness.membership.results.audit import Calibration
from ragwitness.stats.p_values import largest_tie, two_sample, votes_of
from ragwitness.stats.power import FEWEST_INSIDE, expected_power, measured_or_tied
from ragwitness.text.domain_shift import MEASURES, is_mark, kind_words, measure, unlikeness
from ragwitness.text.overlap import without_copies
from ragwitness.text.words import cut_characters

_MOST = 400  # documents of a set that are compared: a difference too small for them is none
_LONGEST = 20_000  # characters of a document whose words are read
_LIMITS = {"max_chars": "characters", "max_words": "words"}  # of what a method reads
_OPENINGS = (600, 2048)  # characters where methods and retrievers stop that do not say so
_COMMON = 0.05  # share of all documents that hold a word which is looked at by itself
_NAMED = 300  # such words, and as many for each opening
_PAIRED = 400  # words of a text that are compared with the one behind them too
_NAMED_ODD = 5  # documents unlike the known ones that are named
_SHOWN, _SHOWN_WORDS = 4, 2  # differences that are told, and words among them
_BEGINS = " …"  # behind the word with which a text begins
_WITHIN = " … within "  # behind one that an opening holds, before its length


def likeness(
    asked: Sequence[Document], known: Sequence[Document], config: object = None
) -> SetLikeness:
    """Compare documents in question with those that calibrate; nothing is asked.

    Args:
        asked: Documents in question; copies count once.
        known: Documents that calibrate.
        config: Of the method; it may say how much of a text is read.
    """
    limits = {unit: getattr(config, name, None) for name, unit in _LIMITS.items()}
    own = {unit: most for unit, most in limits.items() if isinstance(most, int)}
    usual = [(n, "characters") for n in _OPENINGS if n < own.get("characters", n + 1)]
    openings = (*usual, *((most, unit) for unit, most in own.items()))
    return _likeness(without_copies(asked), without_copies(known), openings)


@dataclass(frozen=True, slots=True)
class PlanLikeness:
    """What comparing the texts of a plan found, before its first query.

    Attributes:
        reference: Documents in question beside those that calibrate.
        known_in: Beside those known to be inside; None without any.
        odd: Ids of documents in question that are each unlike those that calibrate.
    """

    reference: SetLikeness
    known_in: SetLikeness | None = None
    odd: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: AuditPlan, reference: CalibrationSet, config: object = None) -> Self:
        """Compare the texts of a plan for a method; nothing is asked."""
        inside = likeness(plan.documents, plan.known_in, config) if plan.known_in else None
        told = likeness(plan.documents, reference.documents, config)
        # Where the sets differ, nothing is called in of any of them.
        odd = () if told.unlike else outlier_ids(plan.documents, reference.documents)[0]
        return cls(told, inside, odd)


_FEWEST = 10  # known documents; fewer say nothing of how unlike each other they are


@functools.lru_cache(maxsize=2)  # as often as that of the sets
def outlier_ids(
    asked: tuple[Document, ...], known: tuple[Document, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of documents that are each unlike the known ones, and of as odd known ones.

    Of documents of one kind with the known ones at most ``ODD`` are expected among them, or one in
    n + 1 where n known ones are so few that no p-value is so small.
    """
    drawn = _drawn(known, np.random.default_rng(0))
    if len(drawn) < _FEWEST:
        return (), ()
    own, found = unlikeness([one.text for one in drawn], [one.text for one in asked])
    # Conformal: the rank of each document among the known ones and itself, ties in its favour.
    level = max(ODD, 1 / (len(drawn) + 1))
    most, falling = int(level * (len(drawn) + 1) + 1e-9), np.sort(own)[::-1]
    odd = ((asked, found > falling[most - 1]), (drawn, own > falling[most]))
    mine, theirs = (
        tuple(one.id for one, beyond in zip(part, far, strict=True) if beyond) for part, far in odd
    )
    return mine, theirs


@functools.lru_cache(maxsize=2)  # before the first query, and again for the verdicts
def _likeness(
    asked: Sequence[Document], known: Sequence[Document], openings: Sequence[tuple[int, str]]
) -> SetLikeness:
    rng = np.random.default_rng(0)
    sets = [_drawn(documents, rng) for documents in (asked, known)]
    texts = [document.text.rstrip()[:_LONGEST] for part in sets for document in part]
    first, n = len(sets[0]), len(texts)
    if not 0 < first < n:
        return SetLikeness(first, n - first, 1.0, 1.0)
    # 1. Features that have a name: lengths and signs, and which common words a text holds.
    words = [kind_words(text) for text in texts]
    values, measures = [list(map(measure, texts, words))], list(MEASURES)
    # Every kind of mark too: a prompt that quotes the text may end at one.
    signs = [
        {*own, *(own[0] + _BEGINS for _ in own[:1]), *filter(is_mark, set(text))}
        for own, text in zip(words, texts, strict=True)
    ]
    alike = _alike([[*own, *map(" ".join, pairwise(own[:_PAIRED]))] for own in words])
    # The same words stand elsewhere to a method that reads no further, or the second half.
    halves = [cut_words(text, min(_PAIRED, len(text.split())) // 2)[0] for text in texts]
    views = [("half", halves)]
    for most, unit in openings:
        cut = cut_words if unit == "words" else cut_characters
        shown = [cut(text.strip(), most)[0] for text in texts]
        if shown != [text.strip() for text in texts]:
            views.append((f"{most} {unit}", shown))
    for what, shown in views:
        opening = [kind_words(text) for text in shown]
        for own, within in zip(signs, opening, strict=True):
            own.update(f"{word}{_WITHIN}{what}" for word in within)
        alike += _alike([[*own, *map(" ".join, pairwise(own))] for own in opening])
        values.append(list(map(measure, shown, opening)))
        measures += [(f"{one[0]} within the first {what}", *one[1:]) for one in MEASURES]
    parts, versions = len(values), nearest(texts)[:, None]
    measured = np.hstack([*values, versions])
    measures.append(("share of words in common with the most similar other text", "", True))
    told = np.where(np.isnan(measured), _middle(measured), measured)
    counts = Counter(sign for own in signs for sign in own)
    rare = max(2.0, min(_COMMON * n, first, n - first))
    common = sorted(
        (s for s, c in counts.items() if rare <= c <= n - rare), key=lambda s: (-counts[s], s)
    )
    names = common[: _NAMED * parts]
    held = np.array([[name in own for name in names] for own in signs], dtype=np.float64)
    ranked = _ranks(told)
    # 2. A classifier reads all words and all lengths and signs.
    gram = alike / parts + _inner(ranked)
    found = two_sample(gram, np.hstack([ranked, held.reshape(n, -1)]), first, rng)
    # 3. What differs most, in words.
    by = (found.columns, measured, measures, held, names, first)
    clauses = _clauses(*by) if found.p_value <= LEVEL else ()
    auc = None if np.isnan(found.auc) else found.auc
    return SetLikeness(first, n - first, found.p_value, found.least, auc, clauses)


def _drawn(documents: Sequence[Document], rng: np.random.Generator) -> list[Document]:
    if len(documents) <= _MOST:
        return list(documents)
    return [documents[int(at)] for at in rng.choice(len(documents), _MOST, replace=False)]


def _middle(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each column, 0 where nothing is measured."""
    return np.array([np.median(own) if (own := c[~np.isnan(c)]).size else 0.0 for c in values.T])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks by column: one outlier weighs no more than the next."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=0))


def _inner(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inner products of standardised columns, with a diagonal of about 1, shape (n, n)."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    scaled = centred[:, spread > 0] / spread[spread > 0]
    return np.asarray(scaled @ scaled.T / max(1, columns.shape[1]))


def _alike(words: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """TF-IDF cosines of all texts, shape (n, n)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(words):
        return np.zeros((len(words), len(words)))
    reader = TfidfVectorizer(sublinear_tf=True, analyzer=list)
    vectors = reader.fit_transform(words)
    return np.asarray((vectors @ vectors.T).toarray())


def _clauses(
    adjusted: NDArray[np.float64],
    values: NDArray[np.float64],
    measures: Sequence[tuple[str, str, bool]],
    held: NDArray[np.float64],
    names: Sequence[str],
    first: int,
) -> tuple[str, ...]:
    """Say what differs: columns that differ by themselves, lengths and signs before words."""
    found = []
    for at in np.argsort(adjusted[: len(measures)], kind="stable"):
        if adjusted[at] <= LEVEL:
            mine, theirs = (_middle(part)[at] for part in (values[:first], values[first:]))
            found.append(_clause(measures[at], float(mine), float(theirs)))
    gaps = [abs(float(column[:first].mean() - column[first:].mean())) for column in held.T]
    # How a text begins says more than that it holds a word.
    order = sorted(range(len(names)), key=lambda at: (-gaps[at], not names[at].endswith(_BEGINS)))
    for at in order[:_SHOWN_WORDS]:
        if adjusted[len(measures) + at] <= LEVEL:
            mine, theirs = held[:first, at].mean(), held[first:, at].mean()
            word, _, within = names[at].partition(_WITHIN)
            verb = "begins" if word.endswith(_BEGINS) else "is in"
            verb += f" the first {within} of" if within else ""
            found.append(f"“{word}” {verb} {theirs:.0%} of them, and {mine:.0%} of yours")
    words = sum(clause.startswith("“") for clause in found)
    return (*found[: len(found) - words][: _SHOWN - words], *found[len(found) - words :])


def _clause(measure: tuple[str, str, bool], mine: float, theirs: float) -> str:
    name, unit, share = measure
    if name == "length":
        low, high = sorted((max(1.0, mine), max(1.0, theirs)))
        how = "long" if theirs > mine else "short"
        return f"they are {high / low:.1f} times as {how} ({theirs:.0f} words against {mine:.0f})"
    one, other = (f"{x:.1%}" if share else f"{x:.4g}" for x in (theirs, mine))
    return f"{name} ({one}{' ' * bool(unit)}{unit} against {other})"


# What follows for an audit: before its first query, and for its verdicts.


def beforehand(
    plan: AuditPlan, reference: CalibrationSet, config: object = None
) -> tuple[tuple[str, ...], bool]:
    """Return what can be said of an audit before anything is asked, and whether it is doubtful.

    It is where the audit can hardly call a document in, or where it could do so only wrongly
    because the user's known-out documents are unlike those in question.
    """
    votes = votes_of([one.group for one in reference.documents])
    reach = VerdictReach(plan.alpha, len(without_copies(plan.documents)), votes)
    seen = PlanLikeness.of(plan, reference, config)
    alike = seen.reference
    reached = reach.told
    # What was folded away explains why so few are left.
    reached = " ".join((reached, *(folded(plan) if reach.hardly else ())))
    told = (reached, _capital(alike.told)) if alike.unlike else (reached,)
    if seen.odd:
        told = (reached, odd_told(seen.odd, len(reference.documents), ""))
    wrong = alike.unlike and reference.exact and not plan.accept_unlike
    return told, reach.hardly or wrong


def calibration_of(
    plan: AuditPlan,
    reference: CalibrationSet,
    scores: Sequence[float],
    seen: PlanLikeness | None = None,
    groups: Sequence[str | None] = (),
) -> Calibration:
    """Return what the result keeps: exact only where the texts do not speak against it.

    Args:
        plan: Documents and settings.
        reference: Those that calibrate.
        scores: Theirs.
        seen: What comparing the texts found; None compares them now.
        groups: Of the documents behind the scores.
    """
    seen = seen or PlanLikeness.of(plan, reference)
    alike = seen.reference
    note = f"{reference.note} {_capital(alike.told)}" if not alike.unlike else _capital(alike.told)
    # What nobody could test, or what nothing is ranked among, is not called exact.
    exact = reference.exact and not alike.unlike and alike.tested and bool(scores)
    exact = exact and not (plan.accept_unlike and seen.odd)
    # Known drafts count once; one in question may be known by another.
    asked = without_copies(plan.documents)
    if exact and (drafts := len(asked) - len(without_drafts(asked))):
        exact, note = False, f"{_KEPT.format(drafts)} {note}"
    votes = votes_of(groups) if any(groups) else 0
    if votes:
        note = f"{note} {_grouped(scores, groups, votes)}"
    tie = largest_tie(scores)
    return Calibration(
        reference.source,
        len(scores),
        exact,
        note,
        tuple(scores),
        alike,
        tie,
        groups=votes,
    )


def _grouped(scores: Sequence[float], groups: Sequence[str | None], votes: int) -> str:
    """Say what counts, and whether scores of one group are more alike than others."""
    _, place = np.unique([g or f"\0{at}" for at, g in enumerate(groups)], return_inverse=True)
    ranks, size = _ranks(np.array(scores)[:, None])[:, 0], np.bincount(place)

    def between(order: NDArray[np.int64]) -> float:
        return float((np.bincount(place, ranks[order]) ** 2 / size).sum())

    rng = np.random.default_rng(0)
    found = between(np.arange(len(ranks))) - 1e-9
    p = (1 + sum(between(rng.permutation(len(ranks))) >= found for _ in range(_DRAWS))) / (
        _DRAWS + 1
    )
    told = f"They count by group: {votes} groups have one vote each, of {len(scores)} documents."
    if p > _CLUSTERED:
        return told
    return (
        f"{told} Their scores cluster by group (p = {p:.2g}): by document they would say too much."
    )


_KEPT = (
    "{} documents in question are near copies of others there: a system that keeps what"
    " it is asked would know them by those."
)
_DRAWS, _CLUSTERED = 999, 0.05  # of groups at random, and the level at which scores cluster
_ROUNDS, _SCORES = 400, 400_000  # simulated audits, and scores drawn in all, at most


def power_of(
    plan: AuditPlan,
    calibration: Calibration,
    documents: int,
    inside: Mapping[str, Sequence[float]],
) -> VerdictPower:
    """Return what an audit could decide with the scores that its calibration really gave.

    Args:
        plan: Level, and whether unlike sets are accepted.
        calibration: The scores of documents outside.
        documents: Scored documents in question.
        inside: Scores of documents inside by source; the first source with enough is taken.
    """
    known = calibration.votes
    scores = np.asarray(calibration.scores, dtype=np.float64)
    tied = min(known, int((scores == scores.max()).sum())) if known else 0
    ranked = len(inside.get("known-in", ()))
    found = VerdictPower(
        documents, known, 1 / (known + 1), tied, ranked_out=ranked, alpha=plan.alpha
    )
    if calibration.unlike and not plan.accept_unlike:
        return replace(found, withheld=True)
    if not documents or not known:
        return found
    source = next((name for name, own in inside.items() if len(own) >= FEWEST_INSIDE), "")
    members = inside.get(source, ())
    separation = measured_or_tied(members, calibration.scores, ASSUMED_AUC)
    rounds = max(20, min(_ROUNDS, _SCORES // (documents + known)))
    power = expected_power(
        separation, documents=documents, known_out=known, alpha=plan.alpha, rounds=rounds
    )
    return replace(
        found,
        found=power.found,
        low=power.low,
        high=power.high,
        inside=len(members),
        source=source,
    )


UNLIKE = "unlike the known-outside documents"
_ODD_ONES = (
    "{} of your documents {} unlike the known-outside ones in words or style (a test of each text,"
    " which calls {:.1%} of those unlike that are like them): {}. {}"
)
_UNTESTED = "not exact: too few documents to test whether the known-in ones are like yours"
_WITHHELD = "it would be called {}, but the documents that it is ranked among "


def withheld(
    plan: AuditPlan,
    seen: PlanLikeness,
    verdicts: Sequence[Verdict],
    odd: Mapping[str, str],
    *,
    apart: bool = False,
) -> tuple[Verdict, ...]:
    """Take back verdicts that rest on documents unlike those in question, or asked ``apart``.

    A wrong accusation costs more than no answer. ``out`` rests on the known-in documents. ``odd``
    says by id why nothing may rest on what a document scored.
    """
    rests = {Decision.IN: seen.reference, Decision.OUT: seen.known_in}
    why = _WITHHELD + ("were asked at another time" if apart else "differ from yours")

    def kept(one: Verdict) -> Verdict:
        alike = rests.get(one.decision)
        if one.document in odd and one.score is not None and not apart:
            if not plan.accept_unlike:
                reason = odd[one.document]
                return replace(one, decision=Decision.INCONCLUSIVE, reason=reason)
            return replace(one, reason=f"{odd[one.document]}: not exact")
        if one.decision in rests and (apart or (alike and alike.unlike and not plan.accept_unlike)):
            reason = why.format(one.decision.value)
            return replace(one, decision=Decision.INCONCLUSIVE, reason=reason)
        untested = one.decision is Decision.OUT and alike and not alike.tested
        return replace(one, reason=_UNTESTED) if untested else one

    return tuple(map(kept, verdicts))


def doubts(
    plan: AuditPlan, calibration: Calibration, documents: int, seen: PlanLikeness | None = None
) -> list[str]:
    """Say what does not hold, for the warnings of a result with so many scored documents.

    Args:
        plan: Documents and settings.
        calibration: As the result keeps it.
        documents: Those that were scored.
        seen: What comparing the texts found; None compares them now.
    """
    found = []
    if calibration.unlike:
        what = "No verdict says in; --accept-unlike keeps such verdicts, at your own risk."
        if plan.accept_unlike:
            what = "Verdicts in are kept because of --accept-unlike: do not accuse on them."
        found.append(f"Not exact: {calibration.note} {what}")
    if seen and seen.odd:
        how = "Verdicts on them are kept by --accept-unlike, and are not exact."
        if not plan.accept_unlike:
            how = (
                "No verdict says in or out of them; --accept-unlike keeps such verdicts, not exact."
            )
        found.append(odd_told(seen.odd, calibration.n, how))
    known_in = seen.known_in if seen else None
    if seen is None and plan.known_in:
        known_in = likeness(plan.documents, plan.known_in)
    if known_in is not None and (known_in.unlike or not known_in.tested):
        told = _capital(known_in.told.replace("calibration", "known-in"))
        how = "cannot be relied on" if known_in.unlike else "are not exact"
        found.append(f"{told} So verdicts out {how}.")
    if documents and (reach := VerdictReach(plan.alpha, documents, calibration.votes)).hardly:
        found.append(reach.told)
    return found


def odd_told(odd: Sequence[str], known: int, how: str) -> str:
    """Say which documents are unlike the known ones, and what follows."""
    named = ", ".join(odd[:_NAMED_ODD]) + ", …" * (len(odd) > _NAMED_ODD)
    verb = "is" if len(odd) == 1 else "are"
    return _ODD_ONES.format(len(odd), verb, max(ODD, 1 / (known + 1)), named, how)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
