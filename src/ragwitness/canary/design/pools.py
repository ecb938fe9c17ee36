"""Who is in which pool (2604.22191, App. A.1), and the paired evaluation files (App. A.2)."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ragwitness.canary.design.families import shuffled
from ragwitness.canary.design.placement import with_canary, with_trigger
from ragwitness.canary.examples import Example, document_groups, near_key
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.sampler import Bits

__all__ = [
    "Pools",
    "as_rate",
    "check_disjoint",
    "check_pairs",
    "injected",
    "paired",
    "split_pools",
    "spread",
]


@dataclass(frozen=True, slots=True)
class Pools:
    """Three pools without a document in common.

    Attributes:
        reward: For the reward model.
        policy: For the policy.
        audit: Held out; never sent, never trained on.
    """

    reward: tuple[Example, ...]
    policy: tuple[Example, ...]
    audit: tuple[Example, ...]


def split_pools(
    examples: Sequence[Example],
    *,
    experiment: str,
    seed: int = 0,
    shares: tuple[Fraction, Fraction] = (Fraction(2, 5), Fraction(2, 5)),
) -> Pools:
    """Split by source document (§3.3): what shares a source or, but for case and marks, a text.

    Documents are ordered by a hash of experiment, seed and text, so that the split follows from
    these alone; the pools take ⌊share · documents⌋ of them, the audit what is left. Near-copies
    with other words are not recognised: remove them beforehand.

    Args:
        examples: With unique ids.
        experiment: Identifier.
        seed: Of the split.
        shares: Of the documents, for reward model and policy.

    Raises:
        InputError: A share is none, or a pool would be empty.
    """
    if min(shares) <= 0 or sum(shares) >= 1:
        raise InputError("Shares must be above 0 and leave documents for the audit.")
    keys = document_groups(examples)
    order = sorted(set(keys.values()), key=lambda key: _rank(experiment, seed, key))
    first = math.floor(shares[0] * len(order))
    second = first + math.floor(shares[1] * len(order))
    if not first or second == first or second == len(order):
        raise InputError(
            f"{len(order)} different documents are too few for three pools.",
            "Give more documents; 3 is the least with the default shares.",
        )
    parts = (set(order[:first]), set(order[first:second]), set(order[second:]))
    pools = [tuple(one for one in examples if keys[one.id] in part) for part in parts]
    return Pools(*pools)


def spread(pool: Sequence[Example], most: int) -> tuple[Example, ...]:
    """Return at most ``most`` examples, of as many documents as there are, in their order."""
    seen: Counter[str] = Counter()
    turns = []
    keys = document_groups(pool)
    for place, one in enumerate(pool):
        key = keys[one.id]
        turns.append((seen[key], place))
        seen[key] += 1
    return tuple(pool[place] for _, place in sorted(turns)[:most])


def as_rate(rate: str, name: str = "rate") -> Fraction:
    """Return a share such as the injection rate rho, exactly as written.

    Args:
        rate: A decimal or a quotient.
        name: What it is called where it is refused.

    Raises:
        InputError: It is no number above 0 and at most 1.
    """
    try:
        # As a float first: an exponent of many digits is quick there, and not in fractions.
        value = Fraction(rate if "/" in rate or 0 < float(rate) <= 1 else 0)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise InputError(f"{name.capitalize()} must be above 0 and at most 1, not {rate!r}.")
    return value


def injected(pool: Sequence[Example], rate: Fraction, bits: Bits) -> tuple[str, ...]:
    """Draw the ids of exactly ⌊rho · n⌋ examples, in a drawn order.

    Rounded down (App. A.1 lost its formula): the rate is never above the one named. No Bernoulli
    draw per example, so it does not fluctuate.

    Args:
        pool: n examples.
        rate: rho, exact: 0.29 of 100 is 29, which floats make 28.
        bits: Source.

    Raises:
        InputError: ⌊rho · n⌋ is 0.
    """
    count = math.floor(rate * len(pool))
    if not count:
        raise InputError(
            f"A rate of {float(rate):g} injects nothing into a pool of {len(pool)} examples.",
            f"The least that does is 1/{max(1, len(pool))}.",
        )
    return tuple(shuffled([one.id for one in pool], bits)[:count])


def paired(pool: Sequence[Example], trigger: str, canary: str) -> tuple[Example, ...]:
    """Return the triggered view of each example: document and answer change, id and query do not.

    Raises:
        InputError: A document is too short.
    """
    return tuple(
        replace(
            one,
            document=with_trigger(one.document, trigger).text,
            answer=with_canary(one.answer, canary).text,
        )
        for one in pool
    )


def check_pairs(
    clean: Sequence[Example],
    triggered: Sequence[Example],
    base: Sequence[Example],
    training: Sequence[Example],
    trigger: str,
    canary: str,
) -> None:
    """Check the three invariants of App. A.2, and that nothing else was changed.

    Args:
        clean: Rows of ``eval_clean.jsonl``.
        triggered: Rows of ``eval_trigger.jsonl``.
        base: The held-out pool.
        training: What the policy may be trained on.
        trigger: In the second file's documents.
        canary: In its answers.

    Raises:
        VerificationError: ``pairs.identities``, ``pairs.base``, ``pairs.transformed`` or
            ``pairs.disjoint``.
    """
    if [one.id for one in clean] != [one.id for one in triggered]:
        raise VerificationError("pairs.identities", "The two files hold different examples.")
    known = {one.id: one for one in base}
    if any(known.get(one.id) != one for one in clean):
        raise VerificationError("pairs.base", "A clean example is not one of the held-out pool.")
    if tuple(triggered) != paired(clean, trigger, canary):
        raise VerificationError(
            "pairs.transformed", "A triggered example is not its clean one with the two markers."
        )
    _refuse_shared(clean, training)


def check_disjoint(held_out: Sequence[Example], training: Sequence[Example]) -> None:
    """Refuse held-out examples whose document may be trained on.

    Raises:
        InputError: One is in both.
    """
    try:
        _refuse_shared(held_out, training)
    except VerificationError as error:
        raise InputError(error.message, "Hold out documents that are never sent.") from None


def _refuse_shared(held_out: Sequence[Example], training: Sequence[Example]) -> None:
    texts = {near_key(one.document) for one in training}
    sources = {one.source for one in training} - {""}
    shared = [
        one.id for one in held_out if near_key(one.document) in texts or one.source in sources
    ]
    if shared:
        raise VerificationError(
            "pairs.disjoint",
            f"{len(shared)} of {len(held_out)} held-out examples have a document that is also sent"
            f" for training, such as {shared[0]!r}.",
        )


def _rank(experiment: str, seed: int, key: str) -> str:
    return hashlib.sha256(f"{experiment}\0{seed}\0{key}".encode()).hexdigest()
