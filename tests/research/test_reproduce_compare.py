"""Tables of compared texts: every one of the repository loads, and each figure has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwitness.errors import InputError
from research.reproduce.compare import load_compare_table
from research.reproduce.compare_report import Done, table_markdown, table_rows
from research.reproduce.tables import table_kind

_TABLES = Path(__file__).parents[2] / "experiments"


def test_all_ten_tables_of_sage_load_and_say_why_what_is_not_run() -> None:
    for number in range(1, 11):
        name = f"sage/table{number}"
        assert table_kind(name, _TABLES) == "compare"
        table = load_compare_table(name, _TABLES)
        text = table_markdown(table, [Done(case) for case in table.cases])
        assert "needs --model" in text
        for case in table.cases:
            assert case.refused or case.published
            assert case.refused in text
    table = load_compare_table("sage/table3", _TABLES)
    assert not table.needs_model("origin")
    assert not table.needs_model("Keywords")
    assert table.needs_model("Stage-2")
    rows = table_rows(table, [Done(case) for case in table.cases])
    [one] = [r for r in rows if (r.case, r.row, r.column) == ("Wiki-PII", "origin", "target info")]
    assert one.published == "25 / 167"  # Llama-3-8B / GPT-3.5


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ('rows = {a = "magic"}', "by no method"),
        ('rows = {a = "origin"}\n[[t.case]]\nlabel = "c"', "no corpus or no columns"),
        (
            'rows = {a = "origin"}\n[[t.case]]\nlabel = "c"\ncorpus = "f"\nattack = "x"\n'
            'columns = {c = "words"}',
            "by no attack",
        ),
        (
            'rows = {a = "origin"}\n[[t.case]]\nlabel = "c"\ncorpus = "f"\ncolumns = {c = "?"}',
            "no figure",
        ),
        (
            'rows = {a = "origin"}\n[[t.case]]\nlabel = "c"\ncorpus = "f"\n'
            'columns = {c = "words"}\npublished = {b = {c = "1"}}',
            "figures of no row",
        ),
        ('colour = 1\nrows = {a = "origin"}', "malformed"),
    ],
)
def test_malformed_tables_are_named(tmp_path: Path, change: str, cause: str) -> None:
    (tmp_path / "x").mkdir()
    text = f'[t]\nkind = "compare"\ntitle = "a"\nprompts = 1\nasked = 0\n{change}\n'
    if "[[t.case]]" not in text:
        text += '[[t.case]]\nlabel = "c"\nrefused = "why"\n'
    (tmp_path / "x" / "tables.toml").write_text(text)
    with pytest.raises(InputError, match=cause):
        load_compare_table("x/t", tmp_path)
