"""What audits would cost and could show: one text for 80 columns, and JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragwitness.audits.forecast import Expected, Outlook, Workload
from ragwitness.report.terminal import figure_table
from ragwitness.results import wording
from ragwitness.results.assumptions import VerdictReach
from ragwitness.results.kind import finite
from ragwitness.stats.conformal import documents_needed
from ragwitness.stats.intervals import proportion_interval
from ragwitness.stats.power import AuditPower, needed_together

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

_REASONS = 2  # shown per method; the JSON has all
_HEADING = "\nexpected share of members found"


def forecast_json(outlook: Outlook) -> dict[str, Any]:
    """Return ``{"methods": {name: {...}}, ...}``, strict JSON."""
    return {
        "methods": {one.method: _method(one, outlook) for one in outlook.methods},
        "alpha": outlook.alpha,
        "inside_share": outlook.inside_share,
        "calibration": outlook.calibration,
        "warning": outlook.warning,
        "tokens_by": outlook.unit,
        "sample_seed": outlook.seed,
        "seconds_per_short_answer": outlook.latency,
        "in_flight": outlook.in_flight,
        "price_in": outlook.budget.price_in,
        "price_out": outlook.budget.price_out,
    }


def _method(one: Expected, outlook: Outlook) -> dict[str, Any]:
    # Documents that cannot be scored cost nothing and decide nothing: p-values are counted without
    # them.
    asked, known = one.documents.scorable, one.known_out.scorable
    seconds = _seconds(one, outlook)
    return {
        "documents": _asked(one.documents),
        "known_out": _asked(one.known_out),
        "queries": one.queries,
        "queries_most": one.queries_most,
        "shadow_of_your_own": one.learns,
        "seconds": list(seconds) if seconds else None,
        "seconds_of_your_own": one.own,
        "tokens_most": {"sent": one.dearest.prompt, "answer": one.dearest.completion},
        "cost_most": outlook.budget.price(one.dearest),
        "least_p_value": 1 / (known + 1),
        "needed_together": needed_together(outlook.alpha, asked, known),
        "known_out_for_any": documents_needed(outlook.alpha),
        "known_out_for_one_alone": documents_needed(outlook.alpha, 1, max(1, asked)),
        "power": {
            label: {"auc": one.auc[label]} | {k: finite(v) for k, v in asdict(power).items()}
            for label, power in one.power.items()
        },
    }


def _asked(asked: Workload) -> dict[str, Any]:
    lost = sum(asked.lost.values())
    return {
        "documents": asked.documents,
        "sampled": asked.sampled,
        "unscorable_in_sample": lost,
        "same_questions": asked.same,
        "unscorable_interval": list(proportion_interval(lost, asked.sampled))
        if asked.sampled
        else None,
        "reasons": dict(asked.lost),
        "per_document": asdict(asked.spent),
        "per_document_most": asdict(asked.most),
    }


def _seconds(one: Expected, outlook: Outlook) -> tuple[float, float] | None:
    """Between all queries side by side and one after the other; None without a latency."""
    if outlook.latency is None:
        return None
    # Two ends, because nobody knows how a target answers under load.
    whole = one.queries * outlook.latency
    return whole / max(1, outlook.in_flight), whole


def forecast_terminal(outlook: Outlook) -> Group:
    """Return costs, then expected power, each with what it rests on."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [_costs(outlook), *map(_dim, _about_costs(outlook))]
    if any(one.power for one in outlook.methods):
        parts += [Text(_HEADING), _powers(outlook.methods), *map(_dim, _about_power(outlook))]
    # What can be decided at all depends on numbers of documents alone, so methods share a sentence.
    groups = _alike(outlook.methods)
    for same in groups:
        parts.append(Text(_reach(same, outlook, named=len(groups) > 1)))
    if outlook.warning:
        parts.append(Text(outlook.warning, style="yellow"))
    return Group(*parts)


def _dim(text: str) -> Text:
    from rich.text import Text

    return Text(wording.visible(text), style="dim")


def _costs(outlook: Outlook) -> Table:
    timed, priced = outlook.latency is not None, outlook.budget.price_in is not None
    more = [*(["cost"] * priced), *(["time"] * timed)]
    table = figure_table(
        "method", "lost", "q/doc", "queries", "sent", "answer", *more, folds="time"
    )
    for one in outlook.methods:
        asked, seconds = one.documents, _seconds(one, outlook)
        cost = outlook.budget.price(one.dearest)
        table.add_row(
            one.method,
            wording.count(asked.unscorable),
            f"{asked.spent.queries:.3g}",
            wording.count(one.queries),
            wording.count(round(asked.spent.sent)),
            wording.count(round(asked.spent.answer)),
            *([] if cost is None else [f"{cost:.4g}"]),
            *([" to ".join(map(wording.duration, seconds))] if seconds else []),
        )
    return table


