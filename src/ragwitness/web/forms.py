"""The tasks that the pages can begin: their verbs, questions and checks.

Nothing of an audit is done here. A question is an option of the verb under a name for people, as
the task declares it. The answers become a file of options, and the verb runs with that file as on a
terminal.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any, Literal, cast, get_args, get_origin

from ragwitness.core.options import AskedAs, Declared, PathRole, declared
from ragwitness.evidence.task import VerifyTask
from ragwitness.leakage.task import LeakTask
from ragwitness.membership.task import AuditTask

KEY_VARIABLE = "RAGWITNESS_TARGET_KEY"
"""Where a key that was typed stands, in the memory of the verb's process alone."""

Form = Literal["text", "documents", "target", "key", "whole", "number", "choice", "tick", "seal"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a form.

    Attributes:
        option: The verb's option that it answers, without dashes.
        label: The question.
        hint: The help that a newcomer needs.
        form: How it is answered.
        needed: Whether it must be answered.
        usual: The answer that is filled in at first.
        choices: Answers to choose from, in words.
        table: Documents that other commands read as documents are read and counted at once; a
            file of examples is left to the verb.
        several: Whether the verb takes a list.
    """

    option: str
    label: str
    hint: str = ""
    form: Form = "text"
    needed: bool = False
    usual: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    table: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """A verb that looks before anything begins.

    Attributes:
        verb: Its words.
        options: Options of the task that it has; empty for all of them.
        flags: Words after the file of options; ``{folder}`` is replaced by the task's folder.
    """

    verb: tuple[str, ...]
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Something that can be begun.

    Attributes:
        name: In addresses.
        title: Its name in words.
        asks: The question that it answers.
        does: Its work, in a sentence or two.
        verb: Words of the verb that runs it.
        start: The word on the button that begins it.
        questions: In groups, each with its heading.
        looks: The checks before it, in this order; without any it runs at once.
        runs: Whether it has a run folder.
        named_by: Question whose answer names the run.
        written: File of options that a look writes for the verb; empty for the answers themselves.
        flags: Words after the file of options of its verb.
        again: Words of the button that asks the same once more, with other answers.
    """

    name: str
    title: str
    asks: str
    does: str
    verb: tuple[str, ...]
    start: str
    questions: Mapping[str, tuple[Question, ...]]
    looks: tuple[Survey, ...]
    runs: bool = True
    named_by: str = "documents"
    written: str = ""
    flags: tuple[str, ...] = ()
    again: str = ""

    @property
    def every(self) -> tuple[Question, ...]:
        """All questions in their order."""
        return tuple(question for group in self.questions.values() for question in group)


def questions_of(
    source: type, headings: Sequence[str], needed: Collection[str] = ()
) -> dict[str, tuple[Question, ...]]:
    """Return the questions that people are asked of a task, by their headings.

    Args:
        source: The task's declaration (:mod:`ragwitness.tasks`).
        headings: In their order.
        needed: Fields that a form needs although a program may leave them out.
    """
    groups: dict[str, list[Question]] = {heading: [] for heading in headings}
    for option in declared(source):
        question, usual = option.mark(AskedAs), option.default
        if question is None or question.under not in groups:
            continue
        # Only a default that a person can read is filled in.
        plain = usual not in (MISSING, None, "") and not isinstance(usual, bool)
        groups[question.under].append(
            Question(
                option.name.replace("_", "-"),
                question.label,
                question.hint,
                form_of(question, option),
                needed=usual is MISSING or option.name in needed,
                usual=str(usual) if plain else "",
                choices={**question.choices, **{name: name for name in names_at(question.names)}},
                table=PathRole.DOCUMENTS in option.marks,
                several=any(get_origin(kind) is list for kind in get_args(option.kind)),
            )
        )
    return {heading: tuple(under) for heading, under in groups.items()}


def names_at(place: str) -> Sequence[str]:
    """Return the names that a registry lists, of ``module:object``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name).names() if module else ()


def form_of(asked: AskedAs, option: Declared) -> Form:
    """Return how a question is answered: as it says itself, else by its type."""
    if asked.form:
        return cast("Form", asked.form)
    if asked.choices:
        return "choice"
    kinds = get_args(option.kind) or (option.kind,)
    by_type: dict[object, Form] = {bool: "tick", int: "whole", float: "number"}
    if PathRole.DOCUMENTS in option.marks:
        return "documents"
    return next((by_type[kind] for kind in kinds if kind in by_type), "text")


_DOCTOR = Survey(("doctor",), ("target", "key-env"), ("--no-pilot", "--json", "{folder}/seen.json"))

_AUDIT = Task(
    name="audit",
    title="An audit of documents",
    asks="Are my documents in that system's database?",
    does="It asks the system about each document and gives a verdict for each, with its error"
    " rate. Nothing is changed in the system.",
    verb=("audit",),
    start="Start the audit",
    questions=questions_of(
        AuditTask, ("Documents", "System", "Method", "Caps", "Evidence"), needed=("documents",)
    ),
    # `init` asks the same questions on a terminal: it checks, prices, and writes the file.
    looks=(
        Survey(
            ("init",),
            (),
            ("--out", "{folder}/run.toml", "--replace", "--json", "{folder}/seen.json"),
        ),
    ),
    written="run.toml",
    again="Ask again with another method",
)

_LEAK = Task(
    name="leak",
    title="A measurement of leakage",
    asks="What of my private records can be got out of that system?",
    does="It attacks the system with prompts and compares the answers with the records. Do this"
    " only to a system that you run, or may attack.",
    verb=("leak",),
    start="Start the attack",
    questions=questions_of(
        LeakTask,
        ("Documents", "System", "Attack", "Caps", "Evidence"),
        needed=("target", "corpus", "prompts"),
    ),
    looks=(_DOCTOR, Survey(("leak",), (), ("--dry-run", "--run", "{run}"))),
    named_by="corpus",
)

_VERIFY = Task(
    name="verify",
    title="A check of a sealed file",
    asks="Does this sealed file hold what it says?",
    does="It recomputes every score and verdict of the file from the recorded answers. Nothing is"
    " sent, and nothing is believed that the file says of itself.",
    verb=("verify",),
    flags=("--json",),
    start="Check the file",
    questions=questions_of(
        VerifyTask,
        ("File", "Your knowledge", "For the bundle of an audit window alone"),
    ),
    looks=(),
    runs=False,
    named_by="bundle",
    again="Check again with a key or a seal",
)

TASKS: Mapping[str, Task] = {task.name: task for task in (_AUDIT, _LEAK, _VERIFY)}
"""Everything that can be begun, by name."""

_LABELS = {question.option: question.label for question in (*_LEAK.every, *_AUDIT.every)}


def by_click(text: str) -> str:
    """Name the field of the form where a hint names the option that it answers."""
    option = rf"--({'|'.join(_LABELS)})\b(?!-)( [A-Z]+\b)?"
    return re.sub(option, lambda named: f"\u201c{_LABELS[named[1]]}\u201d", text)


def typed(question: Question, answer: str) -> Any:
    """Return an answer as the verb's file of options has it; None for none.

    Raises:
        ValueError: It is no number where one is asked for.
    """
    if question.form == "tick":
        return True if answer else None
    if not answer:
        return None
    if question.form == "whole":
        return int(answer)
    return float(answer) if question.form == "number" else answer
