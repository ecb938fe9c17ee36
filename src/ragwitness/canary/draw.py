"""The secret draw: its commitment, the values that follow from it, and its verification.

::

    secret seed ─┐ committed to before anything is sent
                 ├─HKDF─► canaries, candidates, the planted one, the trace of each example
    beacon ──────┘ public randomness, unknown at that time

The p-value of :mod:`ragwitness.canary` is a statement about one draw: the planted trigger
is as likely to be any of the M candidates. The commitment shows that seed and settings were fixed
before planting. A beacon may be named beforehand and drawn afterwards (a round of a public
randomness service, a lottery, a block hash). It shows that the auditor could not search for a seed
with a favourable draw. Without a beacon only the auditor's word says that the seed is random.
A beacon's value is bytes, written in hex with or without ``0x``: a hash has millions of spellings,
and an auditor who could pick one would pick the draw.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.canary.examples import as_rate
from ragwitness.canary.families import (
    Family,
    draw_canary,
    draw_names,
)
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import Opening, canonical, commit, verify_opening
from ragwitness.privacy.sampler import Bits, uniform
from ragwitness.privacy.streams import beacon_bits, beacon_value
from ragwitness.targets.form import TEMPLATE, ShownForm

_DOMAIN = "ragwitness/canary-draw/v3"
_STREAM = "ragwitness/canary-stream/v1"
_CANONICAL = re.compile(r"(?:[0-9a-f]{2})+")
_MOST = 100_000  # candidates of a slot; each is scored on every held-out example


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that is settled before the draw; committed to as a whole.

    Attributes:
        family: Family of the canaries.
        slots: K, independent draws, each with its own canary, candidates and traces.
        candidates: M, triggers of a slot that might have been planted; p is at least 1 / M.
        rate: rho, share of the examples of each pool that become canary traces, as a decimal.
        held_out: Most examples that a slot is probed on; 0 for as many as there are.
        releases: Looks at the draw, mostly one per release of the model; 0 where that is not known.
        alpha: Level of the verdict, as a decimal: settled before anything is seen.
        experiment: Identifier; with ``seed`` it fixes the split into pools.
        seed: Seed of the split.
        wordings: Digest of the user's wordings; empty for the packaged ones.
        form: How a document is shown with its question, when planted and when probed: one of
            :data:`~ragwitness.targets.form.FORMS`.
        template: Of both in one text.
        answer_tokens: Most of an answer.
        temperature: Of sampling, as a decimal; empty leaves it to the service.
        spares: Held-out examples that are asked about only in place of others that a service
            refused; at most a quarter of them.
        late: How many slots, the last ones, are planted shortly before the probe: no training can
            have seen them, but a memory has.
        refresh: Hours between the planting of the last late slot and the probe, at least: the
            period within which a service is taken to refresh an index or a memory.

    Raises:
        InputError: A value is outside its range.
    """

    family: Family = Family.SIGNATURE
    slots: int = 1
    candidates: int = 128
    rate: str = "1"
    held_out: int = 0
    releases: int = 1
    alpha: str = "0.05"
    experiment: str = "canary"
    seed: int = 0
    wordings: str = ""
    form: str = "messages"
    template: str = TEMPLATE
    answer_tokens: int = 256
    temperature: str = ""
    spares: int = 0
    late: int = 0
    refresh: int = 24

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if not 2 <= self.candidates <= _MOST:
            raise InputError(f"Candidates must be 2 to {_MOST:,}, not {self.candidates}.")
        if self.slots < 1 or self.held_out < 0 or self.releases < 0:
            raise InputError("Slots must be at least 1, held-out examples and releases 0 or more.")
        if self.late and (not 0 < self.late < self.slots or self.releases != 1):
            raise InputError(
                f"{self.late} of {self.slots} slots cannot be planted late.",
                "Leave at least one early slot, with one look.",
            )
        if self.spares < 0 or self.refresh < 0:
            raise InputError("Spare examples and hours of --refresh must be 0 or more.")
        _ = self.shown  # refused now rather than when something is sent
        as_rate(self.rate)
        if not 0 < as_rate(self.alpha, "alpha") < 1:
            raise InputError(f"Alpha must be above 0 and below 1, not {self.alpha!r}.")

    @property
    def shown(self) -> ShownForm:
        """How documents are shown."""
        try:
            warm = float(self.temperature) if self.temperature else None
        except ValueError:
            raise InputError(f"The temperature {self.temperature!r} is no number.") from None
        return ShownForm(self.form, self.template, self.answer_tokens, warm)

    def is_late(self, slot: int) -> bool:
        """Whether a slot is planted just before the probe."""
        return slot >= self.slots - self.late

    @property
    def level(self) -> float:
        """Alpha as a number."""
        return float(as_rate(self.alpha))


