"""What the house looks like: files, lines, comments, circles, names.

    python benchmarks/house.py [FOLDER]
    python benchmarks/house.py budget > tests/unit/house.toml

Counts what docs/design/architecture.md quotes; tests/unit/test_house.py holds the wheel to it. The
second command writes what each room has now as the most that it may have: lower it with each
removal, and raise a room in a commit of its own that says what leaves elsewhere.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path
from statistics import median

from ragwitness.evidence.code import imports_of, modules_of

WHEEL = Path(__file__).resolve().parent.parent / "src" / "ragwitness"

# Endings of participles and adverbs; a file is named after a thing or after the verb that it is.
_FORMS = re.compile(r"(ing|ed|ly)$")
_NOUNS = frozenset(
    "accounting decoding formatting hashing opening parsing prepared reading rewriting sealing seed"
    " spelling spending wording".split()
)
"""Words with such an ending that the field uses as nouns."""


def sources(wheel: Path = WHEEL) -> list[Path]:
    """Return every Python file of the wheel."""
    return sorted(wheel.rglob("*.py"))


def lines_of(paths: list[Path]) -> int:
    """Return the number of lines of all files, as ``wc -l`` counts them."""
    return sum(path.read_text().count("\n") for path in paths)


_FREE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}

_TOLD = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_of(paths: list[Path], wheel: Path = WHEEL) -> dict[str, tuple[int, int]]:
    """Return lines of code and syntax nodes by room, the whole under ``wheel``.

    Comments, docstrings and blank lines do not count, so that neither folding lines nor cutting
    words makes a room smaller.
    """
    counts: dict[str, tuple[int, int]] = {}
    for path in paths:
        text = path.read_text()
        nodes = list(ast.walk(ast.parse(text)))
        words: set[int] = set()
        for node in nodes:
            if isinstance(node, _TOLD) and ast.get_docstring(node, clean=False) is not None:
                words |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        lines = {
            line
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type not in _FREE
            for line in range(token.start[0], token.end[0] + 1)
        }
        inside = path.relative_to(wheel).parts
        for room in ("wheel", inside[0] if len(inside) > 1 else "files"):
            before = counts.get(room, (0, 0))
            counts[room] = (before[0] + len(lines - words), before[1] + len(nodes))
    return counts


def own_line_comments(paths: list[Path]) -> int:
    """Return the number of lines that hold nothing but a comment."""
    found = 0
    for path in paths:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
                found += 1
    return found


def repeated_classes(paths: list[Path]) -> list[str]:
    """Return the names that more than one class has, at the top of a module."""
    names = Counter(
        node.name
        for path in paths
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, times in names.items() if times > 1)


def misnamed_files(paths: list[Path]) -> list[str]:
    """Return the files whose name ends like a participle or an adverb."""
    return sorted(
        str(path.relative_to(WHEEL))
        for path in paths
        if _FORMS.search(last := path.stem.rsplit("_", 1)[-1]) and last not in _NOUNS
    )


LATE = {
    # An address may name a system of ours, which is opened as any other is.
    ("ragwitness.targets.resolve", "ragwitness.rag.lab"),
    ("ragwitness.targets.resolve", "ragwitness.runner.replay"),
}
"""Imports inside functions and by strings that may lead back or up, each for its reason."""

REGISTRIES = {
    # A stored result or an evidence pack names its task; the table names the module.
    "ragwitness.evidence.code",
    "ragwitness.report.result_registry",
}
"""Modules that load modules of higher rooms by name, as they would load a plug-in."""


def edges_of(wheel: Path = WHEEL, *, types: bool = False) -> dict[str, set[str]]:
    """Return what each module imports: at its top, inside functions and by strings.

    Args:
        wheel: Folder of the package.
        types: Count what only a type checker imports as well.
    """
    modules = modules_of(wheel)

    def parsed(path: Path) -> ast.Module:
        text = path.read_text()
        return ast.parse(text.replace("if TYPE_CHECKING:", "if True:") if types else text)

    return {
        name: {
            other
            for other in imports_of(parsed(path), modules)
            if other != name and (name, other) not in LATE
        }
        for name, path in modules.items()
    }


def climbs(wheel: Path = WHEEL) -> list[tuple[str, str]]:
    """Return the imports, inside functions and by strings too, that lead up or sideways."""
    contracts = tomllib.loads((WHEEL.parents[1] / "pyproject.toml").read_text())
    layers = contracts["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {room: depth for depth, line in enumerate(layers) for room in line.split(" | ")}

    def place(module: str) -> str:
        return ".".join(module.split(".")[:2])

    return sorted(
        (name, other)
        for name, others in edges_of(wheel).items()
        for other in others
        if name not in REGISTRIES
        and place(name) != place(other)
        and place(name) in level
        and level.get(place(other), len(layers)) <= level[place(name)]
    )


def circles(wheel: Path = WHEEL) -> list[list[str]]:
    """Return the groups of files that import each other in a loop (Tarjan 1972).

    Imports inside functions, by strings and for type checkers alone count like any other.
    """
    edges = edges_of(wheel, types=True)
    place: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        place[name] = lowest[name] = len(place)
        stack.append(name)
        for other in edges[name]:
            if other not in place:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], place[other])
        if lowest[name] == place[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in edges:
        if name not in place:
            visit(name)
    return found


def main() -> None:
    """Print the figures, or the budget of each room."""
    if sys.argv[1:] == ["budget"]:
        print("# Lines of code and syntax nodes that a room may have: benchmarks/house.py.")
        for room, (code, nodes) in sorted(code_of(sources()).items()):
            print(f"{room} = [{code}, {nodes}]")
        return
    wheel = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else WHEEL
    paths = sources(wheel)
    sizes = [path.read_text().count("\n") for path in paths]
    lines = sum(sizes)
    comments = own_line_comments(paths)
    proofs = [path for path in paths if "crypto/proofs" in str(path)]
    per_proof = 1000 * own_line_comments(proofs) / max(1, lines_of(proofs))
    print(f"files                                {len(paths)}")
    print(f"lines                                {lines}")
    print(f"median file, lines                   {median(sizes):g}")
    print(f"files above 500 lines                {sum(size > 500 for size in sizes)}")
    print(f"own-line comments                    {comments}")
    print(f"  per 1,000 lines                    {1000 * comments / lines:.1f}")
    print(f"  per 1,000 lines of crypto/proofs   {per_proof:.1f}")
    print(f"circles of files                     {len(circles(wheel))}")
    print(f"imports that lead up                 {len(climbs(wheel))}")
    print(f"class names that occur twice         {len(repeated_classes(paths))}")


if __name__ == "__main__":
    main()
