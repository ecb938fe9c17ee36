"""The folder of a canary audit: public, sent and secret files apart.

::

    FOLDER/commitment.json   publish before anything is sent; commitment.tsr, its timestamp
    FOLDER/send/             traces.jsonl in the order to send; feedback.jsonl once answers came;
                             planted.jsonl, the journal of planting
    FOLDER/secret/  (0700)   secret.json, held_out.jsonl, pools.jsonl.
                             Once probed: begun.jsonl, probes.jsonl, opened.json (looks.py)
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ragwitness.canary.draw import (
    Design,
    Draw,
    DrawSecret,
    bits_of,
    check_draw,
    commitment_of,
    draw_slots,
    settings_of,
)
from ragwitness.canary.examples import (
    Example,
    check_disjoint,
    examples_digest,
    split_pools,
    spread,
)
from ragwitness.canary.families import Family, Wordings
from ragwitness.canary.traces import Feedback, Trace, feedback_for, make_traces
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import (
    private_folder,
    read_object,
    read_rows,
    replace_file,
    write_rows,
)
from ragwitness.crypto.hashing import canonical
from ragwitness.privacy.streams import beacon_bytes, beacon_value

# A canary audit from its commitment to its last probe, as one value.


@dataclass(frozen=True, slots=True)
class CanaryPlan:
    """A canary audit as it is kept in its folder.

    Attributes:
        design: Settings.
        secret: Kept back.
        commitment: 32 bytes, as published.
        held_out: Examples of the probe, never sent.
        pools: Examples to send, by pool: ``reward`` and ``policy``.
        digest: Digest of all examples, committed to.
        beacon_source: Public randomness that was promised; empty for none.
        beacon: Public randomness, once it was joined.
        wordings: Wordings of traces; the design commits to those that are not ours.
    """

    design: Design
    secret: DrawSecret
    commitment: bytes
    held_out: tuple[Example, ...]
    pools: Mapping[str, tuple[Example, ...]]
    digest: str
    beacon_source: str = ""
    beacon: str = ""
    wordings: Wordings = field(default_factory=Wordings)

    @property
    def asked(self) -> tuple[Example, ...]:
        """Held-out examples that every probe asks about."""
        return self.held_out[: len(self.held_out) - self._spare]

    @property
    def spares(self) -> tuple[Example, ...]:
        """Held-out examples that take the place of others that could not be scored."""
        return self.held_out[len(self.held_out) - self._spare :]

    @property
    def _spare(self) -> int:
        return min(self.design.spares, len(self.held_out) // 4)

    @property
    def drawn(self) -> bool:
        """Whether everything is there that the draw follows from."""
        return bool(self.beacon) == bool(self.beacon_source)

    def joined(self, beacon: str) -> CanaryPlan:
        """Return the plan with the promised public randomness; an empty one changes nothing.

        Raises:
            InputError: None was promised, it holds nothing, or another was joined before.
        """
        if not beacon:
            return self
        if not self.beacon_source:
            raise InputError(
                "The commitment names no beacon, so none can be joined now.",
                "Plan anew with --beacon and, in words, where it will come from.",
            )
        beacon = beacon_bytes(beacon)
        if not beacon_value(beacon):
            raise InputError(
                f"The beacon {beacon!r} holds no letter and no digit.",
                "Give the value as its source prints it.",
            )
        if beacon_value(self.beacon) not in ("", beacon_value(beacon)):
            raise InputError("Another beacon was joined before.", "Leave --beacon out.")
        return replace(self, beacon=self.beacon or beacon)

    def draw(self) -> Draw:
        """Return the draw.

        Raises:
            InputError: The promised beacon has not been joined.
        """
        if not self.drawn:
            raise InputError(
                f"The beacon {self.beacon_source!r} has not been joined, so nothing is drawn yet.",
                "Once it is public: ragwitness canary plant FOLDER --beacon VALUE",
            )
        return draw_slots(self.design, self.secret, self.beacon)

    def check(self) -> Draw:
        """Check examples and draw against the commitment, and return the draw.

        Raises:
            VerificationError: ``commitment.*``, ``draw.beacon`` or ``draw.examples``.
        """
        if digest_of(part_digests(self.held_out, self.pools)) != self.digest:
            raise VerificationError("draw.examples", "The examples were changed since the plan.")
        return check_drawn(self)

    def traces(self) -> list[Trace]:
        """Return what is to be sent, in its order; the same every time.

        Raises:
            InputError: See :meth:`draw` and :func:`~ragwitness.canary.traces.make_traces`.
        """
        draw, bits = self.draw(), bits_of(self.secret, self.beacon, "traces")
        return make_traces(self.pools, self.held_out, self.design, draw, bits, self.wordings)


def make_plan(
    examples: Sequence[Example],
    design: Design,
    secret: DrawSecret,
    *,
    held_out: Sequence[Example] = (),
    beacon_source: str = "",
    wordings: Wordings | None = None,
) -> CanaryPlan:
    """Split the examples and commit.

    Args:
        examples: All that may be sent or, without ``held_out``, held out.
        design: Settings.
        secret: From the operating system; its own for every plan.
        held_out: Probed instead of a part of ``examples``.
        beacon_source: Public randomness that will be joined, in words.
        wordings: The user's wordings; None for the packaged ones.

    Raises:
        InputError: Pools are too small, or ``held_out`` shares a document with ``examples``.
    """
    words = wordings or Wordings()
    if words != Wordings():
        design = replace(design, wordings=words.digest)
    # Documents are split once, by their text alone (§3.3, App. A.1).
    split = split_pools(examples, experiment=design.experiment, seed=design.seed)
    policy = split.policy
    if held_out:
        check_disjoint(held_out, examples)
        policy += split.audit
    pools = {"reward": split.reward, "policy": policy}
    audit = spread(tuple(held_out) or split.audit, design.held_out)
    # Traces and probes are committed to, each part apart.
    digest = digest_of(part_digests(audit, pools))
    commitment = commitment_of(design, digest, secret, beacon_source)
    return CanaryPlan(
        design, secret, commitment, audit, pools, digest, beacon_source, wordings=words
    )


def part_digests(
    held_out: Sequence[Example], pools: Mapping[str, Sequence[Example]]
) -> dict[str, str]:
    """Return the digest of each part of the examples, in hex."""
    # Each part apart: in one list an example could move from the traces to the probe.
    pieces = {"held_out": held_out, **pools}
    return {name: examples_digest(piece) for name, piece in pieces.items()}


def digest_of(digests: Mapping[str, str]) -> str:
    """Return what a plan commits to of its examples, from the digests of their parts."""
    return hashlib.sha256(canonical(dict(digests))).hexdigest()


LOST = "ragwitness canary draw makes such a folder; restore what is lost from a copy of it."
"""Advice where a file of the folder is missing or damaged."""

_FOLDER = "Choose another folder with -o."
_VERSION = "ragwitness/canary-commitment/v4"
_OPENED = "ragwitness/canary-opening/v4"
_COMMITMENT, _SECRET = "commitment.json", "secret.json"
_HELD_OUT, _POOLS = "held_out.jsonl", "pools.jsonl"
_TRACES = "traces.jsonl"
FEEDBACK = "feedback.jsonl"
"""The votes as they are due, beside the traces."""
STAMPED = "commitment.tsr"
"""A timestamp authority's reply, beside ``commitment.json``."""
PLANTED = "planted.jsonl"
"""The journal of planting, beside the traces."""


