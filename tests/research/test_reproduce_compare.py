"""Tables of compared texts: every one of the repository loads, and each figure has its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.rag.chunk import chunk_documents
from ragwitness.synthesis.agents import ROLES, roles_of
from research.reproduce.compare import (
    CompareCase,
    CompareTable,
    ComparisonOptions,
    _material,
    load_compare_table,
    reproduce_comparison,
    with_originals,
)
from research.reproduce.compare_report import Done, table_markdown, table_rows
from research.reproduce.tables import table_kind
from tests.support.writers import writers

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


def test_few_records_are_asked_about_what_all_of_them_are() -> None:
    table = load_compare_table("sage/table1", _TABLES)
    case = replace(table.cases[0], corpus="few.jsonl")
    with TemporaryDirectory() as folder:
        rows = ({"id": str(n), "text": f"record {n}", "question": f"{n}?", "answer": "a"}
                for n in range(60))  # fmt: skip
        (Path(folder) / "few.jsonl").write_text("\n".join(map(json.dumps, rows)))
        options = ComparisonOptions(
            Path(folder), Path(folder), None, None, None, "repeat", "lexical", 0
        )
        whole, few = (_material(case, table, replace(options, records=n)) for n in (None, 10))
    assert len(whole.records) == 54
    assert len(few.records) == 10
    assert {one.id for one in few.records} < {one.id for one in whole.records}
    assert (few.questions, few.background, few.held) == (
        whole.questions, whole.background, whole.held
    )  # fmt: skip


def test_queries_of_texts_that_were_kept_are_counted(tmp_path: Path) -> None:
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, _tides())))
    columns = {"asked": "queries", "rounds": "rounds"}
    case = CompareCase("few", corpus="few.jsonl", domain="wiki", columns=columns)
    rows = {"stage one": "stage-1", "stage two": "sage"}
    table = CompareTable("sage/costs", "Costs", 0, 0, rows, (case,))
    told = []
    with writers() as server:
        for _ in range(2):  # the second start has all texts, and asks nothing
            reproduce_comparison(table, ComparisonOptions(
                tmp_path, tmp_path / "out", f"{server.url}#m", None, None, "repeat", "lexical", 0
            ))  # fmt: skip
            told.append((tmp_path / "out" / "sage" / "costs" / "table.md").read_text())
    assert told[0] == told[1]
    asked = [line.split(" | ")[4] for line in told[0].splitlines() if "| asked |" in line]
    # What each of 11 records says, a text of each, and a judgement of each.
    assert asked == ["2.00", "3.00"]


def _tides() -> list[dict[str, str]]:
    words = "rivers boats winter bread stone garden music letters horses candles".split()
    return [
        {"id": str(n), "text": " ".join(words[(n + i) % 10] for i in range(12)) + f" number {n}."}
        for n in range(12)
    ]


def test_a_method_that_makes_nothing_costs_its_own_row_alone(tmp_path: Path) -> None:
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, _tides())))
    case = CompareCase(
        "few",
        corpus="few.jsonl",
        domain="wiki",
        attack="composite",
        columns={"repeats": "published repeat prompts 10"},
    )
    rows = {
        "all": "origin",
        "told": "paraphrase",
        "list": "attrprompt-published",
        "words": "redact",
    }
    table = CompareTable("sage/tiny", "Tiny", 3, 0, rows, (case,))
    with writers(lambda _kind, _prompt: "I am sorry, I cannot help with that.") as server:
        roles = roles_of(None, dict.fromkeys(ROLES, f"{server.url}#m"))
        options = ComparisonOptions(
            data=tmp_path, out=tmp_path / "out", model=None, roles=roles, judge=None, prompts=None,
            generator="repeat", retrieval="lexical", seed=0,
        )  # fmt: skip
        reproduce_comparison(table, options)
        asked = len(server.prompts)
        reproduce_comparison(table, options)  # a model that cannot begin is not paid for again
        assert 0 < asked == len(server.prompts)
    lines = (tmp_path / "out" / "sage" / "tiny" / "table.md").read_text().splitlines()
    cells = [line.split(" | ") for line in lines if line.startswith("| few")]
    said = {one[1]: one[4] for one in cells}
    # A model that refuses has no paraphrase: said so, and the rows before and after it stand.
    assert said["told"].startswith("not run: paraphrase made no text that may be used")
    assert "cannot begin: no subtopic was named" in said["list"]
    assert int(said["all"]) == int(said["words"]) > 0


def test_a_passage_stands_for_its_original() -> None:
    told = [Transcript("a", "p", "x", ("one text",))]
    documents = [Document("r0", "one text"), Document("new", "another text")]
    passages = chunk_documents(documents)
    assert with_originals(told, passages, {"r0": "the record"})[0].contexts == ("the record",)
    assert with_originals(told, passages, {"r1": "the record"})[0].contexts is None
