"""The pages as HTML; every text from a run folder is escaped and made visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from urllib.parse import quote

from ragwitness.errors import RagwitnessError
from ragwitness.report import view
from ragwitness.report import wording as say
from ragwitness.report.html import environment, report_values, resource
from ragwitness.runs.budget import Use
from ragwitness.runs.transcript import Exchange, count_answers, exchanges, heard
from ragwitness.stats.evaluation import Rate
from ragwitness.types import Verdict
from ragwitness.web import comparing, evidence, figures
from ragwitness.web.reading import Run, spending_of

__all__ = [
    "compare_page",
    "document_page",
    "list_page",
    "message_page",
    "run_page",
    "style_sheet",
]

_PACKAGES = ("ragwitness.web", "ragwitness.report")
_MOST_CHANGES = 500


@dataclass(frozen=True, slots=True)
class _Row:
    """A run in the list, formatted."""

    run: Run
    link: str
    method: str
    target: str
    found: str
    auc: Rate | None
    queries: str
    when: str


def list_page(runs: Sequence[Run], roots: Sequence[str]) -> str:
    """Return the list of runs."""
    comparable = [run for run in runs if run.result is not None and run.table is None]
    return _render(
        "runs.html.j2", rows=[_row(run) for run in runs], comparable=comparable, roots=roots
    )


def run_page(run: Run) -> str:
    """Return what is known of one run.

    Raises:
        InputError: A file of it cannot be read.
    """
    own: dict[str, object] = {"run": run, "page_of": lambda name: document_link(run, name)}
    if run.audit is not None:
        return _render("run.html.j2", **{**report_values(run.audit), **own}, curves=_curves(run))
    if run.table is not None:
        return _render("table.html.j2", run=run, row=_row(run))
    if run.battery is not None:
        from ragwitness.report.battery import battery_values

        return _render("evaluation.html.j2", **battery_values(run.battery), **own)
    own |= {"heard": heard(run.folder), "curves": _curves(run)}
    if run.leak is not None:
        from ragwitness.report.leak_html import leak_values

        return _render("leakage.html.j2", **{**leak_values(run.leak), **own})
    if run.comparison is not None:
        from ragwitness.report.compare_html import comparison_values

        return _render("comparison.html.j2", **{**comparison_values(run.comparison), **own})
    return _render(
        "other.html.j2",
        **own,
        row=_row(run),
        facts=comparing.facts(run, run),
        spent=sum(spending_of(run), Use()),
    )


def document_page(run: Run, document: str) -> str | None:
    """Return the evidence about one document; None where the run does not know it.

    Raises:
        InputError: The journal cannot be read.
    """
    verdicts = sorted(run.audit.verdicts, key=view.strength) if run.audit else []
    place = next((i for i, v in enumerate(verdicts) if v.document == document), None)
    found = _of_target(run, exchanges(run.folder, document))
    if place is None and not found:
        return None
    verdict = verdicts[place] if place is not None else None
    around = [
        _neighbour(run, verdicts, None if place is None else place + step) for step in (-1, 1)
    ]
    scores = (
        [(one.audit, one.scores.get(document)) for one in run.battery.audits] if run.battery else []
    )
    return _render(
        "document.html.j2",
        run=run,
        document=document,
        row=view.row(verdict) if verdict else None,
        told=evidence.told(verdict, found) if verdict else (),
        asked=evidence.asked(found, verdict.evidence if verdict else ()),
        expected=verdict.queries if verdict else 0,
        before=around[0],
        after=around[1],
        scores=[(name, say.score_text(score)) for name, score in scores],
        place=None if place is None else (place + 1, len(verdicts)),
    )


def compare_page(first: Run, second: Run) -> str:
    """Return two runs side by side."""
    ones, others = first.audit, second.audit
    audits = (ones, others) if ones and others else None
    changed = comparing.changes(*audits) if audits else ()
    return _render(
        "pair.html.j2",
        first=first,
        second=second,
        facts=comparing.facts(first, second),
        rates=comparing.rates(first, second),
        difference=comparing.area_difference(*audits) if audits else None,
        rocs=figures.both_rocs(audits, ("first", "second")) if audits else None,
        agreement=comparing.agreement(*audits) if audits else None,
        changed=changed[:_MOST_CHANGES],
        more=max(0, len(changed) - _MOST_CHANGES),
        signed=say.signed,
    )


def message_page(title: str, text: str) -> str:
    """Return a page that says one thing, such as an error."""
    return _render("message.html.j2", title=title, text=text)


@cache
def style_sheet() -> str:
    """Return the style of the reports with that of the pages."""
    return "".join(resource(name, _PACKAGES) or "" for name in ("style.css", "web.css"))


def run_link(run: Run) -> str:
    """Return the address of a run's page."""
    return f"/run/{run.key}"


