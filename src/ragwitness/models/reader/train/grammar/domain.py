"""What one grammar is: sentence patterns in two halves, and the words that open each half."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Domain"]


@dataclass(frozen=True)
class Domain:
    """Patterns with ``{slot}`` places; ``first`` sentences come before ``second`` ones."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    openings: tuple[str, ...] = ("",)
    middles: tuple[str, ...] = ("",)
