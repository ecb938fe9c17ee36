"""Texts are parted into words and letters in one way, by ``ragwitness.text.words``.

``\\w`` and ``\\b`` of the standard library's ``re``, and ``str.isalnum``, take vowel signs of Indic
and other scripts for signs between words; ``len(text.split())`` takes a Chinese text for one word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ragwitness

PACKAGE = Path(ragwitness.__file__).parent
ROOMS = ("text", "membership", "leakage", "synthesis", "comparison", "rag", "web")
"""Rooms that read documents and answers."""

ALLOWED = {
    # Wording of machines and of English tables, not texts in any language.
    ("re", "text/formats.py"): "names of elements, entities and encodings",
    ("re", "text/words.py"): "Unicode's English names of Latin letters",
    ("re", "membership/task.py"): "a variable of the environment",
    ("re", "membership/marks/task.py"): "the name of a file",
    ("re", "membership/response_parsing/replies.py"): "an HTML tag",
    ("re", "leakage/run.py"): "error messages of services",
    ("re", "comparison/usefulness.py"): "English articles and words, as the published scores do",
    ("re", "web/jobs.py"): "names of folders",
    ("re", "web/uploads.py"): "addresses of targets",
    ("isal", "text/words.py"): "here letters are defined",
    ("isal", "synthesis/private/ledger.py"): "hashes that ledgers store",
}


def _faults(path: Path) -> Iterator[str]:
    """Yield the kind of each use that depends on spaces or knows no marks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    standard = any(
        name.name == "re" and name.asname is None
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("isalnum", "isalpha"):
            yield "isal"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        source = ast.unparse(node)
        if standard and called.startswith("re.") and not re.search(r"re\.A(SCII)?\b", source):
            texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
            if any(isinstance(text, str) and re.search(r"\\[wWbB]", text) for text in texts):
                yield "re"
        if re.fullmatch(r"len\([\w.]*\btext\.split\(\)\)", source):
            yield "split"


FILES = [
    str(p.relative_to(PACKAGE)) for room in ROOMS for p in sorted((PACKAGE / room).rglob("*.py"))
]


@pytest.mark.parametrize("file", FILES)
def test_words_and_letters_are_those_of_the_one_definition(file: str) -> None:
    faults = {kind for kind in _faults(PACKAGE / file) if (kind, file) not in ALLOWED}
    assert not faults


def test_every_exception_is_needed() -> None:
    needed = {(kind, file) for file in FILES for kind in _faults(PACKAGE / file)}
    assert set(ALLOWED) <= needed
