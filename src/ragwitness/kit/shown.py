"""Values that show themselves in a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Shown:
    """A value that a notebook shows as HTML; how, says :mod:`ragwitness.report.notebook`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Named and never imported from here: results know no renderer, and no other way leads up.
        renderer: Any = import_module("ragwitness.report.notebook")
        return str(renderer.shown(self))
