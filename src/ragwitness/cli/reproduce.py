"""``ragwitness reproduce``: a table of a paper, published and ours side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ragwitness.runs.battery import Battery, Table
    from ragwitness.runs.battery.tables import Case

__all__ = ["reproduce"]


def reproduce(
    name: Annotated[str, typer.Argument(help="paper/table, e.g. mba/table2; list shows all.")],
    data: Annotated[Path | None, typer.Option(help="Folder of the table's corpora.")] = None,
    limit: Annotated[int, typer.Option(help="Audits: documents per case, half inside.")] = 200,
    calibration: Annotated[int, typer.Option(help="Audits: calibration documents.")] = 100,
    generator: Annotated[str, typer.Option(help="reader or hf:NAME.")] = "reader",
    retrieval: Annotated[str, typer.Option(help="lexical, minilm or hf:NAME.")] = "lexical",
    proxy: Annotated[str, typer.Option(help="The auditor's own model.")] = "reader",
    model: Annotated[
        str | None, typer.Option(help="Chat model of methods that ask one; they are left out else.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="Chat model that judges answers, where the table has that.")
    ] = None,
    prompts: Annotated[
        int | None, typer.Option(help="Most prompts and questions; default: the table's.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Proofs: documents to measure at, e.g. 64,256.")
    ] = None,
    backends: Annotated[
        str | None, typer.Option(help="Proofs: back ends; default: all that are installed.")
    ] = None,
    policies: Annotated[
        int | None, typer.Option(help="Canaries: most policies in each arm; default: the table's.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Canaries: policies trained at once.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the splits.")] = 0,
    tables: Annotated[Path, typer.Option(help="Folder of paper/tables.toml.")] = Path(
        "experiments"
    ),
    out: Annotated[Path, typer.Option(help="Folder of the results; resumes there.")] = Path(
        "build/reproduce"
    ),
) -> None:
    """Run a table of a paper; print it beside the published one."""
    from ragwitness.cli.canary_study import reproduce_study
    from ragwitness.cli.common import console
    from ragwitness.cli.compare_tables import ComparisonOptions, reproduce_comparison
    from ragwitness.cli.proof_costs import reproduce_costs
    from ragwitness.errors import InputError
    from ragwitness.runs.battery.tables import load_table
    from ragwitness.runs.canary_study import load_study_table
    from ragwitness.runs.comparison.tables import load_compare_table
    from ragwitness.runs.proof_cost import load_cost_table
    from ragwitness.runs.tables import known_tables, read_table, table_kind

    screen = console()
    if name == "list":
        for known in known_tables(tables):
            title = read_table(known, tables).get("title", "")
            screen.print(f"{known:<18}{title}", markup=False, soft_wrap=True)
        return
    kind = table_kind(name, tables)
    if kind == "proofs":
        if model or judge or data or prompts is not None:
            raise InputError(
                f"{name} measures proofs: it asks no model and reads no corpus.",
                "Its size is --sizes, its provers are --backends.",
            )
        reproduce_costs(load_cost_table(name, tables), out, sizes, backends)
        return
    if kind == "canary":
        reproduce_study(load_study_table(name, tables), data, out, policies, processes)
        return
    if policies is not None:
        raise InputError(f"{name} trains no policies: --policies does not apply.")
    if sizes or backends:
        raise InputError(
            f"{name} measures no proofs: --sizes and --backends do not apply.",
            "Its size is --limit and --calibration, or --prompts.",
        )
    if kind == "compare":
        chosen = ComparisonOptions(data, out, model, judge, prompts, generator, retrieval, seed)
        reproduce_comparison(load_compare_table(name, tables), chosen)
        return
    if model or judge or prompts is not None:
        raise InputError(
            f"{name} evaluates audits: --model, --judge and --prompts do not apply.",
            "Its size is --limit and --calibration.",
        )
    table = load_table(name, tables)
    if data is None or not data.is_dir():
        raise InputError("The corpora are needed.", "Give their folder with --data DIR.")
    for case in table.cases:
        _check(case, data)
    results = []
    for case in table.cases:
        screen.print(f"== {case.label}", markup=False)
        shared = {"generator": generator, "retrieval": retrieval}
        results.append(
            (case, _run(case, table, data, shared, limit, calibration, seed, proxy, out))
        )
    _write(table, results, out / name)


def _check(case: Case, data: Path) -> None:
    from ragwitness.errors import InputError

    for name in (case.corpus, case.shadow_corpus):
        if name not in (None, "generated") and not (data / str(name)).is_file():
            raise InputError(
                f"{case.label} needs {data / str(name)}, which is not there.",
                "Give the folder of the corpora with --data DIR.",
            )


def _run(case: Case, table: Table, data: Path, shared: dict[str, str], limit: int,
         calibration: int, seed: int, proxy: str, out: Path) -> Battery:  # fmt: skip
    from ragwitness.cli.common import rag_config, read_documents
    from ragwitness.cli.evaluate import run_plan
    from ragwitness.runs.battery import BatteryPlan
    from ragwitness.text.sample import load_sample

    plan = BatteryPlan(
        audits=table.audits,
        members=limit // 2,
        non_members=limit // 2,
        calibration=calibration,
        seed=seed,
        rag=rag_config(**{**shared, **case.rag}),
        shadow=rag_config(**{**shared, **case.rag, **case.shadow}) if case.shadow else None,
        options=case.options,
        thresholds=case.thresholds,
        control=table.control,
    )
    auxiliary = case.shadow_corpus
    others = (
        ()
        if auxiliary is None
        else tuple(load_sample())
        if auxiliary == "generated"
        else read_documents(str(data / auxiliary))
    )
    # Cases of one table share their answers: the journal keys them by system and query.
    folder = out / table.name
    documents = read_documents(str(data / case.corpus))
    return run_plan(
        plan, documents, case.defense, proxy, folder, auxiliary=others, resume="the same command"
    )


def _write(table: Table, results: list[tuple[Case, Battery]], folder: Path) -> None:
    from ragwitness.cli.reproduced import leave_table
    from ragwitness.report.reproduction import (
        reproduction_json,
        reproduction_markdown,
        reproduction_svg,
    )

    leave_table(
        folder,
        reproduction_markdown(table, results),
        reproduction_json(table, results),
        reproduction_svg(table, results),
    )
