"""The pages as HTML; every text from a run folder is escaped and made visible."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from urllib.parse import quote

from ragwitness.core.errors import RagwitnessError
from ragwitness.core.run_files import SEAL
from ragwitness.core.types import Verdict
from ragwitness.membership.results import audit as membership
from ragwitness.report import formatting as fmt
from ragwitness.report.html import Cut, environment, resource
from ragwitness.runner.budget import Use
from ragwitness.runner.response_store import index_of
from ragwitness.web import evidence_pages as evidence
from ragwitness.web.forms import by_click
from ragwitness.web.runs import PAGE, Rows, Run, listed, rows_of_responses, spending_of

_PACKAGES = ("ragwitness.web", "ragwitness.report")
_WHOLE = 60  # rows of a table up to which the page of a run shows them all


@dataclass(frozen=True, slots=True)
class Begun:
    """The tasks of these pages, for the list of runs.

    Attributes:
        jobs: Title, state in words and address of each.
        form_key: For the forms of the page.
    """

    jobs: Sequence[tuple[str, str, str]]
    form_key: str


@dataclass(frozen=True, slots=True)
class RunActs:
    """The acts of these pages on a run.

    Attributes:
        job: Address and state of the task in its folder; None for none.
        again: Button and address of its form, to ask the same once more; or empty.
        form_key: For the forms of the page.
    """

    job: tuple[str, str] | None
    again: tuple[str, str]
    form_key: str


def list_page(runs: Sequence[Run], roots: Sequence[str], begun: Begun | None = None) -> str:
    """Return the list of runs, and of what these pages have begun."""
    values = {"so_far": _so_far, "written": _written}
    return render("runs.html.j2", **values, runs=runs, roots=roots, begun=begun)


def run_page(run: Run, acts: RunActs | None = None) -> str:
    """Return the page of one run: its report where it has one, else its progress.

    Args:
        run: The run.
        acts: The acts on it; None where the pages only read.

    Raises:
        InputError: A file of it cannot be read.
    """
    # A finished run is its report with other blocks; an unfinished one has only its responses and
    # its spending.
    report = run.report
    values: dict[str, object] = {
        "run": run,
        "written": _written(run),
        "page_of": lambda name: document_link(run, name),
        "cut": Cut(_WHOLE, PAGE, f"{run_link(run)}/rows"),
        "asked_link": f"{run_link(run)}/asked",
        # An audit lists its documents in its report.
        "heard": None if run.audit else index_of(run.folder).counts(),
    }
    if report is None:
        spent = sum(spending_of(run.folder), Use())
        return render("unfinished.html.j2", **values, spent=spent, job=acts and acts.job)
    return render("run.html.j2", **values, report=report, acts=acts, seal=_seal_of(run))


def _seal_of(run: Run) -> tuple[str, str] | None:
    """Return the hash that a run was sealed with, and the public key; None where it was not."""
    path = run.folder / SEAL
    if not path.exists():
        return None
    data = path.read_bytes()
    return hashlib.sha256(data).hexdigest(), str(json.loads(data).get("key", ""))


def rows_page(run: Run, given: Mapping[str, str]) -> str:
    """Return a page of the rows of a run's result, or of its documents without one."""
    if run.opened is None:
        return asked_page(run, given)
    return _listing(run, "rows", run.opened.rows, given)


def asked_page(run: Run, given: Mapping[str, str]) -> str:
    """Return a page of the documents that were asked about.

    Raises:
        InputError: The response store cannot be read.
    """
    return _listing(run, "asked", rows_of_responses(index_of(run.folder).counts().stages), given)


def _listing(run: Run, name: str, rows: Rows, given: Mapping[str, str]) -> str:
    return render(
        "rows.html.j2",
        run=run,
        listing=listed(rows, given),
        here=f"{run_link(run)}/{name}",
        group_name="Verdict" if run.audit else "Stage",
        page_of=lambda name: document_link(run, name),
        cut=Cut(),
    )


def document_page(run: Run, document: str) -> str | None:
    """Return the evidence about one document; None where the run does not know it.

    Raises:
        InputError: The response store cannot be read.
    """
    # The order of the report, so that "next" leads where a reader of the report expects.
    verdicts = run.opened.ranked if run.opened else ()
    position = run.opened.places.get(document) if run.opened else None
    # The shadow system was asked about documents of the same names: its answers are no evidence.
    target = getattr(run.result, "target", None)
    exchanges = index_of(run.folder).responses(document)
    exchanges_of_target = tuple(
        exchange for exchange in exchanges if target is None or exchange.asked.target == target
    )
    if position is None and not exchanges_of_target:
        return None
    verdict = verdicts[position] if position is not None else None
    around = [
        _neighbour(run, verdicts, None if position is None else position + step) for step in (-1, 1)
    ]
    return render(
        "document.html.j2",
        run=run,
        document=document,
        row=verdict,
        words=evidence.deciding_words(verdict, exchanges_of_target) if verdict else (),
        because=evidence.explanation(run.result, verdict) if verdict and run.audit else "",
        exchanges=evidence.marked_exchanges(
            exchanges_of_target, verdict.evidence if verdict else ()
        ),
        expected=verdict.queries if verdict else 0,
        before=around[0],
        after=around[1],
        place=None if position is None else (position + 1, len(verdicts)),
    )


def message_page(
    title: str, text: str, then: str = "", link: tuple[str, str] = ("All runs", "/")
) -> str:
    """Return a page that says one thing, such as an error.

    Args:
        title: Its heading.
        text: The event and its reason.
        then: The next step.
        link: Words and address of the way on.
    """
    return render("message.html.j2", title=title, text=text, then=then, link=link)


@cache
def style_sheet() -> str:
    """Return the style of the reports with that of the pages."""
    return "".join(resource(name, _PACKAGES) or "" for name in ("style.css", "web.css"))


@cache
def script() -> str:
    """Return the one script of the pages, which tells how far a run is."""
    return resource("live.js", _PACKAGES) or ""


def run_link(run: Run) -> str:
    """Return the address of a run's page."""
    return f"/run/{run.key}"


def document_link(run: Run, document: str) -> str:
    """Return the address of a document's page."""
    return f"/run/{run.key}/document?id={quote(document, safe='', errors='surrogatepass')}"


def render(template: str, **values: object) -> str:
    """Return a template of the pages with its values."""
    page = environment(_PACKAGES).get_template(template)
    helpers = {"run_link": run_link, "document_link": document_link, "clicks": by_click}
    return page.render(**helpers, version=_version(), fmt=fmt, audit=membership, **values)


@cache
def _version() -> str:
    return version("ragwitness")


def _written(run: Run) -> str:
    return datetime.fromtimestamp(run.changed, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _so_far(run: Run) -> str:
    try:
        return f"{fmt.count(index_of(run.folder).counts().answers)} answers so far"
    except RagwitnessError as error:
        return error.message


def _neighbour(run: Run, verdicts: Sequence[Verdict], place: int | None) -> tuple[str, str] | None:
    """Return name and address of the document at a place; None beyond the ends."""
    if place is None or not 0 <= place < len(verdicts):
        return None
    name = verdicts[place].document
    return fmt.visible(name, 60), document_link(run, name)
