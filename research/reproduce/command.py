"""``ragwitness reproduce``: a table of a paper, published and ours side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.options import Generator, Proxy, Retrieval
from ragwitness.cli.paths import PathRole

if TYPE_CHECKING:
    from ragwitness.results.evaluation import Battery
    from research.reproduce.tables import Case, Table


def reproduce(
    name: Annotated[
        str, typer.Argument(help="The paper and its table, e.g. mba/table2; list shows all.")
    ],
    data: Annotated[
        Path | None, PathRole.READS, typer.Option(help="The folder of the table's corpora.")
    ] = None,
    limit: Annotated[
        int,
        typer.Option(help="Audits: the number of documents for each case, half of them inside."),
    ] = 200,
    calibration: Annotated[
        int, typer.Option(help="Audits: the number of calibration documents.")
    ] = 100,
    generator: Generator = "reader",
    retrieval: Retrieval = "lexical",
    proxy: Proxy = "reader",
    model: Annotated[
        str | None,
        PathRole.ADDRESS,
        typer.Option(help="The chat model of methods that ask one; without it they are left out."),
    ] = None,
    judge: Annotated[
        str | None,
        PathRole.ADDRESS,
        typer.Option(help="The chat model that judges answers, where the table has that."),
    ] = None,
    prompts: Annotated[
        int | None,
        typer.Option(help="The most prompts and questions.", show_default="those of the table"),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Proofs: the numbers of documents, e.g. 64,256.")
    ] = None,
    backends: Annotated[
        str | None, typer.Option(help="Proofs: the back ends.", show_default="all installed ones")
    ] = None,
    policies: Annotated[
        int | None,
        typer.Option(
            help="Canaries: the most policies in each arm.", show_default="those of the table"
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(help="Canaries: the number of policies trained at once.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="The seed of the random splits.")] = 0,
    tables: Annotated[
        Path, PathRole.READS, typer.Option(help="The folder that holds paper/tables.toml.")
    ] = Path("experiments"),
    out: Annotated[
        Path, PathRole.FILLS, typer.Option(help="The folder of the results; the same one resumes.")
    ] = Path("build/reproduce"),
) -> None:
    """Run a table of a paper and print it beside the published one."""
    from ragwitness.cli.common import console
    from ragwitness.errors import InputError
    from research.canary.study import load_study_table, reproduce_study
    from research.proof_cost.costs import load_cost_table, reproduce_costs
    from research.reproduce.compare import (
        ComparisonOptions,
        load_compare_table,
        reproduce_comparison,
    )
    from research.reproduce.tables import known_tables, load_table, read_table, table_kind

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
    from ragwitness.audits.evaluation import BatteryPlan
    from ragwitness.cli.common import read_documents
    from ragwitness.cli.evaluate import run_plan
    from ragwitness.kit.workers import workers
    from ragwitness.lab import rag_config
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
        in_flight=max(4, 2 * workers()),
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
    from research.reproduce.files import leave_table
    from research.reproduce.report import reproduction_json, reproduction_markdown, reproduction_svg

    leave_table(
        folder,
        reproduction_markdown(table, results),
        reproduction_json(table, results),
        reproduction_svg(table, results),
    )
