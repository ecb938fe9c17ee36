"""The tables of pages are what the code and the experiments give today."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.support.pages import ROOT

_spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "pages" / "tables.py")
assert _spec is not None
assert _spec.loader is not None
tables: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)
_PAGE = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
_STORED = [pair for page in tables.PAGES for pair in tables.stored(page.read_text()).items()]


def test_every_table_is_on_a_page() -> None:
    assert {name for name, _ in _STORED} == set(tables.TABLES)


@pytest.mark.parametrize(
    "name", ["chat", "reader", pytest.param("methods", marks=pytest.mark.slow)]
)
def test_the_table_is_what_the_code_and_the_experiments_give(name: str) -> None:
    table = tables.TABLES[name]()
    assert table.count("\n") > 2
    assert [kept for stored, kept in _STORED if stored == name] == [table], "python pages/tables.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["least", "power"])
def test_the_table_is_what_is_computed(name: str) -> None:
    assert tables.stored(_PAGE)[name] == tables.TABLES[name](), "python pages/tables.py"


def test_no_table_says_of_a_method_that_it_was_not_measured() -> None:
    assert "not measured there" not in _PAGE


@pytest.mark.slow
def test_a_number_that_was_typed_would_be_noticed() -> None:
    changed = _PAGE.replace("| 0.0099 |", "| 0.0100 |")
    assert tables.stored(changed)["least"] != tables.TABLES["least"]()
    assert tables.renewed(changed) == _PAGE
