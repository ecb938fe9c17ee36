"""Assumptions of an audit, tested on the texts before its first query.

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
from ragwitness.membership.plan import (
    AuditPlan,
    CalibrationSet,
    folded,
    nearest,
    without_drafts,
)
from ragwitness.membership.response_parsing.replies import cut_words
from ragwitness.membership.results.assumptions import (
    LEVEL,
    ODD,
    SetLikeness,
    VerdictReach,
)
from ragwitness.membership.results.audit import Calibration
from ragwitness.stats.p_values import largest_tie, two_sample, votes_of
from ragwitness.text.domain_shift import MEASURES, is_mark, kind_words, measure, unlikeness
from ragwitness.text.overlap import without_copies
from ragwitness.text.words import cut_characters, split_words

_MOST = 400  # documents of a set that are compared: a difference too small for them is none
_LONGEST = 20_000  # characters of a document whose words are read
_LIMITS = {"max_chars": "characters", "max_words": "words"}  # how much a method reads
_OPENINGS = (600, 2048)  # characters at which many methods and retrievers stop
_COMMON = 0.05  # share of all documents from which a word is tested by itself
_NAMED = 300  # such words, and as many for each opening
_PAIRED = 400  # words of a text that are also compared in pairs
_NAMED_ODD = 5  # documents unlike the known ones that are named
_SHOWN, _SHOWN_WORDS = 4, 2  # reported differences, and words among them
_BEGINS = " …"  # behind the word with which a text begins
_WITHIN = " … within "  # behind a word in an opening, before the length of the opening


def likeness(
    asked: Sequence[Document], known: Sequence[Document], config: object = None
) -> SetLikeness:
    """Compare documents in question with those that calibrate; no query is sent.

    Args:
        asked: Documents in question; copies count once.
        known: Documents that calibrate.
        config: Of the method; it may say how much of a text is read.
    """
    limits = {unit: getattr(config, name, None) for name, unit in _LIMITS.items()}
    read = {unit: limit for unit, limit in limits.items() if isinstance(limit, int)}
    usual = [(n, "characters") for n in _OPENINGS if n < read.get("characters", n + 1)]
    openings = (*usual, *((limit, unit) for unit, limit in read.items()))
    return _two_sample_report(without_copies(asked), without_copies(known), openings)


@dataclass(frozen=True, slots=True)
class PlanLikeness:
    """Comparison of the texts of a plan before its first query.

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
        """Compare the texts of a plan for a method; no query is sent."""
        inside = likeness(plan.documents, plan.known_in, config) if plan.known_in else None
        alike = likeness(plan.documents, reference.documents, config)
        # Where the sets differ, no document is called in anyway.
        odd = () if alike.unlike else outlier_ids(plan.documents, reference.documents)[0]
        return cls(alike, inside, odd)


_FEWEST = 10  # known documents; fewer do not show how much they differ from each other


