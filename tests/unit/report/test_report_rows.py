"""JSONL and Parquet: one row per document, the same figures as the JSON, never NaN."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.core.types import Decision, Evidence, Interval, Verdict
from ragwitness.membership.results.audit import AuditResult
from ragwitness.report.files import SUMMARY
from ragwitness.report.result_registry import to_json
from tests.support.reports import write
from tests.unit.report.fake_results import fake_result

HALF = "half a pair \ud800, NUL \x00, line\nbreak\u2028, bidi \u202e"


def odd() -> AuditResult:
    words = (
        Evidence("a", "b", Interval(0.0, 0.3), 0.01),
        Evidence("a", "b", Interval(math.nan, 0.3), 0.01),
    )
    verdicts = (
        Verdict(HALF, Decision.OUT, math.nan, math.inf, 1, q_value=math.nan, evidence=words),
        Verdict("b", Decision.INCONCLUSIVE, None, None, 0, reason=HALF),
    )
    return replace(fake_result(0), verdicts=verdicts, evaluation=None)


def no_constant(name: str) -> None:
    pytest.fail(f"{name} is not JSON")


@pytest.mark.parametrize("n", [0, 1, 60])
def test_jsonl_has_one_line_per_document_as_in_the_json(n: int, tmp_path: Path) -> None:
    result = fake_result(n)
    write("jsonl", result, tmp_path / "r.jsonl")
    text = (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    assert text.count("\n") == n
    assert [json.loads(line) for line in text.splitlines()] == to_json(result)["documents"]


def test_jsonl_survives_every_text_and_number(tmp_path: Path) -> None:
    write("jsonl", odd(), tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_bytes().removesuffix(b"\n").split(b"\n")
    first, second = (json.loads(line, parse_constant=no_constant) for line in lines)
    assert first["id"] == second["reason"] == HALF
    assert first["score"] is first["p_value"] is first["q_value"] is None
    assert len(first["evidence"]) == 1
    write("json", odd(), tmp_path / "r.json")
    stored = json.loads((tmp_path / "r.json").read_bytes(), parse_constant=no_constant)
    assert stored["documents"] == [first, second]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_unwritable_paths_are_named(form: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot write"):
        write(form, fake_result(2), tmp_path)


def test_parquet_reads_back_as_the_json(tmp_path: Path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    result = fake_result(60)
    write("parquet", result, tmp_path / "r.parquet")
    found = table.read_table(tmp_path / "r.parquet")
    data = to_json(result)
    empty = dict.fromkeys(found.column_names)
    assert found.to_pylist() == [empty | row for row in data["documents"]]
    assert json.loads(found.schema.metadata[SUMMARY]) == data["summary"]


def test_parquet_types_do_not_depend_on_the_values(tmp_path: Path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    schemas = []
    for name, result in (("none", fake_result(0)), ("odd", odd()), ("full", fake_result(60))):
        write("parquet", result, tmp_path / name)
        schemas.append(table.read_schema(tmp_path / name))
    assert schemas[0].equals(schemas[1])
    assert schemas[0].equals(schemas[2])
    types = {field.name: str(field.type) for field in schemas[0]}
    numbers = ("p_value", "score", "q_value", "p_out", "classifier")
    assert {types[name] for name in numbers} == {"double"}
    assert types["queries"] == "int64"
    assert types["member"] == "bool"
    assert {types[name] for name in ("id", "verdict", "reason")} == {"string"}


def test_parquet_holds_nulls_rather_than_nan(tmp_path: Path) -> None:
    table = pytest.importorskip("pyarrow.parquet")
    write("parquet", odd(), tmp_path / "r")
    found = table.read_table(tmp_path / "r")
    for name in ("p_value", "score", "q_value", "p_out", "classifier", "member"):
        assert found[name].null_count == 2
    first, second = found.to_pylist()
    assert first["id"] == HALF.replace("\ud800", "\ufffd") == second["reason"]
    assert len(first["evidence"]) == 1
    assert second["evidence"] == []


def test_parquet_names_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="Cannot write"):
        write("parquet", fake_result(2), tmp_path)


def test_parquet_without_its_extra_prints_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"ragwitness\[data\]"):
        write("parquet", fake_result(2), tmp_path / "r")
