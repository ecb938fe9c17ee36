"""``ragwitness lab reproduce`` for tables that compare texts in a corpus's place."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwitness.comparison.result import ORIGIN
from ragwitness.comparison.variants import ZERO_SHOT, NoTextError, check_method
from ragwitness.core.errors import InputError
from ragwitness.leakage.attack_registry import ATTACKS
from ragwitness.synthesis.agents import Roles
from ragwitness.synthesis.generator_registry import METHODS, parse_spec
from research.reproduce.tables import read_table

if TYPE_CHECKING:
    from ragwitness.comparison.result import Comparison
    from ragwitness.comparison.variants import ComparisonPlan, Material, UsefulnessQuestion
    from ragwitness.leakage.attacks.base import Transcript
    from ragwitness.leakage.score.table import LeakMeasure
    from ragwitness.rag.chunk import Passage
    from ragwitness.synthesis.run import SynthesisResult
    from research.reproduce.compare_report import Done

_AT_ONCE = 32  # as many records as a server of our own answers in one batch
_PATIENCE = 1800.0  # seconds that a batch of these may take


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
        roles: Who plays the roles that the model does not play.
        records: Indexed of a corpus at most; None for all.
    """

    data: Path | None
    out: Path
    model: str | None
    judge: str | None
    prompts: int | None
    generator: str
    retrieval: str
    seed: int
    roles: Roles = ()
    records: int | None = None


def reproduce_comparison(table: CompareTable, options: ComparisonOptions) -> None:
    """Run what can be run of a table, and write it beside the published one.

    Raises:
        InputError: The corpora are missing, or nothing of it can be run with what is given.
    """
    from ragwitness.cli.common import console
    from research.reproduce.compare_report import Done

    methods = _methods(table, options)
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


