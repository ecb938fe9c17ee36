"""What a run commits to before its first query, and the digests of it.

The texts are leaves of a Merkle tree. A leaf holds a text's part, id and truth, and a commitment to
the text itself under a blinding of its own: each can be opened alone, and every other stay hidden.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.evidence.verifiers import module_of
from ragwitness.runner.hash_chain import AnswerChain, Link, dense

VERSION = "ragwitness/seal/v2"
EARLIER = "ragwitness/seal/v1"
"""Said of its code one digest of everything, pages and style sheets included."""

TEXT = "ragwitness/document/v1"
"""What the commitment to a text is for."""


@dataclass(frozen=True, slots=True)
class SealedText:
    """A text that is committed to.

    Attributes:
        part: Which part it has in the run, such as ``"known_out"``.
        id: Of the document; it is not hidden.
        text: Hidden until it is opened.
        member: The truth, where it is known; not hidden.
    """

    part: str
    id: str
    text: str
    member: bool | None = None


@dataclass(frozen=True, slots=True)
class SealSubject:
    """What a run commits to before its first query.

    Attributes:
        task: Kind of its result: ``"audit"``, ``"leak"`` or ``"canary"``.
        settings: Everything that its result follows from, besides texts and answers, as JSON.
        texts: Everything that may stay hidden.
        units: What is asked about, in its order: stage and document.
        looks: Number of looks that may decide; 0 where it was left open.
        series: What runs of one series share: the system, and what it is asked about.
        home: Folder of the plan that the run belongs to; None where it belongs to none.
    """

    task: str
    settings: Mapping[str, Any]
    texts: tuple[SealedText, ...]
    units: Sequence[tuple[str, str]]
    looks: int
    series: bytes
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class SealedRun:
    """A sealed run with everything that opens it.

    Attributes:
        folder: Of the run.
        seal: Its bytes.
        texts: Everything that was committed to.
        openings: Commitment and blinding of each text.
        links: The chain of answers.
        key: File of the signing key.
        log: Folder of the log of runs; None without one.
        home: Folder of the plan that the run belongs to; None where it belongs to none.
    """

    folder: Path
    seal: bytes
    texts: tuple[SealedText, ...]
    openings: tuple[tuple[bytes, bytes], ...]
    links: tuple[Link, ...]
    key: Path
    log: Path | None
    home: Path | None = None

    @property
    def task(self) -> str:
        """Kind of its result."""
        return str(json.loads(self.seal)["errand"])

    @property
    def head(self) -> str:
        """Last link of its chain, in hex; of the seal alone where nothing was answered."""
        empty = AnswerChain(self.seal, b"").head
        return (self.links[-1].head if self.links else empty).hex()


def leaf_of(text: SealedText, commitment: bytes) -> bytes:
    """Return the leaf of a text in the tree of the seal."""
    return dense([text.part, text.id, text.member, commitment.hex()])


def root_of(leaves: Iterable[bytes]) -> str:
    """Return the root of the tree over all leaves, in hex."""
    tree = MerkleLog()
    tree.extend(leaves)
    return tree.root().hex()


def units_digest(units: Iterable[Sequence[str]]) -> str:
    """Return SHA-256 of what is asked about and in which order, in hex."""
    return hashlib.sha256(dense([list(unit) for unit in units])).hexdigest()


def seal_text(seal: bytes) -> str:
    """Return what is signed of a seal."""
    return f"ragwitness seal\n{hashlib.sha256(seal).hexdigest()}\n"


def changed(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names under which two mappings hold different values, sorted."""
    missing = object()
    names = earlier.keys() | now.keys()
    return sorted(one for one in names if earlier.get(one, missing) != now.get(one, missing))


def result_digest(result: Mapping[str, Any]) -> str:
    """Return SHA-256 of a result as packs show it with hidden texts, in hex."""
    return hashlib.sha256(dense(without_words(result))).hexdigest()


