"""Contacts and listed names in every script: found, and nothing innocent with them."""

import pytest

from benchmarks.faces_text import Row, rows


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.script)
def test_contacts_and_names_of_a_script(row: Row) -> None:
    assert {right - of for right, of in row[1:]} == {0}
