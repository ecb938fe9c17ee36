"""What the house looks like: files, lines, comments, circles, names.

    python benchmarks/house.py [FOLDER]

Counts what docs/design/architecture.md quotes; tests/unit/test_house.py holds the wheel to it.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median

WHEEL = Path(__file__).resolve().parent.parent / "src" / "ragwitness"

# Endings of participles and adverbs; a file is named after a thing or after the verb that it is.
_FORMS = re.compile(r"(ing|ed|ly)$")
_NOUNS = frozenset(
    "accounting decoding hashing opening reading rewriting seed spelling spending wording".split()
)
"""Words with such an ending that the field uses as nouns."""


def sources(wheel: Path = WHEEL) -> list[Path]:
    """Return every Python file of the wheel."""
    return sorted(wheel.rglob("*.py"))


def lines_of(paths: list[Path]) -> int:
    """Return the number of lines of all files, as ``wc -l`` counts them."""
    return sum(path.read_text().count("\n") for path in paths)


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


def imports_of(path: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules that a file imports when it is imported, its own packages left out."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            found |= {name for name in (whole, node.module) if name in modules}
    return found


def circles(wheel: Path = WHEEL) -> list[list[str]]:
    """Return the groups of files that import each other in a loop (Tarjan 1972)."""
    paths = sources(wheel)
    modules = {}
    for path in paths:
        parts = path.relative_to(wheel.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    edges = {name: imports_of(path, modules) - {name} for name, path in modules.items()}
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

    for name in modules:
        if name not in place:
            visit(name)
    return found


def main() -> None:
    """Print the figures."""
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
    print(f"class names that occur twice         {len(repeated_classes(paths))}")


if __name__ == "__main__":
    main()