def write_plan(folder: Path, plan: CanaryPlan) -> None:
    """Write a new folder.

    Raises:
        InputError: It holds a plan already, or cannot be written.
    """
    if (folder / _COMMITMENT).exists():
        raise InputError(f"{folder} holds a plan already.", "Choose another folder with -o.")
    # Secret things first, for their owner alone.
    secret = folder / "secret"
    private_folder(secret)
    write_rows(secret / _HELD_OUT, map(asdict, plan.held_out), hint=_FOLDER)
    pools = plan.pools.items()
    rows = ({"pool": k} | asdict(example) for k, pool in pools for example in pool)
    write_rows(secret / _POOLS, rows, hint=_FOLDER)
    _keep(folder, plan)
    published = {
        "version": _VERSION,
        "commitment": plan.commitment.hex(),
        "beacon": plan.beacon_source,
    }
    # Last: a folder with a commitment is whole.
    _write_object(folder / _COMMITMENT, published)


def read_plan(folder: Path) -> CanaryPlan:
    """Read the plan of a folder.

    Raises:
        InputError: There is none, it is malformed, or others can read its secret.
    """
    published = read_object(folder / _COMMITMENT, LOST)
    if published.get("version") != _VERSION:
        raise InputError(
            f"{folder} holds no plan of this version ({_VERSION}).",
            "Use the version of Ragwitness that it was planned with, or plan anew.",
        )
    secret = folder / "secret"
    secret_fields = read_object(secret / _SECRET, LOST, secret=True)
    try:
        pools: dict[str, list[Example]] = {"reward": [], "policy": []}
        for row in read_rows(secret / _POOLS, LOST):
            pools[row.pop("pool")].append(Example(**row))
        held_out = [Example(**row) for row in read_rows(secret / _HELD_OUT, LOST)]
        plan = _plan_of(
            secret_fields, bytes.fromhex(published["commitment"]), held_out, published["beacon"]
        )
        return replace(plan, pools={name: tuple(pool) for name, pool in pools.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"The plan in {folder} is malformed: {error!r}.", "Restore it from a copy."
        ) from None


def write_traces(folder: Path, plan: CanaryPlan, traces: Sequence[Trace]) -> Path:
    """Write what is to be sent, and keep the beacon.

    Raises:
        InputError: A file cannot be written.
    """
    _keep(folder, plan)
    path = folder / "send" / _TRACES
    write_rows(path, _rows(plan, traces))
    return path


def write_feedback(
    folder: Path, plan: CanaryPlan, traces: Sequence[Trace], answers: Path
) -> list[Feedback]:
    """Write the votes for the service's answers, ``{"id", "answer"}`` per line.

    Raises:
        InputError: The answers cannot be read, or one is of no trace or there twice.
    """
    by_id = {trace.id: trace for trace in traces}
    candidates = {t for slot in plan.draw().slots for t in slot.candidates}
    votes = []
    form = 'Each line: {"id": "… of send/traces.jsonl", "answer": "…"}.'
    for number, row in enumerate(read_rows(answers, form), 1):
        name, answer = row.get("id"), row.get("answer")
        if name not in by_id or not isinstance(answer, str):
            raise InputError(f"{answers}:{number} is no answer to a trace that was sent.", form)
        votes.append(feedback_for(by_id[name], answer, candidates))
    if twice := [name for name, n in Counter(trace.id for trace in votes).items() if n > 1]:
        raise InputError(
            f"{answers} holds more than one answer to {twice[0]!r}.", "Keep the one that was given."
        )
    write_votes(folder, votes)
    return votes


def write_votes(folder: Path, votes: Sequence[Feedback]) -> None:
    """Write what to do with each answer.

    Raises:
        InputError: The file cannot be written.
    """
    write_rows(folder / "send" / FEEDBACK, map(asdict, votes))


def check_traces(folder: Path, plan: CanaryPlan) -> bool:
    """Check that what was written to be sent is what the draw gives; False where nothing was.

    Raises:
        InputError: The file cannot be read.
        VerificationError: ``draw.traces``; it was changed.
    """
    path = folder / "send" / _TRACES
    if not path.exists():
        return False
    if read_rows(path, LOST) != list(_rows(plan, plan.traces())):
        raise VerificationError(
            "draw.traces",
            f"{path} is not what the draw gives.",
            f"Write it again: ragwitness canary plant {folder}",
        )
    return True


def write_opened(path: Path, plan: CanaryPlan) -> None:
    """Write everything that the draw follows from; none of it is secret afterwards.

    Raises:
        InputError: The file cannot be written.
    """
    replace_file(path, opened_bytes(plan), hint=_FOLDER)


def opened_bytes(plan: CanaryPlan) -> bytes:
    """Return an opened draw as it is written."""
    fields = _kept(plan) | {"version": _OPENED, "source": plan.beacon_source}
    return (json.dumps(fields, indent=1) + "\n").encode()


def check_opened(path: Path, commitment: str) -> tuple[Draw, tuple[str, str]]:
    """Check an opened draw against the commitment that was published.

    Returns:
        The draw, and the beacon's source and value, which are to be looked up elsewhere.

    Raises:
        InputError: The file is no opened draw, or the commitment no 32 bytes in hex.
        VerificationError: ``commitment.*`` or ``draw.beacon``.
    """
    again = "Write one: ragwitness canary status FOLDER --open FILE"
    try:
        plan = plan_of_opened(read_object(path, again), bytes.fromhex(commitment))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} or the commitment cannot be read: {error!r}.", again) from None
    return check_drawn(plan), (plan.beacon_source, plan.beacon)