def document_link(run: Run, document: str) -> str:
    """Return the address of a document's page."""
    return f"/run/{run.key}/document?id={quote(document, safe='', errors='surrogatepass')}"


def _render(template: str, **values: object) -> str:
    return (
        environment(_PACKAGES)
        .get_template(template)
        .render(run_link=run_link, document_link=document_link, version=_version(), **values)
    )


@cache
def _version() -> str:
    return version("ragwitness")


def _row(run: Run) -> _Row:
    written = datetime.fromtimestamp(run.changed, UTC).strftime("%Y-%m-%d %H:%M UTC")
    auc = run.audit.evaluation.auc if run.audit and run.audit.evaluation else None
    method, target, found, queries = _summary(run)
    return _Row(run, run_link(run), method, target, found, auc, queries, written)


def _summary(run: Run) -> tuple[str, str, str, str]:
    """Return method, system, what was found, and the number of queries."""
    if run.audit is not None:
        one = run.audit
        return one.method, one.target, view.headline(one)[0], say.count(one.queries)
    if run.collection is not None:
        held = run.collection
        found = f"{'decided' if held.decided else 'not decided'}, e-value 10^{held.log10_e:.1f}"
        return held.method, held.target, found, say.count(held.queries)
    if run.battery is not None:
        names = [one.audit for one in run.battery.audits if "/" not in one.audit]
        target = run.battery.settings.get("generator", "")
        return ", ".join(names), target, "see its rates", say.MISSING
    if run.leak is not None:
        from ragwitness.report.leak import headline

        attacks = run.leak.attacks
        prompts = say.count(sum(one.prompts for one in attacks))
        names = [one.name for one in attacks]
        return ", ".join(names), run.leak.target or "", headline(run.leak)[0], prompts
    if run.making is not None:
        made = run.making
        found = f"{made.counts.get('passed', 0)} of {sum(made.counts.values())} texts passed"
        return made.method, made.model, found, say.count(made.queries)
    if run.canary is not None:
        probe = run.canary
        return f"canary ({probe.way})", probe.target, probe.said[0], say.count(probe.queries)
    if run.table is not None:
        return "reproduce", "", run.table.title, say.MISSING
    if run.comparison is not None:
        from ragwitness.report.compare import headline as compared

        names = [one.name for one in run.comparison.variants]
        return ", ".join(names), "", compared(run.comparison)[0], say.MISSING
    return "", "", run.problem or _so_far(run), say.MISSING


def _so_far(run: Run) -> str:
    try:
        return f"{say.count(count_answers(run.folder))} answers so far"
    except RagwitnessError as error:
        return error.message


def _curves(run: Run) -> list[figures.Line]:
    spent, known = spending_of(run), run.audit.spent if run.audit else None
    found = [figures.tokens_figure(spent, known), figures.money_figure(spent, known)]
    if run.collection is not None:
        found.insert(0, figures.path_figure(run.collection.path, run.collection.alpha))
    return [one for one in found if one is not None]


def _of_target(run: Run, found: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """Leave out what a shadow system was asked about a document of the same name."""
    known = run.audit or run.collection or run.leak
    return tuple(one for one in found if known is None or one.asked.target == known.target)


def _neighbour(run: Run, verdicts: Sequence[Verdict], place: int | None) -> tuple[str, str] | None:
    """Return name and address of the document at a place; None beyond the ends."""
    if place is None or not 0 <= place < len(verdicts):
        return None
    name = verdicts[place].document
    return say.visible(name, 60), document_link(run, name)