def _methods(table: CompareTable, options: ComparisonOptions) -> list[str]:
    """The variants of a table that can be run: origin first, which the others are compared with."""
    found = [
        method
        for label, method in table.rows.items()
        if options.model or not table.needs_model(label, options.roles)
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
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.steps import spent_so_far, wait
    from ragwitness.comparison.task import CompareTask, CompareWork, Wanted
    from ragwitness.comparison.variants import ComparisonPlan
    from ragwitness.leakage.attack_registry import build_attack
    from ragwitness.leakage.attacks.base import Limits
    from ragwitness.rag.lab import rag_config
    from research.reproduce.compare_report import Done

    attack = None
    if case.attack is not None:
        attack = build_attack(case.attack, Limits(table.prompts, seed=options.seed))
    plan = ComparisonPlan(
        material=_material(case, table, options),
        attacks=[] if attack is None else [attack],
        prompts=table.prompts,
        answer_tokens=256,  # as the published code
        rag=rag_config(k=case.k, retrieval=options.retrieval, generator=options.generator),
        by_original=True,
        seed=options.seed,
    )
    left = [one for one in methods if one != ORIGIN]
    judged = any("judged" in one for one in case.columns.values())
    judge = options.judge if judged else None
    task = CompareTask(
        "",
        domain=case.domain,
        seed=options.seed,
        judge=judge,
        model=options.model,
        concurrency=_AT_ONCE,
        timeout=_PATIENCE,
    )
    # Tables of one paper share their answers: the journals keep them by system and query.
    folder = options.out / table.name.partition("/")[0] / Path(case.corpus).stem
    folder = folder if case.k == 1 else folder / f"k{case.k}"
    made: dict[str, SynthesisResult] = {}
    lacking: dict[str, str] = {}
    while True:
        wanted = Wanted((), tuple(left), (), by_original=True)
        try:
            work = CompareWork(task, wanted, plan, options.roles)
            with (
                task.limited(folder) as (limiter, transport),
                progress_bars(console(), spent_so_far(limiter), "asked") as show,
            ):
                result = wait(work.asked(limiter, transport, folder, show, made), folder)
        except NoTextError as error:
            # A method that the model cannot play costs its own row alone.
            lacking[error.spec] = error.message.rstrip(".")
            left.remove(error.spec)
        else:
            return Done(case, result, made, lacking, _published(plan, result, folder, made))


def _published(
    plan: ComparisonPlan, result: Comparison, folder: Path, made: Mapping[str, SynthesisResult]
) -> dict[str, tuple[list[LeakMeasure], list[LeakMeasure]]]:
    """Return the papers' counts of each variant: of its answers, and of its texts as answers."""
    from ragwitness.core.run_files import TRANSCRIPTS
    from ragwitness.core.types import Document
    from ragwitness.leakage.attacks.base import Transcript, read_transcripts
    from ragwitness.rag.chunk import chunk_documents
    from research.leak_counts import published_counts

    originals = {record.id: record.text for record in plan.material.records}
    counts = {}
    for variant in result.variants:
        texts = [*originals.items()] if variant.name == ORIGIN else []
        if variant.name in made:
            texts = [(text.record, text.text) for text in made[variant.name].made]
        path = folder / variant.name / TRANSCRIPTS
        indexed = [Document(record, text) for record, text in texts if text]
        answers = with_originals(
            read_transcripts(path) if path.is_file() else [],
            chunk_documents(indexed, plan.rag.chunk_words, plan.rag.chunk_overlap),
            originals,
        )
        # Of its texts each meets its own original alone.
        worst = [
            Transcript("texts", "", text, (originals[record],) if record in originals else None)
            for record, text in texts
            if text
        ]
        counts[variant.name] = (published_counts(answers), published_counts(worst))
    return counts


def with_originals(
    transcripts: Sequence[Transcript], passages: Sequence[Passage], originals: Mapping[str, str]
) -> list[Transcript]:
    """Return transcripts with the original records in place of the passages.

    As in SAGE's code, an answer is compared with the originals of the retrieved texts. Passages of
    no record are dropped; if none is of a record, nothing counts as shown.
    """
    records: dict[str, str] = {}
    for passage in passages:  # of passages with one text the first is retrieved first
        if passage.document in originals:
            records.setdefault(passage.text, originals[passage.document])

    def contexts(transcript: Transcript) -> tuple[str, ...] | None:
        if not records or transcript.contexts is None:
            return None
        return tuple(records[text] for text in transcript.contexts if text in records)

    return [replace(transcript, contexts=contexts(transcript)) for transcript in transcripts]


def _material(case: CompareCase, table: CompareTable, options: ComparisonOptions) -> Material:
    """Read and divide a case's corpus, the same for all tables."""
    from ragwitness.cli.common import say_error
    from ragwitness.comparison.variants import (
        default_held_out,
        divide,
        own_questions,
        read_questions,
    )
    from ragwitness.runner.task_runtime import as_documents
    from ragwitness.text.secrets import Secret, contacts
    from research.synthetic.wiki_pii import wiki_pii

    if options.data is None:
        raise InputError("The corpora are needed.", "Give their folder with --data DIR.")
    path = options.data / case.corpus
    if case.make == "wiki-pii":
        planted = wiki_pii(path.read_text(encoding="utf-8"), seed=options.seed)
        records, secrets, decoys = planted.records, planted.secrets, planted.decoys
    else:
        records, decoys = as_documents(str(path), note=say_error), ()
        secrets = tuple(
            Secret(found, "contact", one.id)
            for one in records
            for found in sorted(contacts(one.text))
        )
    own = own_questions(str(path)) if case.questions == "own" else None
    told: tuple[UsefulnessQuestion, ...] = ()
    if case.questions not in (None, "own"):
        told = read_questions(options.data / str(case.questions))
    held = default_held_out(len(records))
    found = divide(
        records, held, options.seed, own=own, questions=told, secrets=secrets, decoys=decoys
    )
    if options.records is not None and options.records < len(found.records):
        # Held out as ever: few records must not mean few questions.
        few = random.Random(options.seed).sample(found.records, options.records)
        kept = {one.id for one in few}
        mine = tuple(one for one in found.secrets if one.record in kept)
        found = replace(found, records=tuple(few), secrets=mine, decoys=found.decoys[: len(mine)])
    if table.asked < len(found.questions):
        drawn = random.Random(options.seed).sample(found.questions, table.asked)
        found = replace(found, questions=tuple(drawn))
    return found


def _write(table: CompareTable, done: Sequence[Done], folder: Path) -> None:
    from ragwitness.report.html import write_html
    from research.reproduce.compare_report import table_json, table_markdown
    from research.reproduce.files import leave_table

    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for number, one in enumerate(done, 1):
        if one.result is not None:
            pages.append(f"case-{number}.html")
            write_html(one.result, folder / pages[-1])
    leave_table(folder, table_markdown(table, done), table_json(table, done), pages=pages)


# Tables of a paper that compare texts in a corpus's place, as TOML; see ``experiments/sage``.

_COLUMNS = ("published", "worst published", "use", "words", "rounds", "queries")


@dataclass(frozen=True, slots=True)
class CompareCase:
    """One corpus under one attack, or with one set of questions.

    Attributes:
        label: Its name.
        corpus: File in the data folder; empty where the case is refused.
        make: ``"wiki-pii"`` plants contact details in a text; empty takes the file as it is.
        domain: What its records are, for methods that ask a model.
        k: Passages for each prompt.
        attack: Registered name; None attacks nothing.
        questions: File in the data folder; ``"own"`` holds records out; None asks nothing.
        columns: What the paper prints, by label: where our figure is found.
        published: By row and column, as printed.
        refused: Why it is not run; empty where it is.
    """

    label: str
    corpus: str = ""
    make: str = ""
    domain: str = "auto"
    k: int = 1
    attack: str | None = None
    questions: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True, slots=True)
