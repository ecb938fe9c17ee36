"""What every report says, in words and formatted numbers; templates only lay it out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragwitness.report import wording as say
from ragwitness.runs.result import AuditResult, Spending
from ragwitness.stats.evaluation import Evaluation, Rate
from ragwitness.types import Decision, Verdict

__all__ = [
    "Group",
    "Measure",
    "Row",
    "Word",
    "groups",
    "headline",
    "measures",
    "spent_text",
    "strength",
    "truths",
]

_ORDER = (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)
_WORDS = 5
"""Words of evidence shown per document."""
_OPEN = 200
"""Documents up to which the longest list is unfolded at first."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of evidence, formatted."""

    before: str
    word: str
    target: str
    baseline: str


@dataclass(frozen=True, slots=True)
class Row:
    """One document, formatted."""

    id: str
    document: str
    """The id as it was given, for links."""
    verdict: Decision
    label: str
    p: str
    q: str
    p_inside: str
    score: str
    classifier: str
    queries: str
    words: tuple[Word, ...]
    more: int
    reason: str
    truth: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Documents of one verdict, strongest evidence first."""

    verdict: Decision
    label: str
    rows: tuple[Row, ...]
    share: float
    unfolded: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """One rate of the evaluation."""

    name: str
    rate: Rate
    value: str
    interval: str
    n: str
    meaning: str
    note: str
    """The same in a few words, for the terminal."""


def headline(result: AuditResult) -> tuple[str, str]:
    """Return the verdict counts as a title and the sentence below it."""
    total, found = len(result.verdicts), result.count(Decision.IN)
    if not total:
        return "No documents were audited", "There is nothing to report."
    title = f"{say.count(found)} of {say.documents(total)}: in the database"
    rest = []
    if absent := result.count(Decision.OUT):
        verb = "shows" if absent == 1 else "show"
        rest.append(f"{say.count(absent)} {verb} no sign of being in it")
    if unsure := result.count(Decision.INCONCLUSIVE):
        rest.append(f"{say.count(unsure)} {'is' if unsure == 1 else 'are'} inconclusive")
    sentence = "; ".join(rest) or "All have this verdict"
    if result.unscorable:
        sentence += f"; {say.count(result.unscorable)} could not be scored at all"
    return title, sentence + "."


def groups(result: AuditResult) -> tuple[Group, ...]:
    """Return the documents by verdict; empty groups are left out."""
    total = len(result.verdicts)
    found = []
    for decision in _ORDER:
        verdicts = [v for v in result.verdicts if v.decision is decision]
        verdicts.sort(key=strength)
        if verdicts:
            found.append(
                Group(
                    decision,
                    say.LABELS[decision],
                    tuple(row(verdict) for verdict in verdicts),
                    len(verdicts) / total,
                    len(verdicts) <= _OPEN,
                )
            )
    return tuple(found)


def strength(verdict: Verdict) -> tuple[int, float]:
    """Sort key: verdicts in the order of a report, strongest evidence for each first."""
    p = verdict.p_out if verdict.decision is Decision.OUT else verdict.p_value
    return _ORDER.index(verdict.decision), 2.0 if p is None or math.isnan(p) else p


def row(verdict: Verdict) -> Row:
    """Return one verdict, formatted; text is made visible but not yet escaped."""
    reason = verdict.reason or ("" if verdict.score is not None else "could not be scored")
    classifier = verdict.classifier
    return Row(
        id=say.visible(verdict.document),
        document=verdict.document,
        verdict=verdict.decision,
        label=say.LABELS[verdict.decision],
        p=say.p_text(verdict.p_value),
        q=say.p_text(verdict.q_value),
        p_inside=say.p_text(verdict.p_out),
        score=say.score_text(verdict.score),
        classifier=say.MISSING if classifier is None else say.probability(classifier),
        queries=say.count(verdict.queries),
        words=tuple(
            Word(
                say.visible(word.before, 80),
                say.visible(word.word, 80),
                say.probability(word.probability),
                say.probability(word.baseline),
            )
            for word in verdict.evidence[:_WORDS]
        ),
        more=max(0, len(verdict.evidence) - _WORDS),
        reason=say.visible(reason),
        truth={True: "member", False: "non-member", None: ""}[verdict.member],
        wrong=(verdict.decision is Decision.IN and verdict.member is False)
        or (verdict.decision is Decision.OUT and verdict.member is True),
    )


def measures(result: AuditResult) -> tuple[Measure, ...]:
    """Return the rates of the evaluation; none where the truth is not known."""
    found = result.evaluation
    if found is None:
        return ()
    level, by = say.percent(result.alpha), found.decided_by
    kept = f"promised: at most {level}{_kept(result, found)}"
    return (
        _measure(
            "AUC",
            found.auc,
            "chance that a member outscores a non-member; 0.5 is guessing",
            "0.5 is guessing",
        ),
        _measure("Accuracy", found.accuracy, f"right decisions ({by})", by),
        _measure("F1", found.f1, f"precision and recall in one ({by})", by),
        _measure(
            "TPR at 1 % FPR",
            found.tpr_at_1_fpr,
            "members found when at most 1 % of non-members are accused",
            "",
        ),
        _measure(
            "False positives",
            found.false_positives,
            f"non-members with p \N{LESS-THAN OR EQUAL TO} {level}; {kept}",
            kept,
        ),
        _measure(
            "True positives",
            found.true_positives,
            f"members with p \N{LESS-THAN OR EQUAL TO} {level}",
            f"members with p \N{LESS-THAN OR EQUAL TO} {level}",
        ),
    )


def _measure(name: str, rate: Rate, meaning: str, note: str) -> Measure:
    value, between = say.rate_text(rate.value), say.interval(rate)
    return Measure(name, rate, value, between, say.count(rate.n), meaning, note)


def _kept(result: AuditResult, found: Evaluation) -> str:
    """Say whether the realised rate is compatible with the level promised."""
    if math.isnan(found.false_positives.low):
        return ""
    if found.false_positives.low > result.alpha:
        return "; broken"
    if found.false_positives.value > result.alpha:
        return "; above, but within chance"
    return "; kept"


def spent_text(spent: Spending | None) -> str:
    """Return what a run has spent at its target, each beside its cap."""
    if spent is None:
        return ""
    tokens = spent.prompt_tokens + spent.completion_tokens
    parts = [f"{say.count(spent.queries)}{_most(spent.max_queries)} queries"]
    parts.append(f"{say.count(tokens)}{_most(spent.max_tokens)} tokens")
    if spent.cost is not None:
        parts.append(f"cost {spent.cost:,.4g}{_most(spent.max_cost)}")
    return ", ".join(parts)


def _most(cap: float | None) -> str:
    return "" if cap is None else f" of at most {cap:,}"


def truths(result: AuditResult) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return verdict counts (in, inconclusive, out, total) of members and non-members."""
    table = []
    for name, member in (("Members", True), ("Non-members", False)):
        own = [v for v in result.verdicts if v.member is member]
        if own:
            counts = [sum(v.decision is decision for v in own) for decision in _ORDER]
            table.append((name, (*counts, len(own))))
    return tuple(table)