def without_words(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored result, or a row of scores, without the words of documents in it."""
    found = dict(result)
    if "evidence" in found:
        found["evidence"] = []
    if isinstance(rows := found.get("documents"), list):
        found["documents"] = [without_words(row) for row in rows]
    return found


# The log of one's runs: every sealed run, from before its first query to its result.
#
# A run that is thrown away stays in the log, because the log only grows: its checkpoint is signed,
# anybody may keep an old one, and :mod:`ragwitness.attest.checkpoints` lets monitors and witnesses
# watch it like the log of a window. An entry holds digests and no text.


MOST_ENTRY = 4096
_VERSION = "ragwitness/run/v1"


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A run whose first query was about to be sent.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        series: Alike for runs of the same documents at the same system, as their owner says.
        task: What kind of run it is.
    """

    seal: str
    series: str
    task: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run that has a result.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        head: Last link of its answers, in hex.
        answers: Number of links.
        result: SHA-256 of its result without words of documents, in hex.
    """

    seal: str
    head: str
    answers: int
    result: str


@dataclass(frozen=True, slots=True)
class RunAnswered:
    """A run whose answers are arriving: logged at its row 1, and whenever their number doubled.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        head: Last link of its answers so far, in hex.
        answers: Number of links so far.
    """

    seal: str
    head: str
    answers: int


RunEntry = RunBegun | RunAnswered | RunEnded

_KINDS: dict[str, type[RunEntry]] = {
    "begun": RunBegun,
    "answered": RunAnswered,
    "ended": RunEnded,
}


def encode_entry(entry: RunEntry) -> bytes:
    """Return an entry as it is logged."""
    what = next(name for name, kind in _KINDS.items() if isinstance(entry, kind))
    return canonical({"version": _VERSION, "what": what, **asdict(entry)})


def decode_entry(data: bytes) -> RunEntry:
    """Return an entry of a log.

    Raises:
        VerificationError: ``runs.entry``, or as :func:`~ragwitness.crypto.canonical.parse`.
    """
    row: Any = parse(data, MOST_ENTRY, "runs.entry")
    try:
        known, kind = row.pop("version"), _KINDS[row.pop("what")]
        if known != _VERSION:
            raise ValueError(known)
        return kind(**row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerificationError("runs.entry", "The log holds an entry of no run.") from error


# The code that computes the scores of a task, found by what imports what, and its digests.
#
# A score follows from settings, texts and answers. What turns them into scores is every module that
# the task reaches by its imports, and every file of data that such a module names. The pack around
# the scores, the pages that show them, and the system that gave the answers are no part of it.
# Comments, docstrings and blank lines are left out of a digest: they compute nothing.


_AROUND = tuple(
    f"ragwitness.{room}" for room in ("attest", "evidence", "rag.lab", "report", "targets")
)
"""Where the walk ends: the pack around the scores, and the system under audit."""

_SPACE = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
)


def modules_of(package: Path) -> dict[str, Path]:
    """Return every module of a package and its file."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(tree: ast.Module, modules: Collection[str]) -> set[str]:
    """Return the modules that a module imports, wherever in it: in functions and by strings, too.

    Args:
        tree: The module, parsed.
        modules: All names that count.
    """
    # 1. What only a type checker imports is not imported.
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for part in node.body
        for inner in ast.walk(part)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typed:
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import) and id(node) not in typed:
            found |= {alias.name for alias in node.names}
    # 2. What is imported by its name: "module:attribute", and what import_module is called with.
    called = (
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("import_module")
        and node.args
    )
    names = [text for one in called for text in _strings(one, _constants(tree))]
    names += [t.partition(":")[0] for t in _strings(tree, _constants(tree)) if ":" in t]
    for name in names:
        if name.startswith("ragwitness."):
            pattern = re.compile(re.escape(name).replace("\0", r"\w+"))
            found |= set(filter(pattern.fullmatch, modules))
    return found & set(modules)


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
                str(known.get(ast.unparse(part.value), "\0"))
                if isinstance(part, ast.FormattedValue)
                else str(getattr(part, "value", ""))
                for part in node.values
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
    lines, kept = text.split("\n"), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
        elif token.type not in _SPACE and not (
            token.type == tokenize.STRING and set(range(token.start[0], token.end[0] + 1)) <= inside
        ):
            kept |= set(range(token.start[0], token.end[0] + 1))
    return "\n".join(line for number, line in enumerate(lines, 1) if number in kept)


@cache
def code_digests(task: str) -> dict[str, str]:
    """Return SHA-256, in hex, of every module and file of data that the scores follow from.

    Args:
        task: A module of this package.
    """
    root = Path(str(files("ragwitness")))
    modules = modules_of(root)
    found: dict[str, str] = {}
    start = module_of(task)
    reached, waiting = set[str](), [start]
    while waiting:
        own = waiting.pop()
        path, text = modules[own], modules[own].read_text(encoding="utf-8")
        tree = ast.parse(text)
        # 1. The module itself; where the walk starts is the pack around the scores.
        if own != start and not own.startswith(_AROUND):
            found[own] = sha256(code_of(text, tree).encode()).hexdigest()
            # 2. Files that it names, in its folder or in one below it.
            named = set(_strings(tree, {}))
            for file in path.parent.rglob("*.*"):
                if file.name in named and file.suffix != ".py":
                    place = file.relative_to(root).as_posix()
                    found[place] = sha256(file.read_bytes()).hexdigest()
        # 3. What it imports, with the packages around it, which are run as well.
        for name in imports_of(tree, modules):
            while "." in name:
                if name not in reached and not name.startswith(_AROUND):
                    reached.add(name)
                    waiting.append(name)
                name = name.rpartition(".")[0]
    return found


@cache
def wheel_digest() -> str:
    """Return SHA-256 of every file of this package, in hex: it is noted, and decides nothing.

    The pages of the documentation, which a wheel alone holds, do not count.
    """
    root = Path(str(files("ragwitness")))
    found = sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = path.relative_to(root).as_posix()
        if "__pycache__" not in path.parts and not name.startswith("pages/"):
            found.update(tagged_hash("ragwitness/code/v1", name.encode(), path.read_bytes()))
    return found.hexdigest()