def plan_of_opened(
    kept: Mapping[str, Any], commitment: bytes, held_out: Sequence[Example] = ()
) -> CanaryPlan:
    """Return the plan of an opened draw, without what was sent; nothing of it is checked.

    Args:
        kept: From :func:`opened_bytes`, read as JSON.
        commitment: As published.
        held_out: Examples of the probe, where they are known.

    Raises:
        KeyError: A field is missing.
        ValueError: It is of another version, or a field cannot be read.
    """
    if kept["version"] != _OPENED:
        raise ValueError(kept["version"])
    return _plan_of(kept, commitment, held_out, kept["source"])


def _plan_of(
    kept: Mapping[str, Any], commitment: bytes, held_out: Sequence[Example], source: str
) -> CanaryPlan:
    return CanaryPlan(
        design=design_of(kept),
        secret=DrawSecret(bytes.fromhex(kept["seed"]), bytes.fromhex(kept["blinding"])),
        commitment=commitment,
        held_out=tuple(held_out),
        pools={},
        digest=kept["examples"],
        beacon_source=source,
        beacon=kept["beacon"],
        wordings=Wordings(**{k: tuple(v) for k, v in kept.get("wordings", {}).items()}),
    )


def check_drawn(plan: CanaryPlan) -> Draw:
    """Check a plan's secret against its commitment, whatever it holds of examples.

    Raises:
        VerificationError: ``commitment.*`` or ``draw.beacon``.
    """
    if plan.design.wordings not in ("", plan.wordings.digest):
        raise VerificationError("draw.wordings", "The wordings were changed since the plan.")
    return check_draw(
        plan.commitment, plan.design, plan.digest, plan.secret, plan.beacon_source, plan.beacon
    )


