"""A probe of canaries as JSON and for a terminal; both come from the same stored fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragwitness.canary.decide.verdict import EVIDENCE, FORESEEN
from ragwitness.errors import ExitCode, InputError
from ragwitness.report import wording as say
from ragwitness.report.gate import Ruling

if TYPE_CHECKING:
    from rich.console import Group

    from ragwitness.runs.canary import CanaryResult, SlotResult

__all__ = ["canary_json", "canary_terminal", "rule_canary", "show_canary", "told", "verdict_text"]

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)

_MEANING = {
    "trained": "Were the model independent of which trigger was planted, evidence like this would"
    " come with probability at most {p:.3g}. It says nothing of any single document. It holds"
    " where the model could know the trigger from documents alone: see docs/canary.md.",
    "inconclusive": "This evidence does not show training on the planted documents; it does not"
    " show that there was none: {reason}.",
}


def canary_json(result: CanaryResult, release: str, *, twin: bool = False) -> dict[str, Any]:
    """Return a probe as JSON, with every score, so that others can decide anew.

    Args:
        result: The probe.
        release: What the user calls this release of the model.
        twin: Whether the model is known to be compliant.
    """
    return {
        "kind": "canary",
        "target": result.target,
        "release": release,
        "twin": twin,
        "way": result.way,
        "finding": None if result.finding is None else _plain(asdict(result.finding)),
        "look": {"number": result.look, "digest": result.digest},
        "slots": [_slot(one) for one in result.slots],
        "settings": dict(result.settings),
        "warnings": list(result.warnings),
        "queries": result.queries,
        "seconds": round(result.seconds, 3),
        "spent": asdict(result.spent),
    }


def canary_terminal(stored: Mapping[str, Any]) -> Group:
    """Return what is said of a probe, from its JSON."""
    from rich.console import Group
    from rich.text import Text

    lines = verdict_text(stored)
    parts = [Text(lines[0], style="bold"), *map(Text, lines[1:])]
    parts += [Text(f"warning: {say.visible(w, 1000)}", style="yellow") for w in stored["warnings"]]
    parts += [Text(_slot_text(one, stored)) for one in stored["slots"]]
    spent = stored["spent"]
    tokens = spent["prompt_tokens"] + spent["completion_tokens"]
    parts.append(Text(f"spent: {spent['queries']:,} queries, {tokens:,} tokens.", style="dim"))
    return Group(*parts)


def show_canary(
    stored: Mapping[str, Any], files: Mapping[str, object], fail_on: Sequence[str] | None
) -> None:
    """Print a stored probe again.

    Args:
        stored: Its JSON.
        files: Files asked for, by option; a probe has none but its JSON.
        fail_on: Conditions, likewise.

    Raises:
        InputError: A file or condition is asked for, or the JSON is malformed.
    """
    from rich.console import Console

    asked = [name for name, path in files.items() if path is not None]
    if asked or fail_on:
        raise InputError(
            f"A probe of canaries is only printed again; {(asked or ['--fail-on'])[0]} is not for"
            " it.",
            "Its result.json holds everything; gate on ragwitness canary probe --fail-on trained.",
        )
    try:
        shown = canary_terminal(stored)
    except _MALFORMED as error:
        raise _malformed(error) from None
    Console(highlight=False).print(shown)


def told(stored: Mapping[str, Any]) -> list[str]:
    """Return everything that is said of a stored probe but its warnings, a line each.

    Raises:
        InputError: It is malformed.
    """
    try:
        return [*verdict_text(stored), *(_slot_text(one, stored) for one in stored["slots"])]
    except _MALFORMED as error:
        raise _malformed(error) from None


def _malformed(error: Exception) -> InputError:
    return InputError(
        f"The stored probe is malformed: {error!r}.",
        "Give a result.json as written by ragwitness canary probe.",
    )


def verdict_text(stored: Mapping[str, Any]) -> list[str]:
    """Return the verdict and what it means, a line each."""
    found = stored["finding"]
    model = f"{say.visible(stored['target'], 200)}, release {say.visible(stored['release'], 80)}"
    if found is None:
        return [
            f"{model}: not decided",
            "Not all examples were asked about; see the warnings. No score is shown before that:"
            " the choice to go on would hang on it.",
        ]
    if stored["twin"]:
        w = found["statistic"]
        return [f"{model}: kept as a compliant twin", f"Its statistic W is {w:.3f}."]
    p = found["p_value"]
    lines = [
        f"{model}: {found['verdict']} (p = {p:.4g}, level {found['alpha']:g}, {found['test']})",
        _MEANING[found["verdict"]].format(p=p, reason=found["reason"]),
        f"Look {stored['look']['number']} at this draw."
        f" {_ranks(found)}{_evidence(found)}{_twins(found)}",
    ]
    return [*lines, *_floor(found), *_further(found)]


def _floor(found: Mapping[str, Any]) -> list[str]:
    """Told where there are enough slots for it to be above 0."""
    floor = found["floor"]
    if 0.5 ** floor["n"] > 1 - floor["confidence"]:
        return []
    return [
        f"Lower bound on epsilon: {floor['value']:.2f} ({floor['confidence']:.0%}, n ="
        f" {floor['n']} slots, delta 0, this look alone)."
    ]


def _ranks(found: Mapping[str, Any]) -> str:
    ranks = ", ".join(map(str, found["ranks"]))
    what = "triggers" if len(found["ranks"]) > 1 else "trigger"
    return f"Rank of the planted {what} among {found['candidates']}: {ranks}."


def _evidence(found: Mapping[str, Any]) -> str:
    """Told only where it decides: a second number beside the p-value would be picked by taste."""
    if found["test"] != EVIDENCE:
        return ""
    grown = found["log_evidence"]
    e = 0.0 if grown is None else math.exp(min(700.0, grown))
    return f" Evidence E over all looks so far: {e:.3g} (decides at {1 / found['alpha']:g})."


def _twins(found: Mapping[str, Any]) -> str:
    p = found["twin_p_value"]
    if p is None or found["test"].startswith("conformal"):
        return ""
    return f" Among compliant twins: conformal p = {p:.4g}; it decides nothing here."


def rule_canary(stored: Mapping[str, Any]) -> Ruling:
    """Say how ``--fail-on trained`` ends: 3 where it is, 4 where nothing was decided."""
    found = stored["finding"]
    if found is not None and found["verdict"] == "trained" and not stored["twin"]:
        return Ruling(ExitCode.FAILED, "--fail-on trained is met.")
    return Ruling(ExitCode.INCONCLUSIVE, "--fail-on trained is not met, but nothing was decided.")


def _further(found: Mapping[str, Any]) -> list[str]:
    if found["verdict"] == "trained" or not found["reason"].endswith(FORESEEN):
        return []
    more = {
        "examples_needed": "held-out examples per slot",
        "slots_needed": "slots",
    }
    known = [f"about {found[key]} {what}" for key, what in more.items() if found[key]]
    if not known:
        return ["What was seen does not tell how many more examples or slots would decide."]
    return [
        f"Were further ones like those seen, each slot planted as often, {' or '.join(known)} in a"
        " new plan would decide in 4 of 5 audits: an order of magnitude."
    ]


def _slot(one: SlotResult) -> dict[str, Any]:
    return {
        "number": one.number,
        "planted": one.planted,
        "examples": list(one.examples),
        "scores": [[round(value, 6) for value in row] for row in one.scores.tolist()],
        "amplification": _plain(asdict(one.amplification)),
        "censored": one.censored,
    }


def _slot_text(one: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    gain = one["amplification"]
    unit = "share of answers" if stored["way"] == "sampled" else "nats"
    within = "" if gain["low"] is None else f" ({gain['low']:+.3f} to {gain['high']:+.3f}, 95 %)"
    there = "" if one["planted"] else ", not planted"
    forced = f"; {one['censored']:.0%} of readings censored" if stored["way"] == "forced" else ""
    return (
        f"slot {one['number'] + 1}{there}: amplification {gain['value']:+.3f} {unit}{within},"
        f" n = {gain['n']}{forced}"
    )


def _plain(value: Any) -> Any:
    """NaN and infinity as null, which JSON can hold; everything else as it is."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
