"""Tables of the package are read, and names in capitals stand for expressions."""

from __future__ import annotations

import pytest

from ragwitness.text.words import expression, read_table


@pytest.mark.parametrize("name", ["canonical", "replies", "spellings", "words"])
def test_every_table_is_in_the_package(name: str) -> None:
    assert read_table(f"{name}.toml")


def test_names_in_capitals_stand_for_expressions() -> None:
    table = {"expressions": {"PAIR": "(?:ONE){2}", "ONE": "[ab]"}}
    assert expression("xPAIR", table).pattern == "x(?:[ab]){2}"
