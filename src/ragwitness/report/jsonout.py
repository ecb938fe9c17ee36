"""The result as strict JSON, one value or one line per document, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError
from ragwitness.report.writing import write_text
from ragwitness.runs.result import AuditResult
from ragwitness.types import Decision, Evidence, Verdict

__all__ = ["document_json", "from_json", "to_json", "write_json", "write_jsonl"]

# names of the public JSON, where they differ from those of the dataclasses
_NAMES = {"verdicts": "documents", "decision": "verdict", "document": "id"}
_RATES = ("auc", "accuracy", "f1", "tpr_at_1_fpr", "false_positives", "true_positives")
_STRICT: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
_NOT_FINITE = "the score is not a finite number"


def to_json(result: AuditResult) -> dict[str, Any]:
    """Return ``{"documents": [...], "summary": {...}}`` without NaN or Infinity (null instead)."""
    calibration = asdict(result.calibration)
    calibration["scores"] = [x for x in result.calibration.scores if math.isfinite(x)]
    summary = {
        "counts": {
            **{decision.value: result.count(decision) for decision in Decision},
            "documents": len(result.verdicts),
            "unscorable": result.unscorable,
        },
        "alpha": result.alpha,
        "method": result.method,
        "target": result.target,
        "started": result.started,
        "seconds": _finite(result.seconds),
        "queries": result.queries,
        "spent": asdict(result.spent) if result.spent else None,
        "calibration": calibration,
        "evaluation": _evaluation(result),
        "settings": dict(result.settings),
        "warnings": list(result.warnings),
        "version": result.ragwitness,
    }
    return {"documents": [document_json(v) for v in result.verdicts], "summary": summary}


def write_json(result: AuditResult, path: Path) -> None:
    """Write :func:`to_json` to ``path``.

    Raises:
        InputError: The file cannot be written.
    """
    write_text(path, json.dumps(to_json(result), indent=1, **_STRICT) + "\n")


def write_jsonl(result: AuditResult, path: Path) -> None:
    """Write one line per document to ``path``, in the order given: :func:`document_json`.

    Raises:
        InputError: The file cannot be written.
    """
    lines = (json.dumps(document_json(verdict), **_STRICT) for verdict in result.verdicts)
    write_text(path, "".join(f"{line}\n" for line in lines))


def document_json(verdict: Verdict) -> dict[str, Any]:
    """Return what is said of one document, with None for a number that there is not."""
    score = _finite(verdict.score)
    lost = verdict.score is not None and score is None
    return {
        "id": verdict.document,
        "verdict": verdict.decision.value,
        "p_value": _finite(verdict.p_value),
        "score": score,
        "queries": verdict.queries,
        "q_value": _finite(verdict.q_value),
        "p_out": _finite(verdict.p_out),
        "classifier": _finite(verdict.classifier),
        "reason": verdict.reason or (_NOT_FINITE if lost else None),
        "member": verdict.member,
        "evidence": [_evidence(word) for word in verdict.evidence if _measured(word)],
    }


def _evidence(word: Evidence) -> dict[str, Any]:
    return {
        "word": word.word,
        "before": word.before,
        "probability": {"low": word.probability.low, "high": word.probability.high},
        "baseline": word.baseline,
    }


def _measured(word: Evidence) -> bool:
    """Whether a word's numbers are numbers; without them it is no evidence."""
    numbers = (word.probability.low, word.probability.high, word.baseline)
    return all(math.isfinite(number) for number in numbers)


def _evaluation(result: AuditResult) -> dict[str, Any] | None:
    if result.evaluation is None:
        return None
    data = asdict(result.evaluation)
    for name in _RATES:
        data[name] = {key: _finite(value) for key, value in data[name].items()}
    return {**data, "roc": [list(corner) for corner in result.evaluation.roc]}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def from_json(data: Mapping[str, Any]) -> AuditResult:
    """Return the result that :func:`to_json` was given.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        json.dumps(data, allow_nan=False)
        text = json.dumps(_reshaped(data))
        return TypeAdapter(AuditResult).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise _malformed(_place(first["loc"]), first["msg"]) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise _malformed("some value", f"not JSON ({error})") from error


def _malformed(where: str, why: str) -> InputError:
    return InputError(
        f"The stored result is malformed at {where}: {why}.",
        "Give a result.json as written by `ragwitness audit`.",
    )


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(_NAMES.get(str(part), str(part)) for part in loc)


def _reshaped(data: Mapping[str, Any]) -> dict[str, Any]:
    summary = _object(data, "summary")
    if summary.get("evaluation") is not None:
        evaluation = _object(summary, "evaluation")
        # an undefined rate is null in JSON and NaN in memory
        rates = {
            name: {k: math.nan if v is None else v for k, v in _object(evaluation, name).items()}
            for name in _RATES
        }
        summary["evaluation"] = {**evaluation, **rates}
    if "version" not in summary:
        raise _malformed("version", "missing")
    summary["ragwitness"] = summary.pop("version")
    documents = data.get("documents")
    if not isinstance(documents, list):
        raise _malformed("documents", "missing, or not a list")
    summary["verdicts"] = [_verdict(document) for document in documents]
    return summary


def _object(parent: object, name: str) -> dict[str, Any]:
    value = parent.get(name) if isinstance(parent, Mapping) else None
    if not isinstance(value, Mapping):
        raise _malformed(name, "missing, or not an object")
    return dict(value)


def _verdict(document: object) -> object:
    if not isinstance(document, Mapping):
        return document  # refused by its type, with its place
    names = {public: private for private, public in _NAMES.items()}
    return {names.get(key, key): value for key, value in document.items()}
