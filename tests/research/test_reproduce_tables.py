"""Tables of a paper: reading them, and what is written of them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.audits.measure import measure
from ragwitness.errors import InputError
from ragwitness.membership.registry import configure
from ragwitness.results.evaluation import Battery, Cost
from ragwitness.stats.evaluation import Rate
from research.reproduce.report import reproduction_markdown, reproduction_svg, rows_of
from research.reproduce.tables import Case, Table, known_tables, load_table, table_kind

_TABLES = Path(__file__).parents[2] / "experiments"


def test_every_table_of_the_repository_can_be_run() -> None:
    names = known_tables(_TABLES)
    assert {"mba/table1", "mba/table2", "s-rag/table1", "s-rag/fig6"} <= set(names)
    for name in names:
        if kind := table_kind(name, _TABLES):
            assert kind in ("canary", "compare", "proofs")  # their own tests have these
            continue
        table = load_table(name, _TABLES)
        assert table.cases
        for case in table.cases:
            for audit in table.audits:
                configure(audit, case.options.get(audit))
            assert {name.partition("/")[0] for name in case.published} <= set(table.audits)


def test_a_folder_without_tables_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tables below") as caught:
        known_tables(tmp_path)
    assert "--tables" in caught.value.hint


def test_unknown_and_malformed_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table 'mba/none'"):
        load_table("mba/none", _TABLES)
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "tables.toml").write_text('[t]\ntitle = "a"\n[[t.case]]\ncolour = 1\n')
    with pytest.raises(InputError, match="malformed"):
        load_table("x/t", tmp_path)
    (folder / "tables.toml").write_text("not toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_table("x/t", tmp_path)


@pytest.fixture
def results() -> list[tuple[Case, Battery]]:
    truth = {str(i): i < 5 for i in range(10)}
    scores = {str(i): float(-i) for i in range(10)}
    one = measure(
        "mba",
        scores,
        truth,
        known_in=[1.0],
        known_out=[-9.0, -8.0],
        retrieved=None,
        outcomes={},
        cost=Cost(1.0, None, None),
    )
    assert one is not None
    first = Battery((one,), {"blind words": Rate(0.9, 0.85, 0.95, 99)}, {}, {}, {}, 0.0, {}, 1.0)
    second = replace(first, controls={}, skipped={"dcmi": "nothing could be read"})
    return [(Case("a <case>", "f.jsonl", {"mba": 0.88}), first), (Case("b", "f"), second)]


def test_published_and_ours_stand_side_by_side(results: list[tuple[Case, Battery]]) -> None:
    table = Table("mba/t", "A & B", ("mba",), False, "auc", tuple(case for case, _ in results))
    text = reproduction_markdown(table, results)
    assert "| a <case> | mba | 0.880 | 1.000 [.478, 1.000] | 10 | 0.000 | 1 |" in text
    assert "| b | dcmi | – | nothing could be read | | | |" in text  # noqa: RUF001
    assert "Controls: a <case>, blind words: .900 [.850, .950] (FAILS)." in text
    assert [row.published for row in rows_of(table, results)] == [0.88, None, None]
    figure = reproduction_svg(table, results)
    root = ElementTree.fromstring(figure)  # noqa: S314 - our own text
    circles = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(circles) == 1
