"""The wheel keeps the shape that docs/design/architecture.md states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.english import PATTERNS, findings
from benchmarks.house import (
    circles,
    climbs,
    code_of,
    excesses,
    layers,
    lines_of,
    misnamed_files,
    own_line_comments,
    repeated_files,
    riddle_share,
    sources,
)
from benchmarks.subject import faults


@pytest.fixture(scope="module")
def wheel() -> list[Path]:
    return sources()


@pytest.mark.slow  # make lint checks the same
def test_no_count_is_above_its_ceiling_and_imports_only_lead_down():
    assert excesses() == []


def test_no_file_name_occurs_more_than_three_times(wheel):
    assert repeated_files(wheel) == []


def test_floors_and_rooms_are_few():
    assert len(layers()) <= 13
    assert sum(map(len, layers())) <= 27


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_each_habit_is_found_in_its_example_and_not_in_the_better_form(pattern):
    wrong, right = pattern.example
    assert pattern.form.search(wrong)
    assert not pattern.form.search(right)


def test_a_long_sentence_and_a_riddle_name_would_be_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(f'"""It has {"very " * 30}many words."""\ndef f():\n    found = 1\n')
    assert [finding.name for finding in findings(path)] == ["above 30 words"]
    assert riddle_share(tmp_path) == 100


def test_words_are_no_code(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""Says what it is."""\n\n# Step 1.\nx = (\n    1 +\n    2\n)\n')
    assert code_of([path], tmp_path)["wheel"] == (4, 10)


def test_steps_are_named_in_comments(wheel):
    assert 1000 * own_line_comments(wheel) / lines_of(wheel) >= 25


def test_files_are_named_after_things(wheel):
    assert misnamed_files(wheel) == []


def test_a_circle_would_be_found(tmp_path):
    package = tmp_path / "ragwitness"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from ragwitness.b import x\n")
    (package / "b.py").write_text("from ragwitness.a import y\n")
    assert circles(package) == [["ragwitness.a", "ragwitness.b"]]
    (package / "b.py").write_text("def f():\n    from ragwitness.a import y\n")
    assert circles(package) == [["ragwitness.a", "ragwitness.b"]]
    (package / "b.py").write_text("if TYPE_CHECKING:\n    from ragwitness.a import y\n")
    assert circles(package) == [["ragwitness.a", "ragwitness.b"]]
    for by_name in ('HOME = "ragwitness.a:y"', 'import_module("ragwitness.a")'):
        (package / "b.py").write_text(f"{by_name}\n")
        assert circles(package) == [["ragwitness.a", "ragwitness.b"]]


def test_an_import_that_leads_up_would_be_found(tmp_path):
    core = tmp_path / "ragwitness" / "core"
    (tmp_path / "ragwitness" / "report").mkdir(parents=True)
    core.mkdir()
    for folder in (core, core.parent, core.parent / "report"):
        (folder / "__init__.py").write_text("")
    (core / "types.py").write_text('f = import_module("ragwitness.report")\n')
    found = [("ragwitness.core.types", "ragwitness.report")]
    assert climbs(tmp_path / "ragwitness") == found


def test_a_plain_import_of_the_package_loads_nothing_else():
    program = (
        "import sys, ragwitness; print([m for m in sys.modules if m.startswith('ragwitness.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("synthesis: drop the rewriter's remarks\n\nThey were read as facts.\n", 0),
        ("Merge branch 'x'", 0),
        ("What a surgeon removed is no remark of the rewriter\n\nWhy.\n", 1),
        ("text: " + "a" * 70 + "\n\nWhy.\n", 1),
        ("text: read more\nat once\n", 2),
    ],
)
def test_a_commit_subject_names_its_room_and_its_body_says_why(message, count):
    assert len(faults(message)) == count