@functools.lru_cache(maxsize=2)  # as often as that of the sets
def outlier_ids(
    asked: tuple[Document, ...], known: tuple[Document, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of documents unlike the known ones, and of equally odd known ones.

    At most ``ODD`` of the documents of the known ones' kind are expected among them. With n known
    ones, too few for so small a p-value, it is one in n + 1.
    """
    drawn = _drawn(known, np.random.default_rng(0))
    if len(drawn) < _FEWEST:
        return (), ()
    among_known, distances = unlikeness([d.text for d in drawn], [d.text for d in asked])
    # Conformal: the rank of each document among the known ones and itself, ties in its favour.
    level = max(ODD, 1 / (len(drawn) + 1))
    allowed, falling = int(level * (len(drawn) + 1) + 1e-9), np.sort(among_known)[::-1]
    odd = (distances > falling[allowed - 1], among_known > falling[allowed])
    asked_ids, known_ids = (
        tuple(document.id for document, is_odd in zip(documents, marks, strict=True) if is_odd)
        for documents, marks in zip((asked, drawn), odd, strict=True)
    )
    return asked_ids, known_ids


@functools.lru_cache(maxsize=2)  # before the first query, and again for the verdicts
def _two_sample_report(
    asked: Sequence[Document], known: Sequence[Document], openings: Sequence[tuple[int, str]]
) -> SetLikeness:
    from scipy.stats import rankdata

    rng = np.random.default_rng(0)
    sets = [_drawn(documents, rng) for documents in (asked, known)]
    texts = [document.text.rstrip()[:_LONGEST] for drawn in sets for document in drawn]
    first, n = len(sets[0]), len(texts)
    if not 0 < first < n:
        return SetLikeness(first, n - first, 1.0, 1.0)
    # 1. Features that have a name: lengths and signs, and which common words a text holds.
    words = [kind_words(text) for text in texts]
    values, measures = [list(map(measure, texts, words))], list(MEASURES)
    # Every kind of mark too: a prompt that quotes the text may end at one.
    signs = [
        {*tokens, *(tokens[0] + _BEGINS for _ in tokens[:1]), *filter(is_mark, set(text))}
        for tokens, text in zip(words, texts, strict=True)
    ]
    cosines = _cosines([[*tokens, *map(" ".join, pairwise(tokens[:_PAIRED]))] for tokens in words])
    # A method that reads no further than an opening, or the second half alone, sees the same words
    # at other places.
    halves = [cut_words(text, min(_PAIRED, len(split_words(text))) // 2)[0] for text in texts]
    views = [("half", halves)]
    for length, unit in openings:
        cut = cut_words if unit == "words" else cut_characters
        excerpts = [cut(text.strip(), length)[0] for text in texts]
        if excerpts != [text.strip() for text in texts]:
            views.append((f"{length} {unit}", excerpts))
    for view, excerpts in views:
        opening = [kind_words(text) for text in excerpts]
        for tokens, within in zip(signs, opening, strict=True):
            tokens.update(f"{word}{_WITHIN}{view}" for word in within)
        cosines += _cosines([[*tokens, *map(" ".join, pairwise(tokens))] for tokens in opening])
        values.append(list(map(measure, excerpts, opening)))
        measures += [(f"{row[0]} within the first {view}", *row[1:]) for row in MEASURES]
    versions = nearest(texts)[:, None]
    measured = np.hstack([*values, versions])
    measures.append(("share of words in common with the most similar other text", "", True))
    # Words that neither all documents nor too few of them hold, the most frequent first.
    counts = Counter(sign for tokens in signs for sign in tokens)
    rare = max(2.0, min(_COMMON * n, first, n - first))
    common = sorted(
        (s for s, c in counts.items() if rare <= c <= n - rare), key=lambda s: (-counts[s], s)
    )
    names = common[: _NAMED * len(values)]
    present = np.array([[name in tokens for name in names] for tokens in signs], dtype=np.float64)
    # Ranks by column: one outlier weighs no more than the next.
    ranked = rankdata(np.where(np.isnan(measured), _median(measured), measured), axis=0)
    # 2. A classifier reads all words and all lengths and signs.
    gram = cosines / len(values) + _inner(ranked)
    test = two_sample(gram, np.hstack([ranked, present.reshape(n, -1)]), first, rng)
    # 3. The largest differences, in words.
    columns = (test.columns, measured, measures, present, names, first)
    clauses = _clauses(*columns) if test.p_value <= LEVEL else ()
    auc = None if np.isnan(test.auc) else test.auc
    return SetLikeness(first, n - first, test.p_value, test.least, auc, clauses)


def _drawn(documents: Sequence[Document], rng: np.random.Generator) -> list[Document]:
    if len(documents) <= _MOST:
        return list(documents)
    return [documents[int(at)] for at in rng.choice(len(documents), _MOST, replace=False)]


def _median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each column, 0 for a column without values."""
    return np.array(
        [np.median(values_of) if (values_of := c[~np.isnan(c)]).size else 0.0 for c in values.T]
    )


def _inner(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inner products of standardised columns, with a diagonal of about 1, shape (n, n)."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    scaled = centred[:, spread > 0] / spread[spread > 0]
    return np.asarray(scaled @ scaled.T / max(1, columns.shape[1]))


def _cosines(words: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """TF-IDF cosines of all texts, shape (n, n)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(words):
        return np.zeros((len(words), len(words)))
    vectors = TfidfVectorizer(sublinear_tf=True, analyzer=list).fit_transform(words)
    return np.asarray((vectors @ vectors.T).toarray())


def _clauses(
    adjusted: NDArray[np.float64],
    values: NDArray[np.float64],
    measures: Sequence[tuple[str, str, bool]],
    present: NDArray[np.float64],
    names: Sequence[str],
    first: int,
) -> tuple[str, ...]:
    """Describe columns that differ by themselves, lengths and signs before words."""
    clauses = []
    for at in np.argsort(adjusted[: len(measures)], kind="stable"):
        if adjusted[at] <= LEVEL:
            in_question, calibrating = (
                _median(rows)[at] for rows in (values[:first], values[first:])
            )
            clauses.append(_clause(measures[at], float(in_question), float(calibrating)))
    shares = present[:first].mean(axis=0), present[first:].mean(axis=0)
    # The beginning of a text says more than a word somewhere in it.
    order = sorted(
        range(len(names)),
        key=lambda at: (-abs(shares[0][at] - shares[1][at]), not names[at].endswith(_BEGINS)),
    )
    about_words = []
    for at in order[:_SHOWN_WORDS]:
        if adjusted[len(measures) + at] <= LEVEL:
            word, _, within = names[at].partition(_WITHIN)
            verb = "begins" if word.endswith(_BEGINS) else "is in"
            verb += f" the first {within} of" if within else ""
            them, yours = f"{shares[1][at]:.0%} of them", f"{shares[0][at]:.0%} of yours"
            about_words.append(f"“{word}” {verb} {them}, and {yours}")
    return (*clauses[: _SHOWN - len(about_words)], *about_words)


def _clause(measure: tuple[str, str, bool], asked: float, known: float) -> str:
    name, unit, share = measure
    if name == "length":
        low, high = sorted((max(1.0, asked), max(1.0, known)))
        how = "long" if known > asked else "short"
        return f"they are {high / low:.1f} times as {how} ({known:.0f} words against {asked:.0f})"
    known_text, yours = (f"{x:.1%}" if share else f"{x:.4g}" for x in (known, asked))
    return f"{name} ({known_text}{' ' * bool(unit)}{unit} against {yours})"


# The consequences for an audit: before its first query, and for its verdicts.


def beforehand(
    plan: AuditPlan, reference: CalibrationSet, config: object = None
) -> tuple[tuple[str, ...], bool]:
    """Return remarks on an audit before its first query, and whether the audit is doubtful.

    It is doubtful if it can hardly call a document in, or only wrongly, because the user's
    known-out documents are unlike those in question.
    """
    if plan.references:
        return _by_odds(plan), False
    votes = votes_of([document.group for document in reference.documents])
    reach = VerdictReach(plan.alpha, len(without_copies(plan.documents)), votes)
    comparison = PlanLikeness.of(plan, reference, config)
    alike = comparison.reference
    # Folded copies explain a small number of documents.
    remarks = [" ".join((reach.told, *(folded(plan) if reach.hardly else ())))]
    if comparison.odd:
        remarks.append(_odd_remark(comparison.odd, len(reference.documents), ""))
    elif alike.unlike:
        remarks.append(_capital(alike.told))
    if not plan.known_out:
        remarks.append(
            f"You gave none: {len(reference.documents)} texts of this package stand in. With a"
            " reference model (pip install '.[chat]') no other document is needed."
        )
    wrong = alike.unlike and reference.exact and not plan.accept_unlike
    return tuple(remarks), reach.hardly or wrong


def ranks_decide(plan: AuditPlan, reference: CalibrationSet) -> bool:
    """Whether known-outside documents are enough for ranks to decide at half of the level."""
    votes = votes_of([document.group for document in reference.documents])
    return not VerdictReach(plan.alpha / 2, len(without_copies(plan.documents)), votes).hardly


def _by_odds(plan: AuditPlan) -> tuple[str, ...]:
    """Remark on an audit whose evidence is put on an absolute scale."""
    models = " and ".join(plan.references)
    needed = without_copies(plan.documents)
    return (
        f"Words that were never sent are compared with the guesses of {models}: each document gets"
        f" a verdict by itself, from an e-value of {1 / plan.alpha:g} if all are inside, and of"
        f" {len(needed) / plan.alpha:g} if one is.",
    )


_DRAFTS = (
    "{} documents in question are near copies of others there: a system that keeps what"
    " it is asked would know them by those."
)


def calibration_of(
    plan: AuditPlan,
    reference: CalibrationSet,
    scores: Sequence[float],
    alike: SetLikeness,
    odd: Sequence[str],
    groups: Sequence[str | None] = (),
) -> Calibration:
    """Return the calibration of a result: exact only if the texts do not speak against it.

    Args:
        plan: Documents and settings.
        reference: Those that calibrate.
        scores: Theirs.
        alike: Comparison of these texts with those in question.
        odd: Ids of documents in question that are unlike these.
        groups: Of the documents behind the scores.
    """
    note = _capital(alike.told) if alike.unlike else f"{reference.note} {_capital(alike.told)}"
    # A test is missing, or nothing is ranked: then nothing is called exact.
    exact = reference.exact and not alike.unlike and alike.tested and bool(scores)
    exact = exact and not (plan.accept_unlike and odd)
    # Known drafts count once; a draft in question may be known by another.
    distinct = without_copies(plan.documents)
    if exact and (drafts := len(distinct) - len(without_drafts(distinct))):
        exact, note = False, f"{_DRAFTS.format(drafts)} {note}"
    votes = votes_of(groups) if any(groups) else 0
    if votes:
        count = f"{votes} groups have one vote each, of {len(scores)} documents."
        note = f"{note} They count by group: {count}"
    tie = largest_tie(scores)
    return Calibration(
        reference.source, len(scores), exact, note, tuple(scores), alike, tie, groups=votes
    )


UNLIKE = "unlike the known-outside documents"
_ODD_REMARK = (
    "{} of your documents {} unlike the known-outside ones in words or style (a test of each text,"
    " which calls {:.1%} of those unlike that are like them): {}. {}"
)
_UNTESTED = "not exact: too few documents to test whether the known-in ones are like yours"
_WITHHELD = "it would be called {}, but the documents that it is ranked among "


def take_back(
    plan: AuditPlan,
    seen: PlanLikeness,
    verdicts: Sequence[Verdict],
    odd: Mapping[str, str],
    *,
    apart: bool = False,
) -> tuple[Verdict, ...]:
    """Take back verdicts whose calibration differs from the documents in question.

    A wrong accusation costs more than no answer. ``out`` rests on the known-in documents.

    Args:
        plan: Whether unlike documents are accepted.
        seen: Comparison of the texts.
        verdicts: Those of the ranks.
        odd: By id: why nothing may rest on a document's score.
        apart: Whether the calibration documents were asked about at another time.
    """
    rests = {Decision.IN: seen.reference, Decision.OUT: seen.known_in}
    template = _WITHHELD + ("were asked at another time" if apart else "differ from yours")

    def checked(verdict: Verdict) -> Verdict:
        alike = rests.get(verdict.decision)
        if verdict.document in odd and verdict.score is not None and not apart:
            reason = odd[verdict.document]
            if plan.accept_unlike:
                return replace(verdict, reason=f"{reason}: not exact")
            return replace(verdict, decision=Decision.INCONCLUSIVE, reason=reason)
        unlike = alike and alike.unlike and not plan.accept_unlike
        if verdict.decision in rests and (apart or unlike):
            reason = template.format(verdict.decision.value)
            return replace(verdict, decision=Decision.INCONCLUSIVE, reason=reason)
        untested = verdict.decision is Decision.OUT and alike and not alike.tested
        return replace(verdict, reason=_UNTESTED) if untested else verdict

    return tuple(map(checked, verdicts))


def doubts(
    plan: AuditPlan, calibration: Calibration, documents: int, seen: PlanLikeness
) -> list[str]:
    """Return warnings about the assumptions of a result.

    Args:
        plan: Documents and settings.
        calibration: That of the result.
        documents: Number of scored documents in question.
        seen: Comparison of the texts.
    """
    warnings = []
    if calibration.unlike:
        consequence = "No verdict says in; --accept-unlike keeps such verdicts, at your own risk."
        if plan.accept_unlike:
            consequence = "Verdicts in are kept because of --accept-unlike: do not accuse on them."
        warnings.append(f"Not exact: {calibration.note} {consequence}")
    if seen.odd:
        consequence = "Verdicts on them are kept by --accept-unlike, and are not exact."
        if not plan.accept_unlike:
            consequence = (
                "No verdict says in or out of them; --accept-unlike keeps such verdicts, not exact."
            )
        warnings.append(_odd_remark(seen.odd, calibration.n, consequence))
    known_in = seen.known_in
    if known_in is not None and (known_in.unlike or not known_in.tested):
        remark = _capital(known_in.told.replace("calibration", "known-in"))
        how = "cannot be relied on" if known_in.unlike else "are not exact"
        warnings.append(f"{remark} So verdicts out {how}.")
    if documents and (reach := VerdictReach(plan.alpha, documents, calibration.votes)).hardly:
        warnings.append(reach.told)
    return warnings


def _odd_remark(odd: Sequence[str], known: int, consequence: str) -> str:
    """Name documents that are unlike the known ones."""
    named = ", ".join(odd[:_NAMED_ODD]) + ", …" * (len(odd) > _NAMED_ODD)
    verb = "is" if len(odd) == 1 else "are"
    return _ODD_REMARK.format(len(odd), verb, max(ODD, 1 / (known + 1)), named, consequence)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
