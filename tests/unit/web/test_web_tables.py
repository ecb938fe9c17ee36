"""Reproduced tables as pages: what ``reproduce`` wrote, and nothing that it could smuggle in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwitness.errors import InputError
from ragwitness.results.table import TablePart, read_reproduced
from tests.support.markup import check
from tests.unit.web.test_web_pages import Site
from tests.unit.web.web_runs import table_run, unfinished_run

TEXT = """**A table: published beside ours**

| case | published | ours |
|---|---|---|
| one \\| two | .756 | 1.000 [.692, 1.000], n = 20 |
| <script>alert(1)</script> | - | |

In brackets 95 % intervals.
Over seeds.
"""
FIGURE = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>\n'


def _table(root: Path, text: str = TEXT, name: str = "paper/toy") -> Path:
    return table_run(root / name, text, FIGURE)


def test_markdown_is_read_cell_by_cell(tmp_path: Path) -> None:
    told = read_reproduced(_table(tmp_path))
    assert told.title == "A table: published beside ours"
    table, below = told.parts
    assert table.head == ("case", "published", "ours")
    assert table.rows[0] == ("one | two", ".756", "1.000 [.692, 1.000], n = 20")
    assert table.rows[1][2] == ""
    assert below == TablePart("In brackets 95 % intervals. Over seeds.")


def test_tables_stand_among_the_runs_and_have_a_page(tmp_path: Path) -> None:
    _table(tmp_path)
    _table(tmp_path, name="other/toy")
    unfinished_run(tmp_path / "run", [("d", "p", "a")])
    site = Site(tmp_path)
    listed = site.get("/")
    assert "3 runs" in listed
    assert "Compare two runs" not in listed
    page = site.get(site.run("paper/toy"))
    found = check(page)
    assert "script" not in found.seen
    assert "&lt;script&gt;" in page
    assert "1.000 [.692, 1.000], n = 20" in page
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), tag
        if name in {"href", "src"}:
            assert value.startswith(("/", "#"))


def test_a_study_is_a_table_though_its_journal_lies_beside(tmp_path: Path) -> None:
    """Audits keep their answers in the table's folder: it is no run that waits to be resumed."""
    folder = _table(tmp_path)
    unfinished_run(folder, [("d", "p", "a")])
    assert "not finished" not in Site(tmp_path).get("/")
    assert "reproduced table" in Site(folder).get("/")


def test_the_figure_is_an_image_that_cannot_run_anything(tmp_path: Path) -> None:
    folder = _table(tmp_path)
    site = Site(tmp_path)
    address = f"{site.run('paper/toy')}/figure.svg"
    assert site.get(address) == FIGURE  # the headers of every reply forbid scripts
    assert f'src="{address}"' in site.get(site.run("paper/toy"))
    (folder / "table.svg").unlink()
    assert "figure.svg" not in site.get(site.run("paper/toy"))
    assert "no figure" in site.get(address, 404)
    assert "no such run" in site.get("/run/0/figure.svg", 404)


@pytest.mark.parametrize(
    ("text", "why"), [("", "title"), ("a table", "title"), ("**" + "x" * 1_000_001, "more than")]
)
def test_what_is_no_table_is_named(tmp_path: Path, text: str, why: str) -> None:
    folder = _table(tmp_path, text)
    with pytest.raises(InputError, match=why):
        read_reproduced(folder)
    page = Site(tmp_path).get("/")
    assert "not readable" in page


def test_a_table_that_is_no_text_is_named(tmp_path: Path) -> None:
    folder = _table(tmp_path)
    (folder / "table.md").write_bytes(b"**\xff\xfe**")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_reproduced(folder)
