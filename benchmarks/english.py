"""Sentences that a stranger has to read twice: docstrings, comments, messages and pages.

    python benchmarks/english.py [PATH ...]      counts by room and pattern
    python benchmarks/english.py show [PATH ...] every finding with its place

Each pattern is a habit that reviewers named; the example and the better form stand beside it. The
test in tests/unit/test_house.py holds the counts to a ceiling that only falls.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 30


@dataclass(frozen=True)
class Pattern:
    """A habit.

    Attributes:
        name: What it is called in the counts.
        form: What it looks like in a sentence.
        example: A sentence that has it, and how it should read.
    """

    name: str
    form: re.Pattern[str]
    example: tuple[str, str]


def _pattern(name: str, form: str, wrong: str, right: str) -> Pattern:
    return Pattern(name, re.compile(form), (wrong, right))


PATTERNS = (
    _pattern(
        "clause as subject",
        r"^(?:What|Who|Whoever|Whatever|Where what|Whom)\b(?!.*\?)(?! is (?:this|it)\b)",
        "What finds by chance needs --knowingly.",
        "Settings with chance-level recall need --knowingly.",
    ),
    _pattern(
        "of before",
        r"\b(?:of|from) before\b",
        "Plans of before call nothing known.",
        "Older plans report nothing as known.",
    ),
    _pattern("as ever", r"\bas ever\b", "They are read as ever.", "They are read as before."),
    _pattern(
        "told",
        r"\b(?:is|are|was|were|be) (?:never |not |also |only )?told\b|\btells? of\b|\bhears? of\b",
        "Its name alone is told.",
        "Only its name is reported.",
    ),
    _pattern(
        "who without antecedent",
        r"(?:^|[,;:] |\b(?:by|of|to|for|with|than|from) )who(?:m|ever)?\b(?!.*\?)(?= \w+s\b)",
        "It is signed by who runs it.",
        "The operator signs it.",
    ),
    _pattern(
        "what without antecedent",
        r"\b(?:of|by|from|with|than|as|like|but|beside) what (?:is|was|are|were|has|had|it|they|a|the)\b",  # noqa: E501
        "The score is made of what was read.",
        "The score is computed from the answers.",
    ),
    _pattern(
        "left for removed",
        r"\b(?:options?|verbs?|methods?|files?|support) left\b|\bleft the (?:tree|wheel|house)\b",
        "The options left.",
        "The options were removed.",
    ),
    _pattern(
        "stands for is",
        r"\bstands? (?:there|here|beside|in|on|at|behind|before|above|below)\b",
        "The list stands in pyproject.toml.",
        "The list is in pyproject.toml.",
    ),
    _pattern(
        "so many",
        r"\b[Ss]o (?:many|much|few) (?!that\b|as\b)",
        "Draw so many of them.",
        "Draw that number of them.",
    ),
    _pattern(
        "of ours",
        r"\bof (?:ours|theirs|its own|his own|one's own)\b(?! \w)",
        "A system of ours.",
        "A system that the auditor runs.",
    ),
    _pattern(
        "nobody",
        r"\b(?:nobody|Nobody)(?:'s)? (?:need|has|had|can|could|knows|made|here|sees|saw|asked|else)\b",  # noqa: E501
        "A copy lies where nobody need look for it.",
        "The copy is in a private folder.",
    ),
)

_SKIP = re.compile(r"^\s*(?:>>>|\$|ragwitness |\||```|#!|noqa|type:|[-*=~_]{3,})")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$", re.M | re.S)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"'(\[{])")
_MARKUP = re.compile(r"``[^`]*``|`[^`]*`|:\w+:`[^`]*`|\[([^\]]*)\]\([^)]*\)|https?://\S+|\{[^}]*\}")


@dataclass(frozen=True)
class Finding:
    """A sentence with a habit: where it is, which habit, the sentence."""

    path: Path
    line: int
    name: str
    sentence: str


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file that people read, each with its first line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        plain = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
        line = 1
        for block in plain.split("\n\n"):
            # A list's items are passages of their own; a heading is no sentence.
            items = re.split(r"^\s*(?:[-*>]|\d+\.)\s+", block, flags=re.M)
            for item in items:
                rows = [row for row in item.split("\n") if not _SKIP.match(row)]
                yield line, "\n".join(row for row in rows if not row.startswith("#"))
                line += item.count("\n")
            line += 2
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, paragraph in _paragraphs(node.value):
                yield node.lineno + offset, paragraph
    comment, begin = list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if not comment:
                begin = token.start[0]
            comment.append(token.string.lstrip("# "))
        elif token.type not in (tokenize.NL, tokenize.NEWLINE) and comment:
            yield begin, "\n".join(comment)
            comment = []


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Split a docstring at blank lines and at the entries of Args, Returns and Raises."""
    rows, offset = [], 0
    for number, row in enumerate(text.split("\n")):
        entry = re.match(r"^\s+\*{0,2}[\w.]+: ", row)
        if rows and (entry or not row.strip() or re.match(r"^\s*(?:[-*]|\d+\.) ", row)):
            yield offset, "\n".join(rows)
            rows = []
        if row.strip():
            if not rows:
                offset = number
            rows.append(row[entry.end() :] if entry else row)
    if rows:
        yield offset, "\n".join(rows)


def sentences(passage: str) -> Iterator[str]:
    """Yield the sentences of a passage, code and addresses replaced by one word."""
    plain = _MARKUP.sub(lambda found: found[1] or "CODE", passage).replace("*", "")
    for sentence in _SENTENCE.split(re.sub(r"\s+", " ", plain)):
        if not _SKIP.match(sentence) and len(sentence.split()) > 2:
            yield sentence.strip()


def findings(path: Path) -> Iterator[Finding]:
    """Yield the sentences of a file that have a habit, or are too long."""
    for line, passage in passages(path):
        for sentence in sentences(passage):
            for pattern in PATTERNS:
                if pattern.form.search(sentence):
                    yield Finding(path, line, pattern.name, sentence)
            if len(re.findall(r"[A-Za-z][\w'-]*", sentence)) > MOST_WORDS:
                yield Finding(path, line, f"above {MOST_WORDS} words", sentence)


def texts(places: list[Path]) -> list[Path]:
    """Return the files below some places that are written for people."""
    files = []
    for place in places:
        inside = [place] if place.is_file() else sorted(place.rglob("*"))
        files += [path for path in inside if path.suffix in (".py", ".md") and path.is_file()]
    return files


def main() -> None:
    """Print counts, or findings with ``show``."""
    words = sys.argv[1:]
    show = words[:1] == ["show"]
    given = [Path(word) for word in words[show:]]
    places = given or [ROOT / "src", ROOT / "docs", *sorted(ROOT.glob("*.md"))]
    by_pattern, by_room = Counter[str](), Counter[str]()
    for path in texts(places):
        for finding in findings(path):
            by_pattern[finding.name] += 1
            inside = path.resolve().relative_to(ROOT).parts
            by_room["/".join(inside[: 3 if inside[0] == "src" else 1])] += 1
            if show:
                print(f"{path}:{finding.line}: {finding.name}: {finding.sentence[:400]}")
    for counts in (by_pattern, by_room):
        for name, count in counts.most_common():
            print(f"{count:6} {name}")
    print(f"{sum(by_pattern.values()):6} in all")


if __name__ == "__main__":
    main()