def _about_costs(outlook: Outlook) -> Iterable[str]:
    first = outlook.methods[0]
    counted = []
    for asked, what in ((first.documents, "in question"), (first.known_out, "known outside")):
        part = f" (counted on {asked.sampled})" if asked.sampled < asked.documents else ""
        counted.append(f"{wording.count(asked.documents)} {what}{part}")
    yield (
        f"{' and '.join(counted)}. lost: documents in question with no score before the first"
        f" query. sent, answer: tokens per document, as {outlook.unit} counts them; answer is"
        " the most asked for."
    )
    if outlook.budget.price_in is not None:
        yield (
            f"cost: at most, at {outlook.budget.price_in:g} and {outlook.budget.price_out:g} per"
            " million tokens sent and answered; the passages that a RAG system adds left aside."
        )
    own = ", ".join(f"{one.method} {wording.duration(one.own)}" for one in outlook.methods)
    yield f"Besides, this machine works on the probes, and on a shadow system: {own}."
    if outlook.latency is not None:
        yield (
            f"time: from {outlook.in_flight} queries at once to one after the other, at the"
            f" {outlook.latency:.2f} s of a short answer; longer answers take longer."
        )
    for one in outlook.methods:
        if one.learns:
            yield f"{one.method}: its shadow system is your own and costs the target nothing."
        if one.queries_most > one.queries:
            yield (
                f"{one.method}: up to {wording.count(one.queries_most)} queries to a target that"
                " says again what it was asked."
            )
        for asked, what in ((one.documents, "in question"), (one.known_out, "known outside")):
            if asked.same:
                yield (
                    f"{one.method}: {wording.count(asked.same)} {what} lost: they ask the same"
                    " question as another document."
                )
        for reason, n in Counter(one.documents.lost).most_common(_REASONS):
            yield f"{one.method}: {n} of {one.documents.sampled} lost: {reason}."


def _alike(
    methods: Iterable[Expected], also: Callable[[Expected], object] | None = None
) -> list[list[Expected]]:
    """Put methods together that can score as many documents and agree in ``also``."""
    groups: dict[object, list[Expected]] = {}
    for one in methods:
        key = (one.documents.scorable, one.known_out.scorable, also and also(one))
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _powers(methods: Iterable[Expected]) -> Table:
    """Members found by method: over several separations, or at one with its spread."""
    groups = _alike(methods, lambda one: repr(one.power))  # NaN is not like itself; its text is
    labels = list(dict.fromkeys(label for same in groups for label in same[0].power))
    if len(labels) > 1:
        return _by_separation(groups, labels)
    table = figure_table(
        "method", "AUC", "found", "in 90 % of audits", "falsely in", folds="method"
    )
    for same in groups:
        power = same[0].power.get(labels[0])
        shown = _one(power, same[0].auc[labels[0]]) if power else [wording.MISSING] * 4
        table.add_row(_names(same), *shown)
    return table


def _one(power: AuditPower, auc: float) -> list[str]:
    spread = f"{wording.percent(power.low)} to {wording.percent(power.high)}"
    return [f"{auc:.3f}", wording.percent(power.found), spread, f"{power.false:.2g}"]


def _by_separation(groups: list[list[Expected]], labels: list[str]) -> Table:
    table = figure_table("method", *labels, "falsely in", folds="method")
    for same in groups:
        powers = same[0].power
        found = [
            wording.percent(powers[x].found) if x in powers else wording.MISSING for x in labels
        ]
        most = max((power.false for power in powers.values()), default=math.nan)
        table.add_row(_names(same), *found, wording.MISSING if math.isnan(most) else f"{most:.2g}")
    return table


def _about_power(outlook: Outlook) -> Iterable[str]:
    rounds = min(p.rounds for one in outlook.methods for p in one.power.values())
    yield (
        f"Expected share of scored members with the verdict in at alpha {outlook.alpha:g}, if each"
        f" document is inside with probability {outlook.inside_share:g}; {wording.count(rounds)}"
        " simulated audits with every answer readable. falsely in: expected documents outside"
        " among them (at most, where several AUCs are shown)."
    )


def _reach(same: list[Expected], outlook: Outlook, *, named: bool) -> str:
    """Say what so many known-out documents can decide at all."""
    asked, known = same[0].documents.scorable, same[0].known_out.scorable
    who = f"{_names(same)}: " if named else ""
    if not asked:
        return f"{who}no document in question can be scored."
    told = VerdictReach(outlook.alpha, asked, known, outlook.inside_share).told
    return f"{who}{told[:1].lower()}{told[1:]}" if named else told


def _names(same: list[Expected]) -> str:
    return ", ".join(one.method for one in same)
