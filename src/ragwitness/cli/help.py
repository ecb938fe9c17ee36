"""The parts of a verb's help: an example, its options, and verbs to read next.

Options of a verb that has many stand under the question that they answer. The question follows
from the option's name, which has one meaning in all verbs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_MANY = 10
"""Options of a verb from which on they are put under questions."""

_OTHERS = "How is it done?"

QUESTIONS: Mapping[str, frozenset[str]] = {
    question: frozenset(names.split())
    for question, names in tomllib.loads(
        Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
    ).items()
}
"""Options by the question that they answer, in the order of a help text."""

# The options of a verb whose names mean something else there.
_APART = {("synthesize:synthesize", name) for name in ("generator", "k")}


@contextmanager
def section(formatter: Any, heading: str) -> Iterator[None]:
    """Write what follows under a heading: with a colon, unless it is a question."""
    formatter.write_paragraph()
    formatter.write(f"{heading}\n" if heading.endswith("?") else f"{heading}:\n")
    with formatter.indentation():
        yield


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a verb's example, arguments and options, and the verbs to read about next."""
    if command.example:
        with section(formatter, "Example"):
            # Written as it is typed: a line that was wrapped would not be one command.
            for line in command.example.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
    sections = by_question(command, ctx)
    # One width for all headings, so that the eye runs down one column.
    options = [name for heading, rows in sections if heading != "Arguments" for name, _ in rows]
    for heading, rows in sections:
        width = 0 if heading == "Arguments" else max(map(len, options))
        with section(formatter, heading):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows])
    if command.see:
        with section(formatter, "See also"):
            formatter.write_text(", ".join(f"ragwitness {words}" for words in command.see))


def by_question(command: Any, ctx: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what a verb takes, name and text, under headings; few options are one list."""
    records = [(param, param.get_help_record(ctx)) for param in command.get_params(ctx)]
    visible = [(param, record) for param, record in records if record is not None]
    options = [(param, record) for param, record in visible if param.param_type_name == "option"]
    rows: dict[str, list[tuple[str, str]]] = {
        "Arguments": [record for param, record in visible if param.param_type_name == "argument"]
    }
    if len(options) <= _MANY:
        rows["Options"] = [record for _, record in options]
    else:
        rows |= {question: [] for question in QUESTIONS}
        for param, record in options:
            rows[question_of(command.home, param)].append(record)
    return [(heading, under) for heading, under in rows.items() if under]


def question_of(home: str, param: Any) -> str:
    """Return the question that an option of a verb answers."""
    name = next(
        (spelling for spelling in param.opts if spelling.startswith("--")), param.opts[0]
    ).lstrip("-")
    if (home, name) in _APART:
        return _OTHERS
    return next((question for question, names in QUESTIONS.items() if name in names), _OTHERS)
