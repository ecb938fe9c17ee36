"""Reports of an audit, all rendered from one :class:`~ragwitness.runs.result.AuditResult`."""

from __future__ import annotations

from ragwitness.report.html import write_html
from ragwitness.report.jsonout import from_json, to_json
from ragwitness.report.terminal import render_terminal

__all__ = ["from_json", "render_terminal", "to_json", "write_html"]
