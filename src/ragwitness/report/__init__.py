"""Reports of an audit, all rendered from one :class:`~ragwitness.runs.result.AuditResult`."""

from __future__ import annotations

from ragwitness.report.html import write_html
from ragwitness.report.jsonout import from_json, to_json, write_json, write_jsonl
from ragwitness.report.junit import write_junit
from ragwitness.report.parquet import write_parquet
from ragwitness.report.terminal import render_terminal

__all__ = [
    "from_json",
    "render_terminal",
    "to_json",
    "write_html",
    "write_json",
    "write_jsonl",
    "write_junit",
    "write_parquet",
]
