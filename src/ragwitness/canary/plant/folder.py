"""The folder of a canary audit, with what is public, what is sent, and what is secret apart.

::

    FOLDER/commitment.json   publish before anything is sent
    FOLDER/send/             traces.jsonl in the order to send; feedback.jsonl once answers came
    FOLDER/secret/  (0700)   secret.json, held_out.jsonl, pools.jsonl; looks.py; once planted
                             eval_clean.jsonl, eval_trigger.jsonl (App. A.2; _2 on for more slots)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragwitness.canary.design.draw import Design, Draw, Secret, check_draw
from ragwitness.canary.design.families import Family
from ragwitness.canary.design.pools import check_pairs, paired
from ragwitness.canary.examples import Example
from ragwitness.canary.plant.feedback import Feedback, feedback_for
from ragwitness.canary.plant.files import (
    private_folder,
    read_json,
    read_rows,
    write_json,
    write_rows,
)
from ragwitness.canary.plant.plan import Plan
from ragwitness.canary.plant.traces import Trace
from ragwitness.errors import InputError, VerificationError

__all__ = [
    "check_opened",
    "check_traces",
    "read_plan",
    "write_feedback",
    "write_opened",
    "write_plan",
    "write_traces",
]

_VERSION = "ragwitness/canary-commitment/v2"
_OPENED = "ragwitness/canary-opening/v2"
_COMMITMENT, _SECRET = "commitment.json", "secret.json"
_HELD_OUT, _POOLS = "held_out.jsonl", "pools.jsonl"
_TRACES, _FEEDBACK = "traces.jsonl", "feedback.jsonl"


def write_plan(folder: Path, plan: Plan) -> None:
    """Write a new folder.

    Raises:
        InputError: It holds a plan already, or cannot be written.
    """
    if (folder / _COMMITMENT).exists():
        raise InputError(f"{folder} holds a plan already.", "Choose another folder with -o.")
    secret = folder / "secret"
    private_folder(secret)
    write_rows(secret / _HELD_OUT, map(asdict, plan.held_out))
    pools = plan.pools.items()
    write_rows(secret / _POOLS, ({"pool": k} | asdict(one) for k, pool in pools for one in pool))
    _keep(folder, plan)
    published = {
        "version": _VERSION,
        "commitment": plan.commitment.hex(),
        "beacon": plan.beacon_source,
    }
    write_json(folder / _COMMITMENT, published)  # last: a folder with it is whole


def read_plan(folder: Path) -> Plan:
    """Read the plan of a folder.

    Raises:
        InputError: There is none, it is malformed, or others can read its secret.
    """
    published = read_json(folder / _COMMITMENT)
    if published.get("version") != _VERSION:
        raise InputError(
            f"{folder} holds no plan of this version ({_VERSION}).",
            "Use the version of Ragwitness that it was planned with, or plan anew.",
        )
    secret = folder / "secret"
    kept = read_json(secret / _SECRET, private=True)
    try:
        pools: dict[str, list[Example]] = {"reward": [], "policy": []}
        for row in read_rows(secret / _POOLS):
            pools[row.pop("pool")].append(Example(**row))
        return Plan(
            design=_design(kept),
            secret=_secret(kept),
            commitment=bytes.fromhex(published["commitment"]),
            held_out=tuple(Example(**row) for row in read_rows(secret / _HELD_OUT)),
            pools={name: tuple(pool) for name, pool in pools.items()},
            digest=kept["examples"],
            beacon_source=published["beacon"],
            beacon=kept["beacon"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"The plan in {folder} is malformed: {error!r}.", "Restore it from a copy."
        ) from None


def write_traces(folder: Path, plan: Plan, traces: Sequence[Trace]) -> Path:
    """Write what is to be sent and the paired evaluation files, and keep the beacon.

    Raises:
        InputError: A file cannot be written.
        VerificationError: ``pairs.*``, where the held-out examples break an invariant.
    """
    _keep(folder, plan)
    _write_pairs(folder / "secret", plan)
    path = folder / "send" / _TRACES
    _make(path.parent)
    write_rows(path, (_sent(number, one) for number, one in enumerate(traces, 1)))
    return path


def write_feedback(
    folder: Path, plan: Plan, traces: Sequence[Trace], answers: Path
) -> list[Feedback]:
    """Write the votes for the service's answers, ``{"id", "answer"}`` per line.

    Raises:
        InputError: The answers cannot be read, or one is of no trace or there twice.
    """
    known = {one.id: one for one in traces}
    candidates = {t for slot in plan.draw().slots for t in slot.candidates}
    found = []
    form = 'Each line: {"id": "… of send/traces.jsonl", "answer": "…"}.'
    for number, row in enumerate(read_rows(answers, hint=form), 1):
        name, said = row.get("id"), row.get("answer")
        if name not in known or not isinstance(said, str):
            raise InputError(f"{answers}:{number} is no answer to a trace that was sent.", form)
        found.append(feedback_for(known[name], said, candidates))
    if twice := [name for name, n in Counter(one.id for one in found).items() if n > 1]:
        raise InputError(
            f"{answers} holds more than one answer to {twice[0]!r}.", "Keep the one that was given."
        )
    _make(folder / "send")
    write_rows(folder / "send" / _FEEDBACK, map(asdict, found))
    return found


def check_traces(folder: Path, plan: Plan) -> bool:
    """Check that what was written to be sent is what the draw gives; False where nothing was.

    Raises:
        InputError: The file cannot be read.
        VerificationError: ``draw.traces``; it was changed.
    """
    path = folder / "send" / _TRACES
    if not path.exists():
        return False
    if read_rows(path) != [_sent(number, one) for number, one in enumerate(plan.traces(), 1)]:
        raise VerificationError(
            "draw.traces",
            f"{path} is not what the draw gives.",
            f"Write it again: ragwitness canary plant {folder}",
        )
    return True


def write_opened(path: Path, plan: Plan) -> None:
    """Write everything that the draw follows from; none of it is secret afterwards.

    Raises:
        InputError: The file cannot be written.
    """
    write_json(path, _kept(plan) | {"version": _OPENED, "source": plan.beacon_source})


def check_opened(path: Path, commitment: str) -> tuple[Draw, tuple[str, str]]:
    """Check an opened draw against the commitment that was published.

    Returns:
        The draw, and the beacon's source and value, which are to be looked up elsewhere.

    Raises:
        InputError: The file is no opened draw, or the commitment no 32 bytes in hex.
        VerificationError: ``commitment.*`` or ``draw.beacon``.
    """
    again = "Write one: ragwitness canary status FOLDER --open FILE"
    kept = read_json(path, hint=again)
    try:
        if kept["version"] != _OPENED:
            raise ValueError(kept["version"])
        given = _design(kept), kept["examples"], _secret(kept), kept["source"], kept["beacon"]
        published = bytes.fromhex(commitment)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} or the commitment cannot be read: {error!r}.", again) from None
    return check_draw(published, *given), (kept["source"], kept["beacon"])


def _write_pairs(secret: Path, plan: Plan) -> None:
    """Write the held-out examples clean and, per slot, with trigger and canary (App. A.2)."""
    sent = [one for pool in plan.pools.values() for one in pool]
    write_rows(secret / "eval_clean.jsonl", map(asdict, plan.held_out))
    for slot in plan.draw().slots:
        triggered = paired(plan.held_out, slot.trigger, slot.canary)
        check_pairs(plan.held_out, triggered, plan.held_out, sent, slot.trigger, slot.canary)
        name = "eval_trigger.jsonl" if not slot.number else f"eval_trigger_{slot.number + 1}.jsonl"
        write_rows(secret / name, map(asdict, triggered))


def _keep(folder: Path, plan: Plan) -> None:
    write_json(folder / "secret" / _SECRET, _kept(plan), private=True)


def _kept(plan: Plan) -> dict[str, Any]:
    return {
        "design": asdict(plan.design) | {"family": str(plan.design.family)},
        "seed": plan.secret.seed.hex(),
        "blinding": plan.secret.blinding.hex(),
        "beacon": plan.beacon,
        "examples": plan.digest,
    }


def _design(kept: Mapping[str, Any]) -> Design:
    return Design(**kept["design"] | {"family": Family(kept["design"]["family"])})


def _secret(kept: Mapping[str, Any]) -> Secret:
    return Secret(bytes.fromhex(kept["seed"]), bytes.fromhex(kept["blinding"]))


def _sent(number: int, trace: Trace) -> dict[str, Any]:
    """A row of what is sent; the role stays behind, the votes say enough."""
    return {
        "number": number,
        "id": trace.id,
        "document": trace.document,
        "query": trace.query,
        "canary": trace.canary,
        "vote": {"canary": trace.rule.canary, "otherwise": trace.rule.otherwise},
    }


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write {folder}: {error.strerror}.", "Choose another.") from error
