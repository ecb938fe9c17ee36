"""What proofs cost: the paper's model, what is measured, what is extrapolated, how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ragwitness.errors import InputError
from research.proof_cost import costs
from research.proof_cost.costs import Case, Cost, CostTable, cases_of, load_cost_table, measure_all
from research.proof_cost.measure import measured
from research.proof_cost.report import cost_json, cost_markdown, cost_rows, cost_svg

_TABLES = Path(__file__).parents[3] / "experiments"


@pytest.fixture(scope="module")
def table() -> CostTable:
    return load_cost_table("collusion/table1", _TABLES)


def _printed(value: float) -> float:
    """As the paper prints it: two digits after the point below 0.1, one below 10, else none."""
    rounded = round(value, 1) if value < 10 else round(value)
    return rounded if rounded >= 0.1 else round(value, 2)


def test_the_rebuilt_model_gives_all_cells_that_the_paper_prints(table: CostTable) -> None:
    compared = 0
    for row in table.rows:
        if not row.published:
            assert row.model(1000) is None
            continue
        for documents, prove, setup in zip(table.sizes, *row.published.values(), strict=True):
            model = row.model(documents)
            assert model is not None
            assert (_printed(model[1]), _printed(model[2])) == (prove, setup)
            compared += 2
    assert compared == 16


def _case(circuit: str, documents: int, slots: int = 0, backend: str = "built-in") -> Case:
    return Case(circuit, backend, documents, slots or documents, 384, 4, 128, 213_908)  # type: ignore[arg-type]


def test_cases_are_chunks_for_link_and_whole_indexes_for_the_paper(table: CostTable) -> None:
    cases = cases_of(table, ["built-in", "groth16py"])
    link = {(c.documents, c.slots, c.backend) for c in cases if c.circuit == "link"}
    assert (12_288, 4_096, "built-in") in link
    assert (12_288, 4_096, "groth16py") not in link  # one circuit tells that back end's time
    assert (4_096, 4_096, "groth16py") in link
    assert all(c.slots == c.documents for c in cases if c.circuit != "link")
    assert [c.documents for c in cases] == sorted(c.documents for c in cases)


def test_what_was_not_measured_is_extrapolated_and_says_so(table: CostTable) -> None:
    cost = Cost(1_000, setup=4.0, window=3.0, prove=2.0, verify=0.5, proof=900, memory=10**8)
    measured = {
        _case("paper", 1_000): replace(cost, window=None),
        _case("paper", 520, backend="none"): Cost(520),
        _case("link", 1_000): cost,
        _case("link", 8_192, 4_096): replace(cost, constraints=2_000),
        _case("link", 1_000, backend="groth16py"): replace(cost, prove=1.0),
    }
    rows = cost_rows(table, measured, ["built-in", "groth16py"])
    told = {(r.label.partition(",")[0], r.backend, r.documents): r for r in rows}
    small = told["paper", "built-in", 1_000]
    assert (small.how, small.cost.prove, small.published) == ("", 2.0, (0.1, 0.05))
    large = told["paper", "built-in", 10_000]
    assert (large.cost.constraints, large.cost.prove, large.cost.setup) == (10_000, 20.0, 40.0)
    assert "counted to 1,000, proved to 1,000" in large.how
    assert (large.cost.proof, large.cost.verify, large.cost.memory) == (900, 0.5, None)
    chunked = told["LINK", "built-in", 100_000].cost  # 25 chunks, two of which cost what was seen
    assert (chunked.constraints, chunked.prove, chunked.setup) == (25_000, 25.0, 4.0)
    assert (chunked.window, chunked.proof) == (37.5, 11_250)
    assert (
        told["LINK", "built-in", 100_000].how
        == "chunks of 4,096: 25, each at the mean of 2 measured"
    )
    assert told["LINK", "built-in", 8_192].how == ""
    assert [key for key in told if key[1] == "groth16py"] == [("LINK", "groth16py", 1_000)]
    assert all(row.label != "paper, naive" for row in rows)


def test_the_report_marks_every_extrapolated_row(table: CostTable) -> None:
    cost = Cost(1_000, setup=4.0, window=3.0, prove=2.0, verify=0.5, proof=900, memory=2**20)
    rows = cost_rows(table, {_case("link", 1_000): cost}, ["built-in"])
    text = cost_markdown(table, rows)
    assert "| LINK | built-in | 1,000 | 1,000 | – | 4 | 3 | 2 | 0.5 | 900 | 1 |" in text  # noqa: RUF001
    assert "| LINK | built-in | 10,000 [1] | 10,000 |" in text
    assert "[1] extrapolated: chunks of 1,000: 10, each at the mean of 1 measured." in text
    assert table.note in text
    data = cost_json(table, rows)
    assert json.loads(json.dumps(data))["rows"][0]["cost"]["proof"] == 900
    drawing = ElementTree.fromstring(cost_svg(table, rows))  # noqa: S314 - our own
    assert "LINK, extrapolated" in "".join(drawing.itertext())


def test_small_tables_refuse_sizes_that_no_proof_has(table: CostTable) -> None:
    assert {row.measured for row in table.small([64, 16, 64]).rows} == {(16, 64)}
    for sizes in ([], [4], [5_000]):
        with pytest.raises(InputError, match="more than 4 documents and at most 4,096"):
            table.small(sizes)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('circuit = "paper"', 'circuit = "plonk"', "no circuit 'plonk'"),
        ("prove = [1.0, 2.0]", "prove = [1.0]", "not published at every size"),
        ("top = 2\n", "", "top"),
        ('label = "One"', 'name = "One"', "label|name"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = """
[t]
kind = "proofs"
title = "T"
sizes = [8, 16]
dimension = 4
top = 2
scale = 16
reach = 60
chunk = 8
[[t.row]]
label = "One"
circuit = "paper"
measured = [8]
published = { prove = [1.0, 2.0], setup = [1.0, 2.0] }
"""
    (tmp_path / "p").mkdir()
    path = tmp_path / "p" / "tables.toml"
    path.write_text(text)
    assert load_cost_table("p/t", tmp_path).sizes == (8, 16)
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=f"'p/t' is malformed: .*({said})"):
        load_cost_table("p/t", tmp_path)


def test_a_case_is_measured_once_and_a_failure_leaves_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Case] = []

    def measure(case: Case) -> Cost:
        asked.append(case)
        if case.circuit == "naive":
            raise InputError("No room.")
        return Cost(7)

    monkeypatch.setattr(costs, "measure", measure)
    cases, said = [_case("link", 8), _case("naive", 8), _case("paper", 8)], list[str]()
    assert measure_all(cases, tmp_path, said.append) == {cases[0]: Cost(7), cases[2]: Cost(7)}
    assert "not measured: No room." in said
    assert measure_all(cases[::2], tmp_path, said.append) == {cases[0]: Cost(7), cases[2]: Cost(7)}
    assert asked == cases
    other = replace(cases[0], reach=5)  # of the same name
    measure_all([other], tmp_path, said.append)
    assert asked[-1] == other
    (tmp_path / f"{other.name}.json").write_text("{")
    measure_all([other], tmp_path, said.append)
    assert len(asked) == 5


def test_another_back_end_proves_with_our_key() -> None:
    pytest.importorskip("groth16py")
    case = Case("link", "groth16py", 8, 8, 4, 2, 16, 60)
    cost = measured(case)
    assert (cost.setup, cost.window, cost.memory, cost.proof) == (None, None, None, 256)
    assert cost.constraints == measured(replace(case, backend="none")).constraints
    assert cost.prove is not None
    assert cost.verify is not None
    assert min(cost.prove, cost.verify) > 0
