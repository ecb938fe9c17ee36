"""What the house looks like: files, lines, comments, circles, names.

    python benchmarks/house.py [FOLDER]     the counts that docs/design/architecture.md quotes
    python benchmarks/house.py names        local names that do not say what they hold, by room
    python benchmarks/house.py check        exit with 1 if a count is above its ceiling
    python benchmarks/house.py lower        lower the ceilings in tests/unit/house.toml

A room may have 5 % more code than at its last removal. ``lower`` never raises a ceiling: a room
that must grow is raised by hand, in a commit that says what was removed elsewhere.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.english import findings, texts
from benchmarks.imports import imports_of, modules_of

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
    floors = layers()
    level = {room: depth for depth, rooms in enumerate(floors) for room in rooms}

    def place(module: str) -> str:
        return ".".join(module.split(".")[:2])

    return sorted(
        (name, other)
        for name, others in edges_of(wheel).items()
        for other in others
        if name not in REGISTRIES
        and place(name) != place(other)
        and place(name) in level
        and level.get(place(other), len(floors)) <= level[place(name)]
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


RIDDLES = frozenset(
    "found one said told kept heard given own mine theirs known asked lost beside whole seen left"
    " other what why who wanted made place places part parts most held shown here there each both"
    " those".split()
)
"""Names that say nothing about a value. Twelve peers (click, httpx, attrs, ...) have 0 to 1.5 %."""


def riddle_names(wheel: Path = WHEEL) -> dict[str, tuple[int, int]]:
    """Return how many local names are riddles, and of how many, by room.

    A name counts once for each function that assigns it.
    """
    counts: dict[str, tuple[int, int]] = {}
    for path in sources(wheel):
        inside = path.relative_to(wheel).parts
        room = inside[0] if len(inside) > 1 else "files"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {
                    inner.id
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
                }
                riddles, total = counts.get(room, (0, 0))
                counts[room] = (riddles + len(names & RIDDLES), total + len(names))
    return counts


def riddle_share(wheel: Path = WHEEL) -> float:
    """Return the share of local names that are riddles, in percent."""
    riddles, names = map(sum, zip(*riddle_names(wheel).values(), strict=True))
    return 100 * riddles / max(1, names)


SLOTS = frozenset({"__init__.py", "task.py", "run.py", "result.py", "evidence.py"})
"""Files that every question has: the same name says that they are the same thing."""


def repeated_files(paths: list[Path]) -> list[str]:
    """Return the file names that occur more than three times, but for :data:`SLOTS`."""
    names = Counter(path.name for path in paths)
    return sorted(name for name, times in names.items() if times > 3 and name not in SLOTS)


def import_share(paths: list[Path]) -> float:
    """Return the lines of import statements among the lines of code, in percent."""
    lines = sum(
        (node.end_lineno or 0) - node.lineno + 1
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return 100 * lines / code_of(paths)["wheel"][0]


def layers() -> list[list[str]]:
    """Return the rooms of each floor, the highest floor first, as the contract has them."""
    contracts = tomllib.loads((WHEEL.parents[1] / "pyproject.toml").read_text())
    lines = contracts["tool"]["importlinter"]["contracts"][0]["layers"]
    return [line.split(" | ") for line in lines]


BUDGET = WHEEL.parents[1] / "tests" / "unit" / "house.toml"
AIR = 1.05


def ceilings(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return today's counts with their air, each at most the ceiling so far.

    Args:
        old: Ceilings so far; a room without one gets today's count with its air.
    """
    rooms = {
        room: [min(int(count * AIR), most) for count, most in zip(now, limit, strict=True)]
        for room, now in sorted(code_of(sources()).items())
        for limit in [old.get("rooms", {}).get(room, [10**9, 10**9])]
    }
    # The whole wheel has no air: it only shrinks.
    now = code_of(sources())["wheel"]
    rooms["wheel"] = list(map(min, now, old.get("rooms", {}).get("wheel", now)))
    habits = Counter[str]()
    for path in texts([WHEEL]):
        habits.update(finding.name for finding in findings(path))
    share = round(riddle_share() + 0.05, 1)
    return {
        "riddle_percent": min(share, old.get("riddle_percent", 100.0)),
        "twice_read": min(sum(habits.values()), old.get("twice_read", 10**9)),
        "rooms": rooms,
    }


