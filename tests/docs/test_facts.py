"""A number, a list or a default that a page states is the code's.

A fact is a pattern with one group. Every place in the pages that it matches must say the code's
value, and it must match somewhere, so that a page that is worded anew is noticed.
"""

from __future__ import annotations

import ast
import math
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ragwitness.core.errors import ExitCode
from ragwitness.core.types import ANSWER_SECONDS
from ragwitness.leakage.attack_registry import ATTACKS
from ragwitness.membership import auto_select, windows
from ragwitness.membership.joint import JointConfig
from ragwitness.membership.method_registry import AUDITS
from ragwitness.membership.results.odds import FEWEST_KNOWN
from ragwitness.report.files import FORMATS
from ragwitness.stats.p_values import documents_needed
from ragwitness.synthesis.guard import GuardConfig
from ragwitness.text import documents, formats
from tests.cli.surface import verbs
from tests.support.pages import ROOT

_FOLDED = re.compile(r"\s+")
PAGES = {
    path.relative_to(ROOT).as_posix(): _FOLDED.sub(" ", path.read_text(encoding="utf-8"))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
}
"""Each page as one line."""

_WORDS = "zero one two three four five six seven eight nine ten".split()
_ALPHA = 0.05  # of every audit, unless a reader says otherwise
_RANKS = documents_needed(_ALPHA)
# Ranks beside e-values have half of the level; a page gives the next round number.
_ALIKE = math.ceil(documents_needed(_ALPHA / 2) / 10) * 10


def number(text: str) -> float:
    """Return a number as pages write it: in figures, or up to ten in letters."""
    return _WORDS.index(text.lower()) if text.lower() in _WORDS else float(text.replace(",", ""))


FACTS: tuple[tuple[str, str, float], ...] = (
    (
        "of any kind",
        r"(\d+|ten) documents or more (?:that are known[^.]{0,30}, )?of any kind",
        FEWEST_KNOWN,
    ),
    ("alike", r"(\d+|forty) (?:documents )?or more (?:\*|\*\*)?(?:like|alike)", _ALIKE),
    ("least of ranks", r"[Ff]ewer than (\d+) (?:known-in documents )?no (?:document|rank)", _RANKS),
    ("seconds to wait", r"`--timeout`[^.;]{0,80}default(?: is)? (\d+)", ANSWER_SECONDS),
    ("attempts", r"`--retries`[^.;]{0,60}, (\d+) by default", 5),
    ("queries at once", r"default of N is (\d+)", 4),
    ("pilot texts", r"(?:about|on) (\w+) generated texts", auto_select.TEXTS),
    ("questions", r"at most (\w+) questions a document", JointConfig().questions + 2),
    ("windows", r"up to (\w+) windows of 1,000", windows.MOST),
    ("characters of a window", r"up to five windows of ([\d,]+) characters", windows.SIZE),
    (
        "characters of a document",
        r"document may have up to ([\d,]+) characters",
        documents._MAX_CHARACTERS,
    ),
    ("MiB of documents", r"together (\d+) MiB", documents._MAX_BYTES / 1024**2),
    ("MiB unpacked", r"unpacks to more than (\d+) MiB", formats._MOST / 1024**2),
    ("words in common", r"`--longest-run (\d+)`", GuardConfig().run),
    ("ROUGE-L", r"`--rouge ([\d.]+)`", GuardConfig().rouge),
    ("share of words", r"`--recall ([\d.]+)`", GuardConfig().recall),
)


@pytest.mark.parametrize(("name", "pattern", "value"), FACTS, ids=[fact[0] for fact in FACTS])
def test_every_page_says_the_number_of_the_code(name: str, pattern: str, value: float) -> None:
    said = {
        (page, match[0]): number(match[1])
        for page, text in PAGES.items()
        for match in re.finditer(pattern, text)
    }
    assert said, f"no page says it any more: {name}"
    assert {place: found for place, found in said.items() if found != value} == {}


# How many documents.

_NUMBER = r"(?<![\d.,/])(\d[\d,]*|ten|twenty|forty|hundred)(?![\d%]|\.\d| %)"
_NEEDED = re.compile(
    rf"(?:at least|fewer than|needs?|takes|enough|minimum of) {_NUMBER}"
    rf"|{_NUMBER} (?:or more|at least|is a start|are (?:enough|needed)|give|add)"
)
_OUTSIDE = re.compile(
    r"known[- ]out|known to be outside|known outside|never-shared|certainly outside"
)


def needed(text: str) -> Iterator[str]:
    """Yield the numbers of known-outside documents that sentences and rows call needed."""
    for sentence in re.split(r"(?<=[.!]) ", text):
        if _OUTSIDE.search(sentence):
            for match in _NEEDED.finditer(sentence):
                yield match[1] or match[2]


def test_there_is_one_answer_to_how_many_documents_are_needed() -> None:
    # The form, the questions of init and the help texts say it too.
    asked = {
        name: _FOLDED.sub(" ", (ROOT / "src/ragwitness" / name).read_text("utf-8").replace('"', ""))
        for name in ("membership/task.py", "cli/init.py")
    }
    told = {
        (page, found)
        for page, text in (PAGES | asked).items()
        if not page.startswith("docs/design/")
        for found in needed(text)
    }
    right = {"ten", "forty", str(FEWEST_KNOWN), str(_ALIKE), str(_RANKS)}
    assert {place for place in told if place[1] not in right} == set()


