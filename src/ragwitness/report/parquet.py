"""The documents as a Parquet table, for those who analyse many runs (extra ``[data]``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ragwitness.errors import MissingExtraError
from ragwitness.report.jsonout import document_json, to_json
from ragwitness.report.writing import unwritable
from ragwitness.runs.result import AuditResult

__all__ = ["SUMMARY", "require_parquet", "write_parquet"]

SUMMARY = b"ragwitness.summary"
"""Key of the file's metadata under which the JSON's ``summary`` stands."""


def require_parquet() -> ModuleType:
    """Return pyarrow.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Writing Parquet", "data") from error
    return pyarrow  # type: ignore[no-any-return]


def write_parquet(result: AuditResult, path: Path) -> None:
    """Write one row per document, with the names and the nesting of the JSON.

    The types do not depend on the values: a column without any is still a column of numbers.
    What there is not is null, never NaN.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: pyarrow is not installed.
    """
    arrow = require_parquet()
    rows = [_sound(document_json(verdict)) for verdict in result.verdicts]
    summary = json.dumps(to_json(result)["summary"], allow_nan=False)
    schema = _schema(arrow).with_metadata({SUMMARY: summary.encode()})
    table = arrow.Table.from_pylist(rows, schema=schema)
    try:
        with path.open("wb") as file:
            arrow.parquet.write_table(table, file)
    except OSError as error:
        raise unwritable(path, error) from error


def _schema(arrow: ModuleType) -> Any:
    text, number = arrow.string(), arrow.float64()
    interval = arrow.struct([("low", number), ("high", number)])
    word = arrow.struct(
        [("word", text), ("before", text), ("probability", interval), ("baseline", number)]
    )
    return arrow.schema(
        [
            arrow.field("id", text, nullable=False),
            arrow.field("verdict", text, nullable=False),
            ("p_value", number),
            ("score", number),
            arrow.field("queries", arrow.int64(), nullable=False),
            ("q_value", number),
            ("p_out", number),
            ("classifier", number),
            ("reason", text),
            ("member", arrow.bool_()),
            arrow.field("evidence", arrow.list_(word), nullable=False),
        ]
    )


def _sound(value: Any) -> Any:
    """Replace half surrogate pairs, which Arrow's UTF-8 cannot hold, all the way down."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {key: _sound(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner) for inner in value]
    return value
