"""Logs of every form are read alike; what no form may bring in is left out and named."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragwitness.collusion import log_files
from ragwitness.collusion.estimate import estimate
from ragwitness.collusion.log_files import read_log
from ragwitness.core.errors import InputError, MissingExtraError

FORMS = ("jsonl", "parquet")
_GOOD = ([f"u{at % 7}" for at in range(40)], [float(40 - at) for at in range(40)])


def _vectors() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((40, 5))


def _write(path, accounts, times, vectors, name="vector"):
    """One log in the form that the suffix names; ``vectors`` may hold None and unlike lengths."""
    form = path.suffix[1:]
    if form == "jsonl":
        rows = zip(accounts, times, vectors, strict=True)
        keys = ("account", "time", name)
        path.write_text("".join(json.dumps(dict(zip(keys, r, strict=True))) + "\n" for r in rows))
    else:
        texts = name == "text"
        kinds = [
            pa.string(),
            pa.array(times).type,
            pa.string() if texts else pa.list_(pa.float32()),
        ]
        columns = [
            pa.array(column, type=kind)
            for column, kind in zip((accounts, times, vectors), kinds, strict=True)
        ]
        table = pa.table(dict(zip(("account", "time", name), columns, strict=True)))
        pq.write_table(table, path, row_group_size=16)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_log(tmp_path, monkeypatch, form) -> None:
    monkeypatch.setattr(log_files, "_BLOCK", 9)  # no block ends where a file's own parts do
    vectors = _vectors()
    log = read_log(_write(tmp_path / f"log.{form}", *_GOOD, vectors.tolist())).log()
    assert log.times.tolist() == sorted(_GOOD[1])
    assert [log.names[at] for at in log.accounts] == _GOOD[0][::-1]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert log.vectors == pytest.approx(units[::-1], abs=1e-6)
    assert log.names == tuple(f"u{at}" for at in range(7))


@pytest.mark.parametrize("form", FORMS)
def test_nan_and_zero_vectors_and_what_is_unfinished_are_left_out_and_named(tmp_path, form) -> None:
    vectors = _vectors()
    vectors[3, 2], vectors[5], vectors[6, 0] = np.nan, 0, np.inf
    times = [*_GOOD[1]]
    times[8] = float("nan")
    accounts = [*_GOOD[0]]
    accounts[10] = ""
    found = read_log(_write(tmp_path / f"log.{form}", accounts, times, vectors.tolist()))
    where = {place.rsplit(":", 1)[1]: why for place, why in found.skipped}
    assert sorted(where, key=int) == ["4", "6", "7", "9", "11"]
    for number, why in (("4", "finite"), ("6", "zeros"), ("7", "finite"), ("9", "'time'"),
                        ("11", "'account'")):  # fmt: skip
        assert why in where[number]
    assert (found.left_out, len(found.times)) == (5, 35)


@pytest.mark.parametrize("form", FORMS)
def test_mixed_dimensions_keep_the_first_and_name_the_others(tmp_path, form) -> None:
    vectors = _vectors().tolist()
    vectors[0], vectors[1], vectors[7], vectors[9] = [1.0], vectors[1], vectors[7][:3], None
    found = read_log(_write(tmp_path / f"log.{form}", *_GOOD, vectors))
    assert found.vectors is not None
    assert found.vectors.shape == (37, 5)
    said = dict(found.skipped)
    assert "3 values, not 5" in said[f"{tmp_path / 'log'}.{form}:8"]
    assert "no list" in said[f"{tmp_path / 'log'}.{form}:1"]
    # Rows after those left out keep their own vectors.
    assert found.vectors[1] == pytest.approx(
        np.array(vectors[2]) / np.linalg.norm(vectors[2]), abs=1e-6
    )


def test_only_the_first_rows_left_out_are_kept(tmp_path) -> None:
    """The opponent: a log of a million bad rows, which would fill the memory with reasons."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"account": "a", "time": 0, "vector": [1, 2]}\n' + "nonsense\n" * 400)
    found = read_log(path)
    assert (len(found.skipped), found.left_out, len(found.times)) == (5, 400, 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_without_times_is_refused_by_name(tmp_path, form) -> None:
    path = tmp_path / f"log.{form}"
    if form == "jsonl":
        path.write_text('{"account": "a", "vector": [1, 2]}\n')
    else:
        _write(path, ["a"], [0.0], [[1.0, 2.0]])
        table = pa.table({"account": ["a"], "vector": [[1.0, 2.0]]})
        pq.write_table(table, path)
    with pytest.raises(InputError, match="time"):
        read_log(path)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_dates_are_seconds_and_texts_stay_texts(tmp_path, form) -> None:
    dates = ["2026-01-01T00:00:00", "2026-01-01T01:00:00+01:00", "yesterday"]
    path = _write(tmp_path / f"log.{form}", ["a", "b", "c"], dates, ["x", "y", "z"], "text")
    found = read_log(path)
    assert found.times.tolist() == [1767225600.0] * 2
    assert (found.vectors, found.texts, found.left_out) == (None, ("x", "y"), 1)
    assert found.log(np.eye(2)).dim == 2


def test_times_of_the_formats_own_kind_are_seconds(tmp_path) -> None:
    when = np.array(["2026-01-01T00:00:01.5", "NaT"], dtype="datetime64[ns]")
    for zone in (None, "Europe/Rome"):
        table = pa.table(
            {
                "account": pa.array([7, 8]).dictionary_encode(),
                "time": pa.array(when).cast(pa.timestamp("ns", zone)),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2, 3, 4]), 2),
            }
        )
        pq.write_table(table, tmp_path / "log.parquet")
        found = read_log(tmp_path / "log.parquet")
        assert (found.times.tolist(), found.names, found.left_out) == ([1767225601.5], ("7",), 1)