def excesses() -> list[str]:
    """Return what is above its ceiling, and imports and names that may not be, in words."""
    limits = tomllib.loads(BUDGET.read_text())
    words = []
    for room, (code, nodes) in code_of(sources()).items():
        limit = limits["rooms"].get(room)
        if limit is None:
            words.append(f"{room} has no ceiling: benchmarks/house.py lower")
        elif code > limit[0] or nodes > limit[1]:
            words.append(f"{room} has {code} lines and {nodes} nodes; its ceiling is {limit}")
    if (share := riddle_share()) > limits["riddle_percent"]:
        words.append(f"{share:.2f} % of local names are riddles, above {limits['riddle_percent']}")
    if (count := sum(1 for path in texts([WHEEL]) for _ in findings(path))) > limits["twice_read"]:
        words.append(f"{count} sentences are read twice, above {limits['twice_read']}")
    words += [f"these files import each other: {', '.join(group)}" for group in circles()]
    words += [f"{name} imports {other}, which is above or beside it" for name, other in climbs()]
    words += [f"several classes are called {name}" for name in repeated_classes(sources())]
    return words


def write_ceilings() -> None:
    """Lower the ceilings to today's counts."""
    old = tomllib.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    new = ceilings(old)
    rows = [f"{name} = {new[name]}" for name in ("riddle_percent", "twice_read")]
    rows += ["", "[rooms] # lines of code and syntax nodes"]
    rows += [f"{room} = {limit}" for room, limit in new["rooms"].items()]
    BUDGET.write_text(
        "# Ceilings that only fall: benchmarks/house.py lower.\n" + "\n".join(rows) + "\n"
    )


def print_names() -> None:
    """Print the riddle names by room."""
    for room, (riddles, names) in sorted(riddle_names().items(), key=lambda row: -row[1][0]):
        print(f"{room:12} {riddles:5} of {names}")
    print(f"{riddle_share():.2f} % of all local names")


def print_counts(wheel: Path) -> None:
    """Print the counts that docs/design/architecture.md quotes."""
    paths = sources(wheel)
    sizes = [path.read_text().count("\n") for path in paths]
    lines, comments = sum(sizes), own_line_comments(paths)
    code, nodes = code_of(paths, wheel)["wheel"]
    rows: dict[str, object] = {
        "files": len(paths),
        "lines with words": lines,
        "lines of code": code,
        "syntax nodes": nodes,
        "median file, lines": f"{median(sizes):g}",
        "files above 500 lines": sum(size > 500 for size in sizes),
        "own-line comments per 1,000 lines": f"{1000 * comments / lines:.1f}",
        "rooms": len({path.relative_to(wheel).parts[0] for path in paths if path.parent != wheel}),
        "floors": len(layers()),
        "circles of files": len(circles(wheel)),
        "imports that lead up": len(climbs(wheel)),
        "import lines, % of code": f"{import_share(paths):.1f}",
        "riddle names, %": f"{riddle_share(wheel):.2f}",
        "class names that occur twice": len(repeated_classes(paths)),
        "file names above three times": len(repeated_files(paths)),
    }
    for name, value in rows.items():
        print(f"{name:36} {value}")


def main() -> None:
    """Print or check the counts."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "names":
        print_names()
    elif command == "lower":
        write_ceilings()
    elif command == "check":
        words = excesses()
        print("\n".join(words) or "every count is within its ceiling")
        sys.exit(bool(words))
    else:
        print_counts(Path(command).resolve() if command else WHEEL)


if __name__ == "__main__":
    main()
