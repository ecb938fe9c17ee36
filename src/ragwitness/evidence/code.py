"""The kinds of runs that a pack may hold, the code that computes their scores, and its digests.

A score follows from settings, texts and answers. The code that computes it is every module that the
task reaches by its imports, and every data file that such a module names. The pack around the
scores, the pages that show them, and the audited system are excluded. So are comments, docstrings
and blank lines: they compute nothing.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Mapping
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


_AROUND = tuple(
    f"ragwitness.{room}" for room in ("attest", "evidence", "rag.lab", "report", "targets")
)
"""Where the walk ends: the pack around the scores, and the system under audit."""

_SPACE = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
)


def modules_of(package: Path) -> dict[str, Path]:
    """Return every module of a package and its file."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package.parent).with_suffix("").parts
        modules[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return modules


def imports_of(tree: ast.Module, modules: Collection[str]) -> set[str]:
    """Return the modules that a module imports, wherever in it: in functions and by strings, too.

    Args:
        tree: The module, parsed.
        modules: All names that count.
    """
    # 1. Imports for type checkers alone do not count.
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typed:
            imported |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import) and id(node) not in typed:
            imported |= {alias.name for alias in node.names}
    # 2. Imports by name: "module:attribute", and what import_module is called with.
    called = (
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("import_module")
        and node.args
    )
    names = [text for argument in called for text in _strings(argument, _constants(tree))]
    names += [t.partition(":")[0] for t in _strings(tree, _constants(tree)) if ":" in t]
    for name in names:
        if name.startswith("ragwitness."):
            pattern = re.compile(re.escape(name).replace("\0", r"\w+"))
            imported |= set(filter(pattern.fullmatch, modules))
    return imported & set(modules)


def _constants(tree: ast.Module) -> dict[str, object]:
    """Return what names at the top of a module stand for."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _strings(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """Yield every string; what is put into one is NUL where it is not a known constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(known.get(ast.unparse(piece.value), "\0"))
                if isinstance(piece, ast.FormattedValue)
                else str(getattr(piece, "value", ""))
                for piece in node.values
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
    root = Path(str(files("ragwitness")))
    modules = modules_of(root)
    digests: dict[str, str] = {}
    start = module_of(task)
    reached, waiting = set[str](), [start]
    while waiting:
        module = waiting.pop()
        path, text = modules[module], modules[module].read_text(encoding="utf-8")
        tree = ast.parse(text)
        # 1. The module itself; where the walk starts is the pack around the scores.
        if module != start and not module.startswith(_AROUND):
            digests[module] = sha256(code_of(text, tree).encode()).hexdigest()
            # 2. Files that it names, in its folder or in one below it.
            named = set(_strings(tree, {}))
            for file in path.parent.rglob("*.*"):
                if file.name in named and file.suffix != ".py":
                    relative = file.relative_to(root).as_posix()
                    digests[relative] = sha256(file.read_bytes()).hexdigest()
        # 3. Its imports, with the packages around them, which are run as well.
        for name in imports_of(tree, modules):
            while "." in name:
                if name not in reached and not name.startswith(_AROUND):
                    reached.add(name)
                    waiting.append(name)
                name = name.rpartition(".")[0]
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
