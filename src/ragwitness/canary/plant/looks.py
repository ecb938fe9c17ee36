"""What was seen of a draw: every look at it counts, in its order, and none is taken back.

A p-value is for one look. Whoever probes a second model, or the first one in another way, looks
again at the same draw; so a look is known by its scores, and takes its own place alone again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragwitness.canary.plant.files import read_rows, write_json, write_rows
from ragwitness.errors import InputError

__all__ = ["append_probe", "mark_opened", "read_probes", "read_votes", "was_opened"]

_PROBES, _OPENED = "probes.jsonl", "opened.json"


def read_probes(folder: Path) -> list[dict[str, Any]]:
    """Return what earlier probes found, in their order; none is no error.

    Raises:
        InputError: The file cannot be read, or was changed.
    """
    path = folder / "secret" / _PROBES
    rows = read_rows(path) if path.exists() else []
    if not all(map(_is_look, rows)):
        raise InputError(f"{path} holds a line that is no probe.", "Restore it from a copy.")
    return rows


def append_probe(folder: Path, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Keep what a probe found; the same look again takes its own place.

    Args:
        folder: Of the plan.
        row: With its ``look``, a digest of the scores, and whether the model is a ``twin``.

    Raises:
        InputError: The file cannot be read or written, or the same answers were kept as those of a
            twin, or of none.
    """
    rows = read_probes(folder)
    place = next((n for n, one in enumerate(rows) if one["look"] == row["look"]), len(rows))
    if place < len(rows) and rows[place]["twin"] != row["twin"]:
        was = "of a compliant twin" if rows[place]["twin"] else "of no twin"
        raise InputError(
            f"The same answers were kept as those {was}.",
            "What a model is cannot be changed after its answers were seen.",
        )
    rows[place : place + 1] = [dict(row)]
    write_rows(folder / "secret" / _PROBES, rows)
    return rows


def _is_look(row: Mapping[str, Any]) -> bool:
    texts, numbers = ("release", "target", "look", "verdict"), ("statistic", "p_value")
    ranks, most = row.get("ranks"), row.get("candidates")
    return (
        all(isinstance(row.get(name), str) for name in texts)
        and all(isinstance(row.get(name), int | float) for name in numbers)
        and isinstance(row.get("twin"), bool)
        and isinstance(most, int)
        and isinstance(ranks, list)
        and bool(ranks)
        and all(isinstance(rank, int) and 1 <= rank <= most for rank in ranks)
    )


def read_votes(folder: Path) -> list[dict[str, Any]]:
    """Return the votes that were written for answers; none is no error.

    Raises:
        InputError: The file cannot be read.
    """
    path = folder / "send" / "feedback.jsonl"
    return read_rows(path) if path.exists() else []


def mark_opened(folder: Path, file: Path) -> None:
    """Keep that the draw is no secret any more.

    Args:
        folder: Of the plan.
        file: Where it was opened to.

    Raises:
        InputError: Nothing was probed yet, or it cannot be written.
    """
    if not any(not one["twin"] for one in read_probes(folder)):
        raise InputError(
            "Nothing has been probed yet, and once a draw is open no later probe decides.",
            f"First: ragwitness canary probe TARGET --plan {folder}",
        )
    write_json(folder / "secret" / _OPENED, {"opened": str(file)}, private=True)


def was_opened(folder: Path) -> bool:
    """Whether the draw was opened."""
    return (folder / "secret" / _OPENED).exists()
