"""``ragwitness reproduce`` for tables that compare texts in a corpus's place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.report.compare_tables import Done
    from ragwitness.runs.comparison import Material, Question
    from ragwitness.runs.comparison.tables import CompareCase, CompareTable
    from ragwitness.runs.made import SynthesisResult

__all__ = ["ComparisonOptions", "reproduce_comparison"]


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """What a user may choose of a table.

    Attributes:
        data: Folder of the corpora; None where none was given.
        out: Folder of the results.
        model: Chat model of methods that ask one.
        judge: Chat model that judges answers.
        prompts: Of an attack, and questions at most; None for the table's.
        generator: Of the system.
        retrieval: Of the system.
        seed: Of splits, prompts and resampling.
    """

    data: Path | None
    out: Path
    model: str | None
    judge: str | None
    prompts: int | None
    generator: str
    retrieval: str
    seed: int


def reproduce_comparison(table: CompareTable, options: ComparisonOptions) -> None:
    """Run what can be run of a table, and write it beside the published one.

    Raises:
        InputError: The corpora are missing, or nothing of it can be run with what is given.
    """
    from ragwitness.cli.common import console
    from ragwitness.report.compare_tables import Done

    methods = _methods(table, options.model)
    if not methods:
        raise InputError(f"Every row of {table.name} asks a chat model.", "Name one with --model.")
    for case in table.cases:
        _check(case, options.data)
    if options.prompts is not None:
        few = options.prompts
        table = replace(table, prompts=min(table.prompts, few), asked=min(table.asked, few))
    done = []
    for case in table.cases:
        console().print(f"== {case.label}", markup=False)
        done.append(Done(case) if case.refused else _run(case, table, methods, options))
    _write(table, done, options.out / table.name)


def _methods(table: CompareTable, model: str | None) -> list[str]:
    """The variants of a table that can be run: origin first, which the others are compared with."""
    found = [
        method for label, method in table.rows.items() if model or not table.needs_model(label)
    ]
    return list(dict.fromkeys(found))


def _check(case: CompareCase, data: Path | None) -> None:
    for name in (case.corpus, case.questions):
        if not name or name == "own":
            continue
        if data is None or not (data / name).is_file():
            raise InputError(
                f"{case.label} needs the file {name}, which is not there.",
                "Give the folder of the corpora with --data DIR.",
            )


def _run(
    case: CompareCase, table: CompareTable, methods: Sequence[str], options: ComparisonOptions
) -> Done:
    from ragwitness.cli.common import rag_config
    from ragwitness.cli.compare_plan import Making, Wanted
    from ragwitness.cli.compare_run import ask
    from ragwitness.extraction.attacks import Limits
    from ragwitness.extraction.registry import build_attack
    from ragwitness.rag.embedders import load_embedder
    from ragwitness.report.compare_tables import Done
    from ragwitness.runs import Budget
    from ragwitness.runs.comparison import ComparisonPlan
    from ragwitness.runs.order import Reach

    attack = None
    if case.attack is not None:
        attack = build_attack(case.attack, Limits(table.prompts, seed=options.seed))
    plan = ComparisonPlan(
        material=_material(case, table, options),
        attacks=[] if attack is None else [attack],
        prompts=table.prompts,
        answer_tokens=256,  # as the published code
        rag=rag_config(k=1, retrieval=options.retrieval, generator=options.generator),
        by_original=True,
        seed=options.seed,
    )
    making = Making(options.model, "auto", 3, "auto", options.seed, 4, Reach())
    wanted = Wanted((), tuple(one for one in methods if one != "origin"), (), by_original=True)
    judging = None
    if options.judge is not None and any("judged" in one for one in case.columns.values()):
        judging = (options.judge, load_embedder("minilm"))
    # Tables of one paper share their answers: the journals keep them by system and query.
    folder = options.out / table.name.partition("/")[0] / Path(case.corpus).stem
    made: dict[str, SynthesisResult] = {}
    result = ask(plan, wanted, making, judging, folder, Budget(), made)
    return Done(case, result, made)


def _material(case: CompareCase, table: CompareTable, options: ComparisonOptions) -> Material:
    """Read and divide a case's corpus, the same for all tables."""
    from ragwitness.cli.common import read_documents
    from ragwitness.extraction.wiki_pii import wiki_pii
    from ragwitness.runs.comparison.material import (
        default_held_out,
        divide,
        own_questions,
        read_questions,
    )
    from ragwitness.text.secrets import contacts_of

    if options.data is None:
        raise InputError("The corpora are needed.", "Give their folder with --data DIR.")
    path = options.data / case.corpus
    if case.make == "wiki-pii":
        planted = wiki_pii(path.read_text(encoding="utf-8"), seed=options.seed)
        records, secrets, decoys = planted.records, planted.secrets, planted.decoys
    else:
        records, decoys = read_documents(str(path)), ()
        secrets = tuple(contacts_of((one.id, one.text) for one in records))
    own = own_questions(str(path)) if case.questions == "own" else None
    told: tuple[Question, ...] = ()
    if case.questions not in (None, "own"):
        told = read_questions(options.data / str(case.questions))
    held = default_held_out(len(records))
    found = divide(
        records, held, options.seed, own=own, questions=told, secrets=secrets, decoys=decoys
    )
    if table.asked < len(found.questions):
        drawn = random.Random(options.seed).sample(found.questions, table.asked)
        found = replace(found, questions=tuple(drawn))
    return found


def _write(table: CompareTable, done: Sequence[Done], folder: Path) -> None:
    from ragwitness.cli.reproduced import leave_table
    from ragwitness.report.compare_html import write_comparison
    from ragwitness.report.compare_tables import table_json, table_markdown

    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for number, one in enumerate(done, 1):
        if one.result is not None:
            pages.append(f"case-{number}.html")
            write_comparison(one.result, folder / pages[-1])
    leave_table(folder, table_markdown(table, done), table_json(table, done), pages=pages)
