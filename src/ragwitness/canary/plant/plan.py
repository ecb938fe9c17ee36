"""A canary audit from its commitment to its last probe, as one value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragwitness.canary.design.draw import (
    Design,
    Draw,
    Secret,
    beacon_value,
    bits_of,
    check_draw,
    commitment_of,
    draw_slots,
)
from ragwitness.canary.design.pools import check_disjoint, split_pools, spread
from ragwitness.canary.examples import Example, examples_digest
from ragwitness.canary.plant.traces import Trace, make_traces
from ragwitness.crypto.canonical import canonical
from ragwitness.errors import InputError, VerificationError

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A canary audit as it is kept in its folder.

    Attributes:
        design: Settings.
        secret: Kept back.
        commitment: 32 bytes, as published.
        held_out: What is probed, never sent.
        pools: What is sent, by pool: ``reward`` and ``policy``.
        digest: Of all examples, committed to.
        beacon_source: Public randomness that was promised; empty for none.
        beacon: That randomness, once it was joined.
    """

    design: Design
    secret: Secret
    commitment: bytes
    held_out: tuple[Example, ...]
    pools: Mapping[str, tuple[Example, ...]]
    digest: str
    beacon_source: str = ""
    beacon: str = ""

    @property
    def drawn(self) -> bool:
        """Whether everything is there that the draw follows from."""
        return bool(self.beacon) == bool(self.beacon_source)

    def joined(self, beacon: str) -> Plan:
        """Return the plan with the promised public randomness; an empty one changes nothing.

        Raises:
            InputError: None was promised, it holds nothing, or another was joined before.
        """
        if not beacon:
            return self
        if not beacon_value(beacon):
            raise InputError(
                f"The beacon {beacon!r} holds no letter and no digit.",
                "Give the value as its source prints it.",
            )
        if not self.beacon_source:
            raise InputError(
                "The commitment names no beacon, so none can be joined now.",
                "Plan anew with --beacon and, in words, where it will come from.",
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
        if _digest(self.held_out, self.pools) != self.digest:
            raise VerificationError("draw.examples", "The examples were changed since the plan.")
        return check_draw(
            self.commitment, self.design, self.digest, self.secret, self.beacon_source, self.beacon
        )

    def traces(self) -> list[Trace]:
        """Return what is to be sent, in its order; the same every time.

        Raises:
            InputError: See :meth:`draw` and :func:`~ragwitness.canary.plant.traces.make_traces`.
        """
        draw, bits = self.draw(), bits_of(self.secret, self.beacon, "traces")
        return make_traces(self.pools, self.held_out, self.design, draw, bits)


def make_plan(
    examples: Sequence[Example],
    design: Design,
    secret: Secret,
    *,
    held_out: Sequence[Example] = (),
    beacon_source: str = "",
) -> Plan:
    """Split the examples and commit.

    Args:
        examples: All that may be sent or, without ``held_out``, held out.
        design: Settings.
        secret: From the operating system; its own for every plan.
        held_out: Probed instead of a part of ``examples``.
        beacon_source: Public randomness that will be joined, in words.

    Raises:
        InputError: Pools are too small, or ``held_out`` shares a document with ``examples``.
    """
    split = split_pools(examples, experiment=design.experiment, seed=design.seed)
    policy = split.policy
    if held_out:
        check_disjoint(held_out, examples)
        policy += split.audit
    pools = {"reward": split.reward, "policy": policy}
    audit = spread(tuple(held_out) or split.audit, design.held_out)
    digest = _digest(audit, pools)
    commitment = commitment_of(design, digest, secret, beacon_source)
    return Plan(design, secret, commitment, audit, pools, digest, beacon_source)


def _digest(held_out: Sequence[Example], pools: Mapping[str, Sequence[Example]]) -> str:
    # Each part apart: in one list an example could move from what is sent to what is probed.
    parts = {"held_out": held_out, **pools}
    digests = {name: examples_digest(part) for name, part in parts.items()}
    return hashlib.sha256(canonical(digests)).hexdigest()
