"""Runs: the only place that spends queries."""

from __future__ import annotations

# Lazy, because a stored result can be shown without the audit's machinery.