def test_lying_and_torn_files_are_named(tmp_path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1" + b"nothing of the kind" * 9)
    with pytest.raises(InputError, match="cannot be read"):
        read_log(path)
    pq.write_table(pa.table({"account": [1.5], "time": [0], "vector": [[1.0, 2]]}), path)
    with pytest.raises(InputError, match="'account' is missing, or neither"):
        read_log(path)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch) -> None:
    path = _write(tmp_path / "log.parquet", *_GOOD, _vectors().tolist())
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"ragwitness\[data\]"):
        read_log(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_of_one_account_is_read_and_refused_by_name(tmp_path, form) -> None:
    """Nobody to work together with: no estimate, and no p-value of nothing."""
    one = read_log(_write(tmp_path / f"one.{form}", ["ann"] * 40, _GOOD[1], _vectors().tolist()))
    several = read_log(_write(tmp_path / f"log.{form}", *_GOOD, _vectors().tolist())).log()
    assert one.log().names == ("ann",)
    for ordinary in (None, several):
        with pytest.raises(InputError, match="holds one account: nobody to work together with"):
            estimate(one.log(), ordinary=ordinary)
    with pytest.raises(InputError, match="ordinary traffic"):
        estimate(several, ordinary=one.log())


ELASTIC = {
    "@timestamp": "2026-11-30T12:42:37.255Z",
    "elasticsearch.slowlog.id": "application-7",
    "elasticsearch.slowlog.message": "[documents][0]",
    "elasticsearch.slowlog.source": json.dumps(
        {"size": 4, "knn": [{"field": "vector", "query_vector": [0.6, 0.8], "k": 4}]}
    ),
}
POSTGRES = {
    "timestamp": "2026-11-30 12:42:37.255 UTC",
    "user": "ann",
    "error_severity": "LOG",
    "message": "execute <unnamed>: SELECT id FROM documents ORDER BY embedding <=> $1 LIMIT 4",
    "detail": "Parameters: $1 = '[0.6,0.8]'",
}
PROXY = {
    "time": "2026-11-30T12:42:37+00:00",
    "account": "ann",
    "request_body": json.dumps({"query": {"nearest": [3, 4]}, "limit": 4}),
}


@pytest.mark.parametrize(
    ("line", "account"),
    [
        (ELASTIC, "application-7"),
        (ELASTIC | {"user.name": "ann"}, "ann"),
        (POSTGRES, "ann"),
        (POSTGRES | {"message": "statement: SELECT '[6, 8]'::vector <-> v", "detail": ""}, "ann"),
        (PROXY, "ann"),
    ],
)
def test_logs_of_vector_stores_are_read_as_they_are(
    tmp_path: Path, line: dict[str, object], account: str
) -> None:
    path = tmp_path / "store.jsonl"
    path.write_text(json.dumps(line) + "\n")
    rows = read_log(path)
    assert rows.names == (account,)
    assert rows.vectors is not None
    assert rows.vectors[0].tolist() == pytest.approx([0.6, 0.8])
    assert int(rows.times[0]) == 1796042557


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (ELASTIC | {"elasticsearch.slowlog.message": "[documents][1]"}, "another shard"),
        (ELASTIC | {"elasticsearch.slowlog.source": '{"query":{"match_all":{}}}'}, "no vector"),
        (ELASTIC | {"elasticsearch.slowlog.source": "[" * 9999}, "no vector"),
        (POSTGRES | {"detail": ""}, "no vector"),
        (POSTGRES | {"timestamp": "2026-11-30 12:42:37 CET"}, "no date"),
        (PROXY | {"account": ""}, "'account' is missing"),
        (PROXY | {"request_body": '{"limit": 4}'}, "no vector"),
    ],
)
def test_lines_without_a_query_are_left_out_by_name(
    tmp_path: Path, line: dict[str, object], why: str
) -> None:
    path = tmp_path / "store.jsonl"
    path.write_text(json.dumps(PROXY) + "\n" + json.dumps(line) + "\n")
    rows = read_log(path)
    assert len(rows.times) == rows.left_out == 1
    assert why in rows.skipped[0][1]