class CompareTable:
    """One table.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        prompts: Of an attack.
        asked: Questions at most.
        rows: By the paper's label, the variant: ``origin``, ``zero-shot`` or a method.
        cases: Its corpora.
        note: What a reader must know.
    """

    name: str
    title: str
    prompts: int
    asked: int
    rows: Mapping[str, str]
    cases: tuple[CompareCase, ...]
    note: str = ""

    def needs_model(self, row: str, roles: Roles = ()) -> bool:
        """Whether a row asks a chat model, where single roles are played by others."""
        return self.rows[row] not in (ORIGIN, ZERO_SHOT) and check_method(self.rows[row], roles)


def load_compare_table(name: str, folder: Path) -> CompareTable:
    """Return a table by its name.

    Args:
        name: ``paper/table``, e.g. ``"sage/table3"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, or it is malformed.
    """
    data = read_table(name, folder)
    try:
        own: dict[str, Any] = {k: v for k, v in data.items() if k not in ("kind", "case")}
        cases = tuple(CompareCase(**row) for row in data["case"])
        table = CompareTable(name=name, cases=cases, **own)
        _check_of_tables(table)
        return table
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _check_of_tables(table: CompareTable) -> None:
    """Refuse what would only fail while it runs."""
    for label, method in table.rows.items():
        if parse_spec(method).name not in (ORIGIN, ZERO_SHOT, *METHODS):
            raise ValueError(f"{label} is by no method: {method}")
    for case in table.cases:
        if not case.refused and not (case.corpus and case.columns):
            raise ValueError(f"{case.label} has no corpus or no columns")
        if case.attack is not None and case.attack not in ATTACKS.names():
            raise ValueError(f"{case.label} is by no attack: {case.attack}")
        if bad := [where for where in case.columns.values() if not where.startswith(_COLUMNS)]:
            raise ValueError(f"{case.label} has no figure {bad[0]!r}")
        if lost := sorted(set(case.published) - set(table.rows)):
            raise ValueError(f"{case.label} has figures of no row: {lost[0]}")
