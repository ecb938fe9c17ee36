"""The folder of a canary audit, with what is public, what is sent, and what is secret apart.

::

    FOLDER/commitment.json   publish before anything is sent
    FOLDER/send/             traces.jsonl in the order to send; feedback.jsonl once answers came
    FOLDER/secret/  (0700)   secret.json, held_out.jsonl, pools.jsonl, probes.jsonl
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragwitness.canary.design.draw import Design, Draw, Secret, check_draw
from ragwitness.canary.design.families import Family
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
from ragwitness.errors import InputError

__all__ = [
    "append_probe",
    "check_opened",
    "read_plan",
    "read_probes",
    "write_feedback",
    "write_opened",
    "write_plan",
    "write_traces",
]

_VERSION = "ragwitness/canary-commitment/v1"
_OPENED = "ragwitness/canary-opening/v1"
_COMMITMENT, _SECRET = "commitment.json", "secret.json"
_HELD_OUT, _POOLS, _PROBES = "held_out.jsonl", "pools.jsonl", "probes.jsonl"
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
            f"The plan in {folder} is malformed: {error!r}.",
            "Make a plan: ragwitness canary plan EXAMPLES -o FOLDER",
        ) from None


def write_traces(folder: Path, plan: Plan, traces: Sequence[Trace]) -> Path:
    """Write what is to be sent, and keep the beacon that it was drawn with.

    Raises:
        InputError: A file cannot be written.
    """
    _keep(folder, plan)
    path = folder / "send" / _TRACES
    _make(path.parent)
    write_rows(path, (_sent(number, one) for number, one in enumerate(traces, 1)))
    return path


def write_feedback(
    folder: Path, plan: Plan, traces: Sequence[Trace], answers: Path
) -> list[Feedback]:
    """Write the votes for the service's answers, ``{"id", "answer"}`` per line.

    Raises:
        InputError: The answers cannot be read, or one is of no trace.
    """
    known = {one.id: one for one in traces}
    candidates = {t for slot in plan.draw().slots for t in slot.candidates}
    found = []
    for number, row in enumerate(read_rows(answers), 1):
        name, said = row.get("id"), row.get("answer")
        if name not in known or not isinstance(said, str):
            raise InputError(
                f"{answers}:{number} is no answer to a trace that was sent.",
                'Each line: {"id": "… of send/traces.jsonl", "answer": "…"}.',
            )
        found.append(feedback_for(known[name], said, candidates))
    _make(folder / "send")
    write_rows(folder / "send" / _FEEDBACK, map(asdict, found))
    return found


def read_probes(folder: Path) -> list[dict[str, Any]]:
    """Return what earlier probes found, in their order; none is no error.

    Raises:
        InputError: The file cannot be read.
    """
    path = folder / "secret" / _PROBES
    return read_rows(path) if path.exists() else []


def append_probe(folder: Path, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Keep what a probe found; one of the same release takes the earlier one's place.

    Args:
        folder: Of the plan.
        row: With its ``release``.

    Raises:
        InputError: The file cannot be read or written.
    """
    rows = read_probes(folder)
    place = next((n for n, one in enumerate(rows) if one["release"] == row["release"]), len(rows))
    rows[place : place + 1] = [dict(row)]
    write_rows(folder / "secret" / _PROBES, rows)
    return rows


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
    kept = read_json(path)
    try:
        if kept["version"] != _OPENED:
            raise ValueError(kept["version"])
        given = _design(kept), kept["examples"], _secret(kept), kept["source"], kept["beacon"]
        published = bytes.fromhex(commitment)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} or the commitment cannot be read: {error!r}.", again) from None
    return check_draw(published, *given), (kept["source"], kept["beacon"])


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
