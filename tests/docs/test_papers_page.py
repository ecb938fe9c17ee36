"""PAPERS.md: what a row calls realised is reached by a command of the product or of the lab."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "PAPERS.md").read_text(encoding="utf-8")
SOURCES = (ROOT / "src", ROOT)
STARTS = (
    "ragwitness", "ragwitness.__main__", "ragwitness.cli.main", "ragwitness.testing.pytest_plugin",
    "research.canary.paper", "research.canary.rows",
)  # fmt: skip
_LAZY = re.compile(r"(?:ragwitness|research)(?:\.\w+)+")
_HOME = re.compile(r"\.?([a-z_][\w.]*):\w+")
_FILE = re.compile(r"`((?:\w+/)+\w+\.py|(?:\w+/)+)`(?: \(([^)]*)\)| (?=`\w+`)((?:`\w+`(?:, )?)+))?")
_SCRIPT = re.compile(r"`((?:benchmarks|experiments)/[\w/]+)\.py`")
_OTHER = re.compile(
    "(?:unit|cli|services|golden|tests|benchmarks|experiments|docs)/|crypto/schemas/"
)


def module_file(name: str) -> Path | None:
    """Return the file of a module, or None where it is not ours."""
    for root in SOURCES:
        base = root.joinpath(*name.split("."))
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if path.is_file():
                return path
    return None


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported(name: str, path: Path) -> set[str]:
    """Return the modules that a module imports or names in a string, at any depth."""
    found: set[str] = set()
    strings: set[str] = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            found |= {base, *(f"{base}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
    # Names of registries: whole, behind a name of a package in the same file, or in this package.
    whole = {text for text in strings if _LAZY.fullmatch(text)}
    found |= whole
    bases = {package, *whole}
    for home in (match[1] for text in strings if (match := _HOME.fullmatch(text))):
        found |= {home, *(f"{base}.{home}" for base in bases)}
    return found


def verbs() -> list[str]:
    """Return the modules of the command line's table."""
    tables = (ROOT / "src/ragwitness/cli").glob("*.toml")
    homes = (re.findall(r'home = "([\w.]+):', one.read_text(encoding="utf-8")) for one in tables)
    return [f"ragwitness.cli.{home}" for some in homes for home in some]


def reached(*starts: str) -> dict[str, Path]:
    """Return every module that some modules can load, with its file."""
    found: dict[str, Path] = {}
    ahead = list(starts)
    while ahead:
        name = ahead.pop()
        path = module_file(name)
        if path is None or name in found:
            continue
        found[name] = path
        ahead += [*imported(name, path), name.rpartition(".")[0]]
    return found


@cache
def used_names(path: Path) -> frozenset[str]:
    """Return the names that a module reads, calls or imports; definitions are none."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(re.findall(r"(?<=:)\w+$", node.value))
    return frozenset(found)


def claims() -> list[tuple[str, str, tuple[str, ...]]]:
    """Return each row with a file that its second column names, and functions of that file."""
    found = []
    for line in PAGE.splitlines():
        cells = line.split(" | ")
        if not line.startswith("| ") or len(cells) < 4:
            continue
        for match in _FILE.finditer(cells[1]):
            path, functions = match[1], f"{match[2] or ''} {match[3] or ''}"
            if not _OTHER.match(path):
                found.append((line, path, tuple(re.findall(r"`([a-z_]\w*)`", functions))))
    return found


@cache
def commands() -> dict[str, Path]:
    """Return what the commands load, with its file."""
    return reached(*STARTS, *verbs())


@cache
def used() -> frozenset[str]:
    """Return the names that these modules use."""
    return frozenset[str]().union(*map(used_names, commands().values()))


def places(path: str) -> list[Path]:
    """Return the files that a path of PAPERS.md stands for; a folder stands for all of its own."""
    whole = next(
        (one for one in (ROOT / "src/ragwitness" / path, ROOT / path) if one.exists()), None
    )
    assert whole is not None, path
    return sorted(whole.glob("*.py")) if whole.is_dir() else [whole]


@pytest.mark.parametrize("claim", claims(), ids=lambda one: f"{one[0][:40]} {one[1]}")
def test_a_command_reaches_what_a_row_names(claim: tuple[str, str, tuple[str, ...]]) -> None:
    """A script of the repository does, too, where the row names it."""
    row, path, functions = claim
    scripts = [one.replace("/", ".") for one in _SCRIPT.findall(row)]
    known = commands() | (reached(*scripts) if scripts else {})
    assert any(one in known.values() for one in places(path)), f"{path}: a test alone loads it"
    names = used().union(*map(used_names, known.values())) if scripts and functions else used()
    for name in functions:
        assert name in names, f"{path}: nothing but tests calls {name}"


def test_what_only_tests_load_is_noticed() -> None:
    """A module that no command loads, and a function that none calls, do not pass."""
    assert len(commands()) > 250
    assert ROOT / "research/hash_search.py" not in commands().values()  # a test has it
    assert "construction_mu" not in used()
    assert len(claims()) > 100
