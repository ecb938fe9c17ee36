"""The kinds of runs that a pack may hold, the code that computes their scores, and its digests.

A score follows from settings, texts and answers. The code that computes it is every module and
data file of the task's room and of the rooms below it. The pack around the scores and the pages
that show them are excluded. So are comments, docstrings and blank lines: they compute nothing.
"""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.core.errors import VerificationError
from ragwitness.core.registry import Listing, Registry
from ragwitness.crypto.hashing import tagged_hash

if TYPE_CHECKING:
    from ragwitness.evidence.case import PackTask

_TASKS = Registry(
    "kind of run",
    {
        "audit": Listing("ragwitness.membership.evidence:TASK"),
        "leak": Listing("ragwitness.leakage.evidence:TASK"),
        "canary": Listing("ragwitness.canary.evidence:TASK"),
        "marks": Listing("ragwitness.membership.marks.evidence:TASK"),
    },
)


def module_of(name: str) -> str:
    """Return the module that recomputes a kind of run."""
    return str(_TASKS[name].home).partition(":")[0]


def task_named(name: str) -> PackTask:
    """Return what a kind of run brings to its packs.

    Raises:
        VerificationError: ``pack.errand``; it is not known here.
    """
    if name not in _TASKS:
        raise VerificationError("pack.errand", f"{name!r} is no kind of run that is known here.")
    task: PackTask = _TASKS.load(name)
    return task


_BELOW = frozenset("core crypto models privacy rag runner stats text".split())
"""Rooms that the scores of every task may follow from, besides the task's own."""

_WORDS = (".md", ".css", ".j2", ".js", ".pyc")
"""Endings of files that compute nothing."""

_SPACE = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
)


def code_of(text: str, tree: ast.Module) -> str:
    """Return a module without comments, docstrings and blank lines, each other line as it is.

    Args:
        text: The module.
        tree: The same, parsed.
    """
    # A docstring is a statement that is a string and nothing else.
    strings = [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    inside = {line for (first, _), (last, _) in strings for line in range(first, last + 1)}
    lines, code_lines = text.split("\n"), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
        elif token.type not in _SPACE and not (
            token.type == tokenize.STRING and set(range(token.start[0], token.end[0] + 1)) <= inside
        ):
            code_lines |= set(range(token.start[0], token.end[0] + 1))
    return "\n".join(line for number, line in enumerate(lines, 1) if number in code_lines)


@cache
def code_digests(task: str) -> dict[str, str]:
    """Return SHA-256, in hex, of every module and file of data that the scores follow from.

    Args:
        task: A module of this package.
    """
    start = module_of(task)
    root, task_room = Path(str(files("ragwitness"))), start.split(".")[1]
    digests: dict[str, str] = {}
    for path in sorted(
        path for room in (task_room, *_BELOW) for path in (root / room).rglob("*.*")
    ):
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            digests[name] = sha256(code_of(text, ast.parse(text)).encode()).hexdigest()
        elif path.suffix not in _WORDS:
            digests[path.relative_to(root).as_posix()] = sha256(path.read_bytes()).hexdigest()
    digests.pop(start, None)  # the pack around the scores
    return digests


@cache
def wheel_digest() -> str:
    """Return SHA-256 of every file of this package, in hex: it is noted, and decides nothing.

    The pages of the documentation, which a wheel alone holds, do not count.
    """
    root = Path(str(files("ragwitness")))
    digest = sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = path.relative_to(root).as_posix()
        if "__pycache__" not in path.parts and not name.startswith("pages/"):
            digest.update(tagged_hash("ragwitness/code/v1", name.encode(), path.read_bytes()))
    return digest.hexdigest()