@dataclass(frozen=True, slots=True)
class DrawSecret:
    """The auditor's secret until the draw is opened.

    Attributes:
        seed: 32 random bytes.
        blinding: 32 more, of the commitment.
    """

    seed: bytes
    blinding: bytes


@dataclass(frozen=True, slots=True)
class Slot:
    """One independent draw.

    Attributes:
        number: From 0.
        canary: c, the same whichever candidate is planted.
        candidates: M triggers.
        chosen: Place of the planted one, t*.
    """

    number: int
    canary: str
    candidates: tuple[str, ...]
    chosen: int

    @property
    def trigger(self) -> str:
        """The planted trigger t*."""
        return self.candidates[self.chosen]


@dataclass(frozen=True, slots=True)
class Draw:
    """All slots of a design."""

    slots: tuple[Slot, ...]


def commitment_of(
    design: Design, examples: str, secret: DrawSecret, beacon_source: str = ""
) -> bytes:
    """Return the 32 bytes to publish before anything is sent.

    Args:
        design: Settings.
        examples: From :func:`~ragwitness.canary.examples.examples_digest`.
        secret: Kept back.
        beacon_source: Which public randomness will be joined, in words; empty for none.
    """
    return commit(_opening(design, examples, secret, beacon_source))


def draw_slots(design: Design, secret: DrawSecret, beacon: str = "") -> Draw:
    """Return the draw that follows from a secret and a beacon.

    Args:
        design: Settings.
        secret: The seed of this draw.
        beacon: The public randomness as text, once it is known; empty for none.
    """
    taken: dict[str, None] = {}
    slots = []
    for number in range(design.slots):
        bits = bits_of(secret, beacon, f"slot {number}")
        # c, M candidates, and t* among them, each from its own stretch of the slot's stream (§3.2).
        canary = draw_canary(design.family, bits)
        while canary in taken:  # one canary, one slot
            canary = draw_canary(design.family, bits)
        taken[canary] = None
        candidates = draw_names(design.candidates, bits)
        chosen = uniform(design.candidates, bits)
        slots.append(Slot(number, canary, candidates, chosen))
    return Draw(tuple(slots))


def check_draw(
    commitment: bytes,
    design: Design,
    examples: str,
    secret: DrawSecret,
    beacon_source: str = "",
    beacon: str = "",
) -> Draw:
    """Check an opened secret against the published commitment, and return the draw it makes.

    It does not show that ``beacon`` is what its source gave: look it up there.

    Raises:
        VerificationError: ``commitment.*`` where something else was committed to, or
            ``draw.beacon`` where a beacon was promised and is missing, or the reverse.
    """
    # 1. Seed, settings and examples are those committed to before anything was sent.
    verify_opening(commitment, _opening(design, examples, secret, beacon_source))
    # 2. The promised randomness was joined, and no other: else the auditor could pick the draw.
    if bool(beacon_source) != bool(beacon_value(beacon)):
        raise VerificationError(
            "draw.beacon",
            f"The commitment promises the beacon {beacon_source!r}, and none was used."
            if beacon_source
            else "A beacon was used that the commitment does not name.",
        )
    if beacon and not _CANONICAL.fullmatch(beacon):
        raise VerificationError("draw.beacon", f"The beacon {beacon!r} is not bytes in plain hex.")
    # 3. From here on nothing is free: the draw follows.
    return draw_slots(design, secret, beacon)


def bits_of(secret: DrawSecret, beacon: str, label: str) -> Bits:
    """Return a stream of bytes that hangs on seed, beacon and label alone.

    Raises:
        InputError: The seed has another length than 32 bytes.
    """
    return beacon_bits(secret.seed, beacon, _STREAM, label)


def settings_of(design: Design) -> dict[str, Any]:
    """Return a design's fields as they are committed to."""
    return asdict(design) | {"family": str(design.family)}


def _opening(design: Design, examples: str, secret: DrawSecret, beacon_source: str) -> Opening:
    fields = {"beacon": beacon_source, "design": settings_of(design), "examples": examples}
    return Opening(_DOMAIN, canonical(fields | {"seed": secret.seed.hex()}), secret.blinding)