def test_another_answer_would_be_noticed() -> None:
    row = "| `never-shared` | others like them | at least 100; more decide more |"
    assert list(needed(row)) == ["100"]
    assert list(needed("100 is a start. Take 20 documents known to be outside, at least 20.")) == [
        "20"
    ]


# Lists.


def test_exit_codes_are_those_of_the_code() -> None:
    pattern = r"(?:[Ee]xit code|exits? with(?: code)?|ends? with exit code) (\d+)"
    codes = {int(found) for text in PAGES.values() for found in re.findall(pattern, text)}
    assert codes >= {3, 4}
    assert codes <= {int(code) for code in ExitCode}


def test_the_page_on_files_has_every_ending() -> None:
    page = (ROOT / "docs/documents.md").read_text(encoding="utf-8")
    table = page.partition("| ending |")[2].partition("\n\n")[0]
    told = {
        end for row in table.splitlines() for end in re.findall(r"`(\.\w+)`", row.split("|")[1])
    }
    unpacked = {".docx", ".odt", ".epub"}  # one reader knows them by their content
    named = {".pdf", ".rtf", *unpacked}
    assert len(formats._READERS) == len(named - unpacked) + 1
    assert told == {*documents.PROSE, *documents.TABLES, *formats.HTML_ENDINGS, *named}


def test_no_page_says_that_documents_must_be_texts() -> None:
    for page, text in PAGES.items():
        assert not re.search(r"text files? each", text), page


def test_the_page_on_pipelines_has_every_format() -> None:
    told = set(re.findall(r"`--(\w+)(?: FILE)?`", PAGES["docs/pipelines.md"]))
    assert set(FORMATS) <= told


def test_methods_and_attacks_are_listed_whole() -> None:
    shown = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs/choose.md").read_text("utf-8"), re.M)
    assert set(shown) == set(AUDITS.names())
    shown = re.findall(
        r"`([\w-]+)`", PAGES["docs/leak.md"].partition("| name |")[2].partition("To test")[0]
    )
    assert set(ATTACKS.names()) <= set(shown)


# Installation.


def _project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_page_on_installing_has_every_extra() -> None:
    source = (ROOT / ".ci/extras").read_text(encoding="utf-8")
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in {"IMPORTS", "FOR_TESTS"}
    }
    ours = set(_project()["optional-dependencies"]) - values["FOR_TESTS"]
    assert set(values["IMPORTS"]) == ours
    table = (ROOT / "docs/install.md").read_text("utf-8").partition("| extra |")[2]
    told = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    assert told == ours - {"zk"}
    assert "`zk` is the same" in table


def _closure(requirements: list[str], extras: frozenset[str], known: set[str]) -> set[str]:
    """Return the names of all packages that these requirements bring here."""
    for text in requirements:
        need = Requirement(text)
        marker = need.marker
        wanted = marker is None or any(marker.evaluate({"extra": e}) for e in {"", *extras})
        name = f"{canonicalize_name(need.name)}{sorted(need.extras)}"
        if wanted and name not in known:
            known.add(name)
            _closure(requires(need.name) or [], frozenset(need.extras), known)
    return {name.partition("[")[0] for name in known}


def test_the_number_of_packages_is_that_of_the_core() -> None:
    names = _closure(_project()["dependencies"], frozenset(), set())
    (told,) = re.findall(r"The core brings some (\d+) packages", PAGES["docs/install.md"])
    assert int(told) == round(len(names), -1)


def test_no_page_installs_from_an_index_that_has_it_not() -> None:
    wrong = r"pip install (?:--\S+ )*ragwitness\b(?! @)|(?:uv tool|pipx) install ragwitness\b"
    files = [*(ROOT / "docs").rglob("*"), *(ROOT / "recipes").rglob("*"), ROOT / "README.md"]
    for path in files:
        if path.suffix in {".md", ".ipynb", ".yml", ".py", ".toml"}:
            assert not re.search(wrong, path.read_text(encoding="utf-8")), path


def test_the_oldest_python_is_that_of_the_package() -> None:
    oldest = _project()["requires-python"].removeprefix(">=")
    told = {
        found for text in PAGES.values() for found in re.findall(r"Python (3\.\d+) or newer", text)
    }
    assert told == {oldest}


# Defaults.


def _defaults() -> dict[str, set[str]]:
    """Return the defaults of every option of the command line, by its name."""
    known: dict[str, set[str]] = {}
    for _, command in verbs():
        for param in command.params:
            for name in param.opts:
                known.setdefault(name, set()).add(str(param.default))
    return known


def test_an_option_that_is_called_the_default_has_that_default() -> None:
    known = _defaults()
    told = [
        (page, *match.groups())
        for page, text in PAGES.items()
        for match in re.finditer(r"`(--[a-z-]+) ([\w.-]+)`\)?,? (?:is )?(?:the|by) default", text)
    ]
    assert told
    for page, option, value in told:
        assert value in known[option], (page, option, value, known[option])


def test_a_wrong_default_would_be_noticed() -> None:
    assert "120.0" in _defaults()["--timeout"]
    assert "7" not in _defaults()["--releases"]
