"""``ragwitness evaluate``: how well do the audits do on this corpus, and would a guesser do too?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ragwitness.runs.battery import Battery, BatteryPlan
    from ragwitness.types import Document

__all__ = ["evaluate", "run_plan"]


def evaluate(
    corpus: Annotated[str, typer.Option(help="Documents of one source; half of them is indexed.")],
    audits: Annotated[str, typer.Option(help="all, or names with commas between.")] = "all",
    limit: Annotated[int, typer.Option(help="Audited documents, half of them inside.")] = 200,
    members: Annotated[int | None, typer.Option(help="Audited documents inside.")] = None,
    non_members: Annotated[int | None, typer.Option(help="Audited documents outside.")] = None,
    calibration: Annotated[
        int, typer.Option(help="Calibration documents, inside and outside each.")
    ] = 100,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="AUDIT.NAME=VALUE of its configuration; may be repeated."),
    ] = None,
    defense: Annotated[
        str, typer.Option(help="Before the system; see ragwitness lab serve.")
    ] = "none",
    benign: Annotated[
        int, typer.Option(help="Benign questions that show what the defense costs.", min=0)
    ] = 100,
    retrieval: Annotated[
        str, typer.Option(help="lexical, minilm, hf:NAME or URL#MODEL (embeddings endpoint).")
    ] = "lexical",
    index: Annotated[
        str, typer.Option(help="Of dense retrieval; see ragwitness lab serve.")
    ] = "exact",
    generator: Annotated[str, typer.Option(help="reader or hf:NAME.")] = "reader",
    k: Annotated[int, typer.Option(help="Passages per query.")] = 4,
    template: Annotated[
        str, typer.Option(help="How passages are shown; see ragwitness lab serve.")
    ] = "plain",
    proxy: Annotated[str, typer.Option(help="The auditor's own model.")] = "reader",
    control: Annotated[
        bool, typer.Option(help="Run every audit with retrieval switched off too.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    concurrency: Annotated[int, typer.Option(help="Documents in flight.")] = 4,
    run: Annotated[
        Path | None, typer.Option(help="Run folder; the same one resumes.", show_default="by input")
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")] = None,
    text_field: Annotated[str | None, typer.Option(help="Field that holds the text.")] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
) -> None:
    """Evaluate audits on a corpus; every rate has its interval.

    One random split, always with controls: guessers that never ask the system, the system with
    its retrieval switched off, and the non-members that are most like something in the index.
    With a defense, benign questions too: what they find and are told with it and without it.
    """
    from ragwitness.cli.common import (
        console,
        per_audit,
        rag_config,
        read_documents,
        run_folder,
    )
    from ragwitness.cli.outputs import check_writable
    from ragwitness.membership.registry import AUDITS
    from ragwitness.runs.battery import BatteryPlan

    names = tuple(AUDITS) if audits == "all" else tuple(n.strip() for n in audits.split(","))
    plan = BatteryPlan(
        audits=names,
        members=limit // 2 if members is None else members,
        non_members=limit // 2 if non_members is None else non_members,
        calibration=calibration,
        seed=seed,
        rag=rag_config(
            k=k, retrieval=retrieval, index=index, generator=generator, template=template
        ),
        options=per_audit(options or ()),
        control=control,
        benign=benign,
        in_flight=concurrency,
    )
    documents = read_documents(corpus, text_field, paragraphs=paragraphs)
    if json_out is not None:
        check_writable(json_out)
    folder = run_folder(run, "evaluate", corpus, plan, defense, proxy)
    screen = console()
    battery = run_plan(plan, documents, defense, proxy, folder)
    _show(battery, folder, json_out)
    screen.print(f"report: {folder / 'evaluation.html'}", markup=False, soft_wrap=True)


def run_plan(
    plan: BatteryPlan,
    documents: tuple[Document, ...],
    defense: str,
    proxy: str,
    folder: Path,
    *,
    auxiliary: tuple[Document, ...] = (),
    resume: str | None = None,
) -> Battery:
    """Run an evaluation with progress bars; Ctrl-C leaves its answers in ``folder``."""
    import asyncio

    from ragwitness.cli.common import console, lab_target, one_thread_per_answer, progress_bars
    from ragwitness.errors import ExitCode
    from ragwitness.models import load_language_model
    from ragwitness.runs.battery import run_battery

    one_thread_per_answer()
    model = load_language_model(proxy)
    screen = console()
    try:
        with progress_bars(screen) as progress:
            work = run_battery(
                plan,
                documents,
                model,
                auxiliary=auxiliary,
                build=lambda held, rag: lab_target(held, rag, defense),
                run=folder,
                progress=progress,
            )
            return asyncio.run(work)
    except KeyboardInterrupt:
        screen.print(f"interrupted: answers so far are kept in {folder}", markup=False)
        again = resume or f"the same command and --run {folder}"
        screen.print(f"resume with {again}", markup=False)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _show(battery: Battery, folder: Path, json_out: Path | None) -> None:
    import json

    from ragwitness.cli.common import console
    from ragwitness.report.battery import battery_json, write_battery_html
    from ragwitness.report.battery_terminal import battery_terminal

    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(battery_json(battery), indent=1, ensure_ascii=False, allow_nan=False)
    for path in (folder / "result.json", json_out):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
    write_battery_html(battery, folder / "evaluation.html")
    console().print(battery_terminal(battery, where=str(folder / "evaluation.html")))
