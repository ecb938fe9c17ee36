"""The first steps of ``ragwitness compare``: what is compared, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.defenses.synthetic.config import MakingConfig
    from ragwitness.extraction.attacks import Attack, Limits
    from ragwitness.runs import Budget
    from ragwitness.runs.comparison import Material
    from ragwitness.runs.order import Reach

__all__ = ["Making", "Wanted", "chosen", "material_of", "preview"]

_MODELLESS = ("redact", "keywords")  # made where nothing else is named


@dataclass(frozen=True, slots=True)
class Wanted:
    """The variants beside ``origin``, as they were named.

    Attributes:
        files: Name and path of each.
        methods: Made on the spot; ``zero-shot`` too.
        defenses: Before the records as they are.
        by_original: Whether texts are found by their originals.
    """

    files: tuple[tuple[str, Path], ...]
    methods: tuple[str, ...]
    defenses: tuple[str, ...]
    by_original: bool

    @property
    def names(self) -> list[str]:
        """Of all variants, ``origin`` first."""
        return ["origin", *(name for name, _ in self.files), *self.methods, *self.defenses]


@dataclass(frozen=True, slots=True)
class Making:
    """How texts are made on the spot.

    Attributes:
        model: Address of the chat model; None for none.
        domain: What the records are.
        rounds: Most versions of a record.
        pii: Who finds contact details.
        seed: Of the model.
        concurrency: Queries under way at most.
        reach: How models are reached.
    """

    model: str | None
    domain: str
    rounds: int
    pii: str
    seed: int
    concurrency: int
    reach: Reach

    def config(self) -> MakingConfig:
        """Return the configuration of methods that ask a model.

        Raises:
            InputError: There is no such domain.
        """
        from ragwitness.defenses.synthetic.asking import Asking
        from ragwitness.defenses.synthetic.config import MakingConfig
        from ragwitness.defenses.synthetic.domains import load_domain

        asking = Asking(seed=self.seed)
        return MakingConfig(domain=load_domain(self.domain), asking=asking, rounds=self.rounds)


def chosen(
    files: Sequence[str],
    methods: Sequence[str],
    defenses: Sequence[str],
    model: str | None,
    retrieve_by: str,
) -> Wanted:
    """Return the variants, each name once.

    Raises:
        InputError: A name or method is unknown or taken, or a model is needed and missing.
    """
    from ragwitness.defenses import load_defense
    from ragwitness.runs.comparison.plan import ZERO_SHOT, check_name
    from ragwitness.runs.comparison.variants import check_method

    if retrieve_by not in ("own", "original"):
        raise InputError(f"--retrieve-by is own or original, not {retrieve_by!r}.")
    named = []
    for one in files:
        name, equals, path = one.partition("=")
        if not equals or not path:
            raise InputError(f"--with {one!r} names no file.", "Write --with NAME=FILE.")
        named.append((check_name(name), Path(path)))
    if not (files or methods or defenses):
        methods = _MODELLESS
    for spec in methods:
        if spec == ZERO_SHOT:
            continue
        if check_method(spec) and model is None:
            raise InputError(
                f"{spec} asks a chat model, and there is none.",
                f"Name one with --model, or give its texts: --with {spec}=safe.jsonl",
            )
    for spec in defenses:
        load_defense(spec)
    wanted = Wanted(tuple(named), tuple(methods), tuple(defenses), retrieve_by == "original")
    if twice := [name for name in wanted.names if wanted.names.count(name) > 1]:
        raise InputError(f"Two variants are called {twice[0]}.", "Rename one: --with NAME=FILE.")
    return wanted


def material_of(
    corpus: str,
    text_field: str | None,
    held_out: int | None,
    seed: int,
    questions: Path | None,
    background: str | None,
    ledgers: tuple[Path | None, Path | None],
    *,
    contacts: bool,
    utility: bool,
) -> Material:
    """Read the corpus and divide it.

    Raises:
        InputError: Something cannot be read, or there is no question where there must be some.
    """
    from ragwitness.cli.common import read_documents
    from ragwitness.cli.leaking import plan_of
    from ragwitness.runs.comparison.material import (
        default_held_out,
        divide,
        own_questions,
        read_questions,
    )

    if not utility and questions is not None:
        raise InputError("--no-utility asks no questions.", "Leave --questions out.")
    told = () if questions is None else read_questions(questions)
    records = read_documents(corpus, text_field)
    # Only ledgers are read by it: leaks of duplicates are told apart when they are scored.
    known = plan_of(records, (), ledgers, contacts=contacts, seed=seed)
    own = own_questions(corpus) if utility and questions is None else None
    if own is not None and not own:
        raise InputError(
            f"There are no questions: {corpus} has no JSON lines with fields question and answer.",
            "Give --questions FILE, or --no-utility to measure privacy alone.",
        )
    if held_out is None:
        spare = questions is not None and background is not None
        held_out = 0 if spare else default_held_out(len(own or records))
    if own is not None and not held_out:
        raise InputError(
            "Without records held out there are no questions.",
            "Give --held-out, --questions FILE or --no-utility.",
        )
    return divide(
        records,
        held_out,
        seed,
        own=own,
        questions=told,
        background=read_documents(background, text_field) if background else (),
        secrets=known.secrets,
        decoys=known.decoys,
    )


def preview(
    wanted: Wanted,
    material: Material,
    attacks: Sequence[Attack],
    limits: Limits,
    judge: str | None,
    making: Making,
    folder: Path,
    budget: Budget,
) -> None:
    """Say what would be asked at most, and what the run folder keeps; send nothing."""
    from ragwitness.cli.caps import kept_lines
    from ragwitness.cli.common import console
    from ragwitness.defenses.synthetic.registry import build_method

    systems, asked = len(wanted.names), len(material.questions)
    lines = [
        f"{systems} variants of {len(material.records):,} records: {', '.join(wanted.names)}",
        f"each: at most {limits.prompts:,} prompts of {len(attacks)} attacks and {asked:,}"
        f" questions, answers of at most {limits.max_tokens:,} tokens, in this process",
    ]
    if judge:
        lines.append(f"{judge}: at most {4 * systems * asked:,} queries to judge answers")
    for spec in wanted.methods:
        if spec == "zero-shot":
            continue
        method = build_method(spec.partition(":")[0], making.config(), evaluation=True)
        if method.asks:
            most = method.most(len(material.records))
            lines.append(f"{making.model}: at most {most:,} queries to make {spec}")
    screen = console()
    for line in (*lines, *kept_lines(folder, budget), "Nothing was sent."):
        screen.print(line, markup=False, soft_wrap=True)
