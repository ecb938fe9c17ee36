"""Inputs of the LINK circuit for given scores, honest or as a prover would forge them."""

import itertools
import random

from ragwitness.crypto.proofs.circuits.link import (
    ORDER_OFFSET,
    link_commitment,
    link_margins,
    threshold_commitment,
)
from ragwitness.crypto.proofs.points import R


def tie_breaks(ids, capacity):
    """What the verifier adds to doubled scores: 1 up to the last named slot."""
    return [int(slot <= ids[-1]) for slot in range(capacity)]


def order_of(ids, breaks):
    """The public order of neighbours."""
    return [
        int(a < b) - 1 - (breaks[a] - breaks[b]) + ORDER_OFFSET for a, b in itertools.pairwise(ids)
    ]


def link_inputs(shape, noisy, ids, chunk=0, seed=0, best=None):
    """All inputs of one chunk for noisy scores of all slots and claimed ids.

    Margins outside their range are replaced by 0, so that a forger gets as far as it can.
    """
    rng = random.Random(seed)
    breaks = tie_breaks(ids, len(noisy))
    every = [2 * int(value) + s for value, s in zip(noisy, breaks, strict=True)]
    best = [every[slot] for slot in ids] if best is None else best
    first = chunk * shape.slots
    scores = every[first : first + shape.slots]
    active = [int(first <= slot < first + shape.slots) for slot in ids]
    local = [(slot - first) * on for slot, on in zip(ids, active, strict=True)]
    winners = {slot for slot, on in zip(local, active, strict=True) if on}
    margins = link_margins(scores, best[-1], winners)
    margins = [value if 0 <= value < 1 << shape.bits else 0 for value in margins]
    salt, masks = rng.randrange(R), [rng.randrange(R) for _ in range(3)]
    point = rng.randrange(R)
    value = sum(c * pow(point, i, R) for i, c in enumerate([*scores, *masks])) % R
    reduced = [z % R for z in best]
    return {
        "margins": [link_commitment(shape, margins, masks)],
        "threshold": [threshold_commitment(reduced, salt)],
        "value": [value],
        "point": [point],
        "active": active,
        "ids": local,
        "order": order_of(ids, breaks),
        "scores": [z % R for z in scores],
        "best": reduced,
        "salt": [salt],
        "masks": masks,
    }
