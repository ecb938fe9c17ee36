"""How well audits told members apart in an evaluation, read from its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError
from ragwitness.stats.power import MeasuredRoc

__all__ = ["measured_rocs"]

_HINT = "Give what 'ragwitness evaluate' wrote with --json, or the result.json of its run."


def measured_rocs(path: Path) -> dict[str, MeasuredRoc]:
    """Return the ROC of every audit in the JSON of an evaluation, by the audit's name.

    Raises:
        InputError: There is no such file, or it is no evaluation.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.", _HINT) from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.", _HINT) from error
    audits = data.get("audits") if isinstance(data, dict) else None
    if not isinstance(audits, dict):
        raise InputError(f"{path} is no evaluation: it has no 'audits'.", _HINT)
    return {name: _roc(name, entry, path) for name, entry in audits.items()}


def _roc(name: str, entry: Mapping[str, Any], path: Path) -> MeasuredRoc:
    try:
        corners = tuple((float(false), float(true)) for false, true in entry["roc"])
        # Every level's rate is a share of the same scored documents outside.
        outside = next(iter(entry["false_positives"].values()))["n"]
        return MeasuredRoc(corners, int(outside))
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration, InputError) as error:
        raise InputError(f"{path}: the ROC of {name!r} is malformed ({error}).", _HINT) from error
