"""The wheel keeps the shape that docs/design/architecture.md states."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks.house import (
    circles,
    climbs,
    code_of,
    lines_of,
    misnamed_files,
    own_line_comments,
    repeated_classes,
    sources,
)


@pytest.fixture(scope="module")
def wheel() -> list[Path]:
    return sources()


def test_no_room_has_more_code_than_it_was_left_with(wheel):
    budget = tomllib.loads(Path(__file__).with_name("house.toml").read_text())
    counts = code_of(wheel)
    assert counts.keys() == budget.keys()
    over = {
        room: (now, budget[room])
        for room, now in counts.items()
        if now[0] > budget[room][0] or now[1] > budget[room][1]
    }
    assert over == {}


def test_words_are_no_code(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""Says what it is."""\n\n# Step 1.\nx = (\n    1 +\n    2\n)\n')
    assert code_of([path], tmp_path)["wheel"] == (4, 10)


def test_steps_are_named_in_comments(wheel):
    assert 1000 * own_line_comments(wheel) / lines_of(wheel) >= 25


def test_no_file_imports_itself_through_others():
    assert circles() == []


def test_no_import_leads_up_wherever_it_stands():
    assert climbs() == []


def test_one_class_one_name(wheel):
    assert repeated_classes(wheel) == []


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
