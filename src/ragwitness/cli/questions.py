"""``ragwitness audit --questions-to``: the questions of an audit, for a batch job to answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.cli.common import print_lines

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.membership.prepared import Order


def write_down(order: Order, path: Path, answered: Path | None, screen: Console) -> None:
    """Write the questions of an order into a file and say how to go on.

    Raises:
        InputError: There is none, or the answers are those of another audit.
    """
    from ragwitness.cli.steps import wait
    from ragwitness.membership.questions import write_questions

    questions, documents, without = wait(write_questions(path, order, answered))
    print_lines(
        screen,
        f"wrote {path}: {questions:,} questions about {documents:,} documents; {without:,} others"
        " have none; nothing was sent",
        "answer it:    any program for OpenAI batch files; docs/scale.md names one",
        "then:         the same command with replay/ANSWERS.jsonl in place of the target",
        "some missing: the same command with --questions-to MORE --answered ANSWERS",
    )
