"""Ragwitness: audits of retrieval-augmented generation, every verdict with its error rate.

Everything public is here, loaded on first use. The four questions take a line each::

    import ragwitness as rw

    result = rw.audit("http://127.0.0.1:8000/v1", "mine.jsonl", known_out="outside.jsonl")
    leaks = rw.leak("http://127.0.0.1:8000/v1", "corpus.jsonl", prompts=50)
    bounds = rw.bounds(epsilon=1.0, delta=1e-6, queries=1000, accounts=16)
    found = rw.probe_canaries("http://127.0.0.1:8000/v1", "canaries", release="spring")
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any


def _public_names() -> dict[str, str]:
    """Return the module of each public name, as the stub beside this file lists them."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: str(line.module)
        for line in stub.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


_HOMES = _public_names()
__all__ = sorted(_HOMES)  # the stub is the list


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562): ``import ragwitness`` loads nothing heavy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ragwitness.core.types import Shown

    Shown.renderer = _html
    globals()[name] = value = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def _html(value: object) -> str:
    """Return a value as a notebook shows it."""
    from ragwitness.api import notebook_html

    return notebook_html(value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
