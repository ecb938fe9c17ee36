"""A synthesis from Python: texts in a file, what became of each record as the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ragwitness as rw
from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.synthesis.task import SynthesizeTask

_RECORDS = [f"Record {n} of the ward. Write to nurse{n}@example.org." for n in range(5)]


def test_texts_are_written_and_fates_returned(tmp_path: Path) -> None:
    out = tmp_path / "safe.jsonl"
    report = rw.synthesize(_RECORDS, method="redact", contacts=True, pii="contacts", out=out)
    assert report.counts == {"passed": 5}
    assert report.out == str(out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["text"] for row in rows] == [
        f"Record {n} of the ward. Write to <EMAIL>." for n in range(5)
    ]


def test_no_file_is_written_where_no_text_passes(tmp_path: Path) -> None:
    safe = tmp_path / "safe.jsonl"
    records = [Document(f"a{n}@ward.example", text) for n, text in enumerate(_RECORDS)]
    report = rw.synthesize(records, method="redact", pii="contacts", out=safe)
    assert report.counts == {"withheld": 5}
    assert report.out is None
    assert not safe.exists()


def test_texts_need_a_place() -> None:
    with pytest.raises(InputError, match="have no place"):
        rw.synthesize(_RECORDS, method="redact")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "redact", "epsilon": 1.0}, "redact is not differentially private"),
        ({"method": "sage", "texts": 9}, "--texts is for a private method"),
        ({"method": "private-evolution", "rouge": 0.3}, "--rouge compares texts with the records"),
        ({"method": "redact", "public": "x"}, "redact copies what its records hold"),
        ({"method": "sagee"}, "There is no method"),
        ({"method": "sage", "seed": "1"}, "seed cannot be '1'"),
    ],
)
def test_what_a_method_would_not_read_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        SynthesizeTask(_RECORDS, **given).order()
