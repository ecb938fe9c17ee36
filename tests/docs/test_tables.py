"""The tables of the page on choosing are what the code computes today."""

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


def test_every_table_is_on_the_page() -> None:
    assert set(tables.stored(_PAGE)) == set(tables.TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", tables.TABLES)
def test_the_table_is_what_is_computed(name: str) -> None:
    assert tables.stored(_PAGE)[name] == tables.TABLES[name](), "python pages/tables.py"


@pytest.mark.slow
def test_a_number_that_was_typed_would_be_noticed() -> None:
    changed = _PAGE.replace("| 0.0099 |", "| 0.0100 |")
    assert tables.stored(changed)["least"] != tables.TABLES["least"]()
    assert tables.renewed(changed) == _PAGE
