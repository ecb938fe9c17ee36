"""``ragwitness lab reproduce``: a table of a paper, published and ours side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.runner.task_options import Generator, Proxy, Retrieval
from ragwitness.synthesis.task import RolePlayers

if TYPE_CHECKING:
    from ragwitness.core.types import Document
    from ragwitness.membership.results.evaluation import Battery
    from research.reproduce.tables import Case, Table


def reproduce(
    name: Annotated[str, Arg()],
    data: Annotated[Path | None, PathRole.READS] = None,
    limit: int = 200,
    calibration: int = 100,
    audits: Annotated[str | None, Opt(shown="all rows of the table")] = None,
    cases: Annotated[str | None, Opt(shown="all of them")] = None,
    control: Annotated[bool | None, Opt(shown="as the table says")] = None,
    world: str | None = None,
    generator: Generator = "reader",
    retrieval: Retrieval = "lexical",
    proxy: Proxy = "reader",
    model: Annotated[str | None, PathRole.ADDRESS] = None,
    role: RolePlayers = None,
    records: Annotated[int | None, Opt(shown="all of them")] = None,
    judge: Annotated[str | None, PathRole.ADDRESS] = None,
    prompts: Annotated[int | None, Opt(shown="those of the table")] = None,
    minutes: Annotated[float | None, Opt(shown="no limit")] = None,
    seed: int = 0,
    tables: Annotated[Path, PathRole.READS] = Path("experiments"),
    out: Annotated[Path, PathRole.FILLS] = Path("build/reproduce"),
) -> None:
    """Run a table of a paper and print it beside the published one.

    Args:
        name: The paper and its table, e.g. mba/table2; list shows all.
        data: The folder of the table's corpora.
        limit: Audits: the number of documents for each case, half of them inside.
        calibration: Audits: the number of calibration documents.
        audits: Audits: names with commas between them.
        cases: Audits: only the cases whose label begins like this.
        control: Audits: run each with retrieval switched off too.
        world: Audits: how hard the system makes it: easy, hard, warm or near-duplicates. It sets
            --generator.
        model: The chat model of methods and cases that ask one; without it they are left out.
            reader is the embedded reader. Audits: the language model of a
            defense, reader:NAME or hf:NAME.
        records: Texts: the most records that are indexed. Canaries: the most policies in each arm.
        judge: The chat model that judges answers, where the table has that.
        prompts: The most prompts and questions.
        minutes: Canaries: break off after these; the same command goes on.
        seed: The seed of the random splits.
        tables: The folder that holds paper/tables.toml.
        out: The folder of the results; the same one resumes.
    """
    from ragwitness.cli.common import console
    from ragwitness.comparison.task import named_pairs
    from ragwitness.core.errors import InputError, MissingExtraError
    from ragwitness.synthesis.agents import roles_of
    from research.collusion_tables import reproduce_figure
    from research.reproduce.case_study import load_case_study, reproduce_case
    from research.reproduce.compare import (
        ComparisonOptions,
        load_compare_table,
        reproduce_comparison,
    )
    from research.reproduce.indicators import leave_scores
    from research.reproduce.tables import (
        known_tables,
        load_table,
        load_world,
        read_table,
        table_kind,
    )
    from research.reproduce.twins import with_twins

    screen = console()
    # The command as anybody can give it: where the corpora lie and results go is his own matter.
    options = {
        "limit": limit, "calibration": calibration, "audits": audits,
        "cases": cases and f"'{cases}'", "world": world, "seed": seed, "proxy": proxy,
        "generator": generator, "retrieval": retrieval, "model": model,
    }  # fmt: skip
    usual = {"seed": 0, "proxy": "reader", "generator": "reader", "retrieval": "lexical"}
    command = f"ragwitness lab reproduce {name} --data DIR" + "".join(
        f" --{key} {value}"
        for key, value in options.items()
        if value is not None and value != usual.get(key)
    )
    if control is not None:
        command += " --control" if control else " --no-control"
    if name == "list":
        for known in known_tables(tables):
            title = read_table(known, tables).get("title", "")
            screen.print(f"{known:<18}{title}", markup=False, soft_wrap=True)
        return
    kind = table_kind(name, tables)
    if kind == "collusion":
        if model or judge or data or prompts is not None:
            raise InputError(
                f"{name} asks no model and reads no corpus.", "It is run without options but --out."
            )
        reproduce_figure(name, tables, out)
        return
    if kind == "canary":
        from research.canary.study import reproduce_study

        reproduce_study(
            name, tables, out, data=data, model=model and model.removeprefix("hf:"),
            limit=records, minutes=minutes,
        )  # fmt: skip
        return
    if minutes is not None:
        raise InputError(f"{name} is not broken off: --minutes is for the canaries' tables.")
    ours_alone = {
        "--audits": audits,
        "--cases": cases,
        "--world": world,
        "--control": control,
    }
    given = [option for option, value in ours_alone.items() if value is not None]
    if kind not in ("", "scores") and given:
        raise InputError(f"{name} evaluates no audits: {given[0]} does not apply.")
    if kind == "compare":
        roles = roles_of(model, dict(named_pairs(role, "--role judge=MODEL", "model")))
        chosen = ComparisonOptions(
            data, out, model, judge, prompts, generator, retrieval, seed, roles, records
        )
        reproduce_comparison(load_compare_table(name, tables), chosen)
        return
    if judge or prompts is not None or role or records is not None:
        raise InputError(
            f"{name} evaluates audits: --judge, --role, --records and --prompts do not apply.",
            "Its size is --limit and --calibration.",
        )
    if kind == "case":
        if data is not None:
            raise InputError(f"{name} shows a record of the package: --data does not apply.")
        reproduce_case(load_case_study(name, tables), generator, proxy, out / name)
        return
    table = chosen_rows(load_table(name, tables), audits, control=control)
    told = {}
    beside: Callable[[Sequence[Document]], Sequence[Document]] = tuple
    instead: Mapping[str, object] = {}
    if world is not None:
        if generator != "reader":
            raise InputError("A world sets the generator.", "Leave out --world or --generator.")
        setting = load_world(world, tables)
        generator, instead = setting.generator, setting.rag
        if setting.twins:
            beside = partial(with_twins, seed=seed)
        told["world"] = f"{world} ({setting.generator}): {setting.why}"
        if instead:
            told["world"] += "; " + ", ".join(f"{key} = {value}" for key, value in instead.items())
    if data is None or not data.is_dir():
        raise InputError("The corpora are needed.", "Give their folder with --data DIR.")
    if model and not any(case.by_model for case in table.cases):
        raise InputError(f"No case of {name} asks a model: --model does not apply.")
    wanted = [case for case in table.cases if case.label.startswith(cases or "")]
    if not wanted:
        raise InputError(
            f"No case of {name} begins with {cases!r}.",
            f"Its cases: {'; '.join(case.label for case in table.cases)}.",
        )
    wanted = [replace(case, rag={**case.rag, **instead}) for case in wanted]
    asked = [case for case in wanted if model or not case.by_model]
    for case in asked:
        _check(case, data)
    results = []
    ending = f"-{world}" if world else ""
    folder, journal = out / f"{name}{ending}", out / f"{table.answers or name}{ending}"
    shared = {"generator": generator, "retrieval": retrieval}
    told["command"] = command
    left = [f"{case.label} (it needs --model)" for case in wanted if case not in asked]
    for case in asked:
        screen.print(f"== {case.label}", markup=False)
        try:
            found = _run(case, table, data, shared, limit, calibration, seed, proxy, journal, model,
                         beside)  # fmt: skip
        except MissingExtraError as error:
            left.append(f"{case.label} ({error})")
            screen.print(f"left out: {left[-1]}", markup=False)
            continue
        results.append((case, found))
        if kind == "scores":
            continue
        # Rows that are done can be read while the others run.
        _write(table, results, folder, told | _left_out(left), said=False)
    if kind == "scores":
        leave_scores(table, results, data, seed, folder, told | _left_out(left))
    else:
        _write(table, results, folder, told | _left_out(left), said=True)


def _left_out(cases: list[str]) -> dict[str, str]:
    return {"left out": "; ".join(cases)} if cases else {}


def chosen_rows(table: Table, audits: str | None = None, *, control: bool | None = None) -> Table:
    """Return a table with the rows that are wanted.

    Raises:
        InputError: The table has no such row.
    """
    from ragwitness.core.errors import InputError

    wanted = table.audits if audits is None else tuple(one.strip() for one in audits.split(","))
    if lost := [name for name in wanted if name not in table.audits]:
        raise InputError(
            f"{table.name} has no row {lost[0]!r}.", f"Its audits: {', '.join(table.audits)}."
        )

    def options(case: Case) -> dict[str, Mapping[str, object]]:
        return {audit: fields for audit, fields in case.options.items() if audit in wanted}

    return replace(
        table,
        audits=wanted,
        control=table.control if control is None else control,
        cases=tuple(replace(case, options=options(case)) for case in table.cases),
    )


def _check(case: Case, data: Path) -> None:
    from ragwitness.core.errors import InputError

    for name in (case.corpus, case.shadow_corpus):
        if name not in (None, "generated") and not (data / str(name)).is_file():
            raise InputError(
                f"{case.label} needs {data / str(name)}, which is not there.",
                "Give the folder of the corpora with --data DIR.",
            )


def _run(case: Case, table: Table, data: Path, shared: dict[str, str], limit: int,
         calibration: int, seed: int, proxy: str, folder: Path,
         model: str | None,
         beside: Callable[[Sequence[Document]], Sequence[Document]]) -> Battery:  # fmt: skip
    from ragwitness.cli.common import say_error
    from ragwitness.membership.evaluation import BatteryPlan
    from ragwitness.rag.lab import rag_config
    from ragwitness.runner.task_runtime import as_documents
    from ragwitness.text.sample import load_sample
    from research.reproduce.batteries import run_plan

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
        else as_documents(str(data / auxiliary), note=say_error)
    )
    # Cases of one table share their answers: the journal keys them by system and query.
    documents = as_documents(str(data / case.corpus), note=say_error)
    return run_plan(
        plan,
        documents,
        case.defense,
        proxy,
        folder,
        auxiliary=others,
        rewriter=model if case.by_model else None,
        beside=beside,
    )


def _write(table: Table, results: list[tuple[Case, Battery]], folder: Path,
           told: dict[str, str], *, said: bool) -> None:  # fmt: skip
    from research.reproduce.files import leave_table
    from research.reproduce.report import reproduction_json, reproduction_markdown, reproduction_svg

    leave_table(
        folder,
        reproduction_markdown(table, results, told),
        reproduction_json(table, results, told),
        reproduction_svg(table, results),
        said=said,
    )