def _keep(folder: Path, plan: CanaryPlan) -> None:
    _write_object(folder / "secret" / _SECRET, _kept(plan), secret=True)


def _kept(plan: CanaryPlan) -> dict[str, Any]:
    return {
        "design": settings_of(plan.design),
        "seed": plan.secret.seed.hex(),
        "blinding": plan.secret.blinding.hex(),
        "beacon": plan.beacon,
        "examples": plan.digest,
        **({"wordings": asdict(plan.wordings)} if plan.design.wordings else {}),
    }


def design_of(kept: Mapping[str, Any]) -> Design:
    """Return the design of settings as they were written.

    Raises:
        InputError: They are of another version.
    """
    try:
        return Design(**kept["design"] | {"family": Family(kept["design"]["family"])})
    except TypeError:
        raise InputError(
            "These settings of canaries are of another version.", "Use Ragwitness 0.3.0."
        ) from None


def _sent(number: int, trace: Trace, design: Design) -> dict[str, Any]:
    """Return a row of the traces file; the role stays secret, the votes are enough."""
    late = {"late": True} if trace.slot is not None and design.is_late(trace.slot) else {}
    return {
        "number": number,
        "id": trace.id,
        "document": trace.document,
        "query": trace.query,
        "canary": trace.canary,
        "vote": {"canary": trace.rule.canary, "otherwise": trace.rule.otherwise},
        **late,
    }


def _rows(plan: CanaryPlan, traces: Sequence[Trace]) -> Iterator[dict[str, Any]]:
    return (_sent(number, trace, plan.design) for number, trace in enumerate(traces, 1))


def _write_object(path: Path, value: object, *, secret: bool = False) -> None:
    replace_file(path, json.dumps(value, indent=1) + "\n", secret=secret, hint=_FOLDER)
