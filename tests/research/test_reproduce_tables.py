"""Tables of a paper: reading them, and what is written of them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError, ModelError
from ragwitness.membership.measure import measure
from ragwitness.membership.method_registry import configure
from ragwitness.membership.results.evaluation import Battery, Cost
from ragwitness.models.model_registry import load_language_model
from ragwitness.stats.rates import Rate
from research.reproduce.command import chosen_rows
from research.reproduce.report import (
    reproduction_json,
    reproduction_markdown,
    reproduction_svg,
    rows_of,
)
from research.reproduce.tables import (
    Case,
    Table,
    known_tables,
    load_table,
    load_world,
    table_kind,
)

_TABLES = Path(__file__).parents[2] / "experiments"


def test_every_table_of_the_repository_can_be_run() -> None:
    names = known_tables(_TABLES)
    assert {"mba/table1", "mba/table2", "s-rag/table1", "s-rag/fig6"} <= set(names)
    for name in names:
        if (kind := table_kind(name, _TABLES)) not in ("", "scores"):
            assert kind in (
                "canary",
                "case",
                "collusion",
                "compare",
                "proofs",
            )  # their own tests have these
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
        "mba:paper",
        scores,
        truth,
        known_in=[1.0],
        known_out=[-9.0, -8.0],
        retrieved=None,
        outcomes={},
        cost=Cost(1.0, None, None),
    )
    assert one is not None
    used = {"generator": "a reader", "s-rag: audit classifier": "random forest"}
    first = Battery((one,), {"blind words": Rate(0.9, 0.85, 0.95, 99)}, {}, {}, 0.0, used, 1.0)
    second = replace(first, controls={}, skipped={"s2mia": "nothing could be read"}, settings={})
    printed = {"mba:paper": {"auc": 0.88, "f1": 0.9}, "s2mia": {"auc": 0.7}}
    return [(Case("a <case>", "f.jsonl", printed), first), (Case("b", "f", printed), second)]


def test_published_and_ours_stand_side_by_side(results: list[tuple[Case, Battery]]) -> None:
    cases = tuple(case for case, _ in results)
    table = Table("mba/t", "A & B", ("mba:paper",), False, "auc", cases, ("The model is small.",))
    told = {"command": "ragwitness lab reproduce mba/t --data DIR", "world": "easy"}
    text = reproduction_markdown(table, results, told)
    # All columns: AUC, accuracy, F1, precision, recall and TPR at 1 % FPR, with their intervals.
    heads = "case | audit | AUC | accuracy | F1 | precision | recall | TPR at 1 % FPR"
    assert f"| {heads} | recall of retrieval | n | unscorable | queries/doc |" in text
    one = next(line for line in text.splitlines() if line.startswith("| a <case>"))
    cells = [cell.strip() for cell in one.split("|")[1:-1]]
    assert cells[:3] == ["a <case>", "mba:paper", ".880 / 1.000 [.478, 1.000]"]
    assert cells[4].startswith(".900 / ")
    assert all("[" in cell for cell in cells[2:8])
    assert "/" not in cells[3]  # no accuracy was published
    assert cells[9:] == ["10", "0.000", "1"]
    assert "| b | s2mia | nothing could be read; published AUC .700 | | | |" in text
    assert "Controls: a <case>, blind words: .900 [.850, .950] (FAILS)." in text
    assert "| mba:paper | best threshold of the calibration documents |" in text
    for said in ("The model is small.", "generator: a reader", "random forest", *told.values()):
        assert said in text
    assert [row.published for row in rows_of(results)][:2] == [cases[0].published["mba:paper"]] * 2
    root = ElementTree.fromstring(reproduction_svg(table, results))  # noqa: S314 - our own text
    circles = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(circles) == 2
    # No label stands over another, and none is cut off, however long they are.
    named = [(replace(case, label=f"{case.label} in words " * 4), one) for case, one in results]
    root = ElementTree.fromstring(  # noqa: S314
        reproduction_svg(replace(table, title="a title of many words " * 9), named)
    )
    width = int(root.get("viewBox").split()[2])
    texts = [one for one in root.iter() if one.tag.endswith("text")]
    assert all(10 * len(one.text) <= width for one in texts if one.get("font-size") == "14")
    case = next(one for one in texts if "in words" in one.text)
    audit = next(one for one in texts if one.text == "mba:paper")
    assert 16 + 8 * len(case.text) <= int(audit.get("x")) - 8 * len(audit.text)
    data = reproduction_json(table, results, told)
    assert data["cases"][0]["published"]["mba:paper"]["f1"] == 0.9
    assert data["cases"][0]["audits"]["mba:paper"]["recall"]["n"] == 5
    assert data["command"] == told["command"]


_ROW = '[[t.case]]\nlabel = "c"\ncorpus = "f"\n'


def _table(folder: Path, head: str, row: str) -> Table:
    (folder / "x").mkdir()
    written = f'[t]\ntitle = "a"\naudits = ["mba:paper"]\n{head}{_ROW}{row}'
    (folder / "x" / "tables.toml").write_text(written)
    return load_table("x/t", folder)


def test_a_number_alone_is_the_rate_of_the_table(tmp_path: Path) -> None:
    table = _table(tmp_path, 'rate = "f1"\n', 'published = {"mba:paper" = 0.9}\n')
    assert table.cases[0].published == {"mba:paper": {"f1": 0.9}}


@pytest.mark.parametrize(
    ("head", "row", "says"),
    [
        ("", "published = {mba = {colour = 1}}\n", "no rate 'colour'"),
        ('rate = "colour"\n', "", "not 'colour'"),
    ],
)
def test_a_rate_that_there_is_not_is_named(tmp_path: Path, head: str, row: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        _table(tmp_path, head, row)


def test_published_numbers_stand_beside_presets_alone() -> None:
    for name in known_tables(_TABLES):
        if name.startswith("s-rag/"):
            for case in load_table(name, _TABLES).cases:
                assert all(":" in audit for audit in case.published), (name, case.label)


def test_rows_are_chosen_by_name() -> None:
    table = load_table("s-rag/fig6", _TABLES)
    found = chosen_rows(table, "s-rag:paper", control=False)
    assert found.audits == ("s-rag:paper",)
    assert not found.control
    assert [case.options for case in found.cases] == [case.options for case in table.cases]
    with pytest.raises(InputError, match="has no row 'passages'"):
        chosen_rows(table, "passages")


def test_worlds_are_readers_by_name(tmp_path: Path) -> None:
    easy, hard, warm, twins = (
        load_world(name, _TABLES) for name in ("easy", "hard", "warm", "near-duplicates")
    )
    assert len({easy.generator, hard.generator, warm.generator}) == 3
    assert [one.twins for one in (easy, hard, warm, twins)] == [False, False, False, True]
    for world in (easy, warm, twins):
        assert load_language_model(world.generator).name
        assert world.why
    # Its reader left the tree; the message says where it is.
    with pytest.raises(ModelError, match="reader-1-step-250"):
        load_language_model(hard.generator)
    with pytest.raises(InputError, match="no world 'harder'"):
        load_world("harder", _TABLES)
    (tmp_path / "worlds.toml").write_text('[easy]\ncolour = "red"\n')
    with pytest.raises(InputError, match="malformed"):
        load_world("easy", tmp_path)


def test_shuffled_passages_are_the_same_ones_in_another_order() -> None:
    from ragwitness.rag.index import Hit
    from ragwitness.rag.pipeline import Lookup
    from research.reproduce.defenses import Shuffled

    hits = [Hit(n, 10.0 - n) for n in range(6)]
    orders = set()
    for size in range(3, 7):
        lookup = Lookup.__new__(Lookup)
        object.__setattr__(lookup, "k", 4)
        found = Shuffled().select(hits[:size], lookup)
        assert sorted(found, key=lambda hit: hit.index) == hits[:size]
        assert found[4:] == hits[4:size]
        assert found == Shuffled().select(hits[:size][::1], lookup)
        orders.add(tuple(hit.index for hit in found[:4]))
    assert orders - {(0, 1, 2), (0, 1, 2, 3)}


def test_a_database_is_paraphrased_text_by_text() -> None:
    from ragwitness.core.types import Document
    from ragwitness.models.base import Generation
    from research.reproduce.defenses import paraphrased

    class Writer:
        name, context_length = "writer", 1000

        def count_tokens(self, text):
            return len(text.split())

        def generate(self, prompts, **_):
            return [Generation("In other words.", (), "stop", 9, 3) for _ in prompts]

    found = paraphrased([Document("a", "These are the words of a.")], Writer())
    assert found == [Document("a", "In other words.")]
