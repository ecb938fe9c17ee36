"""``ragwitness lab reproduce`` for a table of proofs' costs: end to end, resumed, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]

_TABLE = """
[t1]
kind = "proofs"
title = "What proofs cost"
sizes = [8, 32]
dimension = 4
top = 2
scale = 16
reach = 60
chunk = 8
[[t1.row]]
label = "Theirs"
circuit = "naive"
measured = [4]
counted = [8]
published = { prove = [1.0, 4.0], setup = [0.5, 2.0] }
rebuilt = { document = 5 }
[[t1.row]]
label = "LINK"
circuit = "link"
measured = [12]
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "tables.toml").write_text(_TABLE)
    return tmp_path


def test_a_table_is_measured_told_and_resumed(command: Command, tables: Path) -> None:
    pytest.importorskip("zksnake")
    common = ("reproduce", "paper/t1", "--tables", tables, "--out", tables / "out")
    code, said = command(*common, "--backends", "built-in")
    assert code == 0, said
    assert "measuring link, 16 documents, built-in" in said  # 12 fill two chunks of 8
    assert "not measured" not in said
    assert "| LINK | built-in | 16 |" in said
    assert "extrapolated: chunks of 8: 4, each at the mean of 2 measured." in said
    assert "extrapolated: chunks of 8: 1, each at the mean of 2 measured." in said
    assert "extrapolated: constraints counted to 8, proved to 4 documents." in said
    told = json.loads((tables / "out/paper/t1/table.json").read_text())["rows"]
    link = {row["documents"]: row["cost"] for row in told if row["label"] == "LINK"}
    assert link[16]["constraints"] == 2 * link[8]["constraints"]
    assert link[16]["proof"] == 96 + 2 * 640
    assert all(cost["prove"] > 0 and cost["verify"] > 0 for cost in link.values())
    naive = {row["documents"]: row for row in told if row["label"] == "Theirs"}
    assert naive[8]["published"] == [1.0, 0.5]
    assert naive[32]["model"][0] == 160
    assert (tables / "out/paper/t1/table.svg").read_text().startswith("<svg")
    code, said = command(*common, "--backends", "built-in")
    assert code == 0
    assert "measuring" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sizes", "8,x"), "is no list of whole numbers"),
        (("--sizes", "2"), "more than 2 documents and at most 8"),
        (("--backends", "libsnark"), "There is no back end 'libsnark'"),
        (("--model", "x/y"), "asks no model and reads no corpus"),
    ],
)
def test_unusable_options_are_refused(
    command: Command, tables: Path, options: tuple[str, str], said: str
) -> None:
    code, told = command(
        "reproduce", "paper/t1", "--tables", tables, "--out", tables / "out", *options
    )
    assert code == 2
    assert said in told


def test_tables_of_audits_measure_no_proofs(command: Command) -> None:
    tables = Path(__file__).parents[2] / "experiments"
    code, said = command("reproduce", "mba/table1", "--tables", tables, "--sizes", "8")
    assert code == 2
    assert "--sizes and --backends do not apply" in said
    code, said = command("reproduce", "list", "--tables", tables)
    assert code == 0
    assert "collusion/table1" in said
