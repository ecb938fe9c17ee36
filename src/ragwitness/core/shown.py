"""Values that show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Shown:
    """A value that a notebook shows as HTML.

    Attributes:
        renderer: Makes the HTML. It is given by :mod:`ragwitness`, which stands above the pages;
            without it a value is shown as text.
    """

    __slots__ = ()
    renderer: ClassVar[Callable[[object], str] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Shown.renderer is None else Shown.renderer(self)
