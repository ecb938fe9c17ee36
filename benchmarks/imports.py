"""Which modules a module imports: at its top, in functions, and by strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path


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
