"""An evaluation read back from its JSON, so that its page can be drawn again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ragwitness.errors import InputError
from ragwitness.runs.battery import Battery

__all__ = ["battery_from_json"]


def battery_from_json(data: Mapping[str, Any]) -> Battery:
    """Return the evaluation that :func:`ragwitness.report.battery.battery_json` was given.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Battery).validate_python(
            {
                **data,
                "audits": tuple(_audit(one) for one in data["audits"].values()),
                "controls": {name: _area(one) for name, one in data["controls"].items()},
                "paired": {(one["first"], one["second"]): _paired(one) for one in data["paired"]},
                "likeness": _number(data["near_duplicate_likeness"]),
                "benign": _benign(data.get("benign")),
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise _malformed(".".join(map(str, first["loc"])), first["msg"]) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed("some value", f"{type(error).__name__}: {error}") from error


def _audit(one: Mapping[str, Any]) -> dict[str, Any]:
    """An undefined number is null in JSON and NaN in memory, save where None has a meaning."""
    rates = {key: _rate(value) for key, value in one.items() if _is_rate(value)}
    by_level = {
        kind: {level: _rate(rate) for level, rate in one[kind].items()}
        for kind in ("false_positives", "true_positives")
    }
    numbers = {key: _number(one[key]) for key in ("threshold", "tpr_at_01_fpr")}
    tables = {
        kind: {name: _number(value) for name, value in one[kind].items()}
        for kind in ("outcomes", "scores")
    }
    return {**one, **rates, **by_level, **numbers, **tables, "auc": _area(one)}


def _area(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = one["auc_interval"]
    return _rate({"value": one["auc"], "low": low, "high": high, "n": one["n"]})


def _paired(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = one["interval"]
    return _rate({"value": one["auc_difference"], "low": low, "high": high, "n": one["n"]})


def _benign(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    recall, quality, refused = (stored[key] for key in ("recall", "answer_quality", "refused"))
    answers = refused and {
        "agreement": stored["agreement"],
        "quality_before": quality and quality["undefended"],
        "quality": quality and quality["defended"],
        "quality_lost": quality and quality["lost"],
        "refused_before": refused["undefended"],
        "refused": refused["defended"],
    }
    return {
        "defense": stored["defense"],
        "k": stored["k"],
        "retrieval": {
            "recall_before": recall["undefended"],
            "recall": recall["defended"],
            "recall_lost": recall["lost"],
            "changed": stored["other_passages"],
        },
        "answers": answers,
        "failed_before": stored["unanswered"]["undefended"],
        "failed": stored["unanswered"]["defended"],
    }


def _is_rate(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {"value", "low", "high", "n"}


def _rate(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _number(value[key]) for key in ("value", "low", "high")} | {"n": value["n"]}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _malformed(where: str, why: str) -> InputError:
    return InputError(
        f"The stored evaluation is malformed at {where}: {why}.",
        "Give a result.json as written by `ragwitness evaluate`.",
    )
