"""LINK: the named slots hold the highest noisy scores, in order (docs/design/circuits.md).

It runs on doubled, tie-broken scores z_j = 2·(score + noise) + s_j, where s_j = 1 up to the last
named slot J and 0 behind it: then z_J is the threshold t, every winner has z_j ≥ t and every other
slot z_j ≤ t - 1, which is ``select``'s rule that ties go to the lower slot.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from ragwitness.crypto.proofs.gadgets import (
    boolean,
    hash_inputs,
    horner,
    pack,
    pack_values,
    poseidon,
    power_sums,
    ranged,
)
from ragwitness.crypto.proofs.r1cs import Circuit, Linear, Wires, total, weighted
from ragwitness.crypto.proofs.setup import MASKS, Shape

ORDER_OFFSET = 2
"""Added to what orders two neighbours, so that the public ``order`` is in 0 … 3."""


@lru_cache(maxsize=4)
def link_circuit(shape: Shape) -> Circuit:
    """Return the circuit of one chunk.

    Public inputs: ``margins`` (:func:`link_commitment`), ``threshold``
    (:func:`threshold_commitment`), ``value`` (the masked polynomial of the z_j at ``point``),
    ``point``, then per place of the answer ``active`` (1 where the slot is in this chunk), ``ids``
    (the slot, counted in the chunk; 0 where inactive), and per pair of neighbours ``order``:
    [ids_i < ids_{i+1}] - 1 - (s_i - s_{i+1}) + 2, with global slots.

    Private inputs: ``scores`` (z_j), ``best`` (z of the answer's slots, best first), ``salt``,
    ``masks`` (three).

    Args:
        shape: Its dimension does not matter.
    """
    circuit = Circuit("ragwitness/link/v1")
    # Public inputs first, in the order that ``selection.statement.public_inputs`` gives them.
    margins, threshold, value, point = (
        circuit.public(name)[0] for name in ("margins", "threshold", "value", "point")
    )
    active, ids = circuit.public("active", shape.top), circuit.public("ids", shape.top)
    order = circuit.public("order", shape.top - 1)
    scores, best = circuit.private("scores", shape.slots), circuit.private("best", shape.top)
    [salt], masks = circuit.private("salt"), circuit.private("masks", MASKS)

    # t is the last winner's z. b_j(1 - b_j) = 0: every slot wins or does not.
    above = [score - best[-1] for score in scores]
    winners = _winners(circuit, shape)
    # p_j = b_j(z_j - t).
    gains = [
        circuit.product(winner, score, f"gain of slot {slot}")
        for slot, (winner, score) in enumerate(zip(winners, above, strict=True))
    ]
    # z_j ≥ t for winners, z_j ≤ t - 1 for the rest: w_j = 2p_j - (z_j - t) - (1 - b_j) is in
    # [0, 2^bits), which is ``link_margins``.
    gaps = [
        weighted([(2, gain), (-1, score), (1, winner)]) - 1
        for winner, score, gain in zip(winners, above, gains, strict=True)
    ]
    for slot, gap in enumerate(gaps):
        ranged(circuit, gap, shape.bits, f"margin of slot {slot}")
    # The winners are the named slots, and best_i is z of slot ids_i.
    _name(circuit, (active, ids), (winners, gains), best)
    # Best first, ties by slot: best_i - best_(i+1) + order_i - 2 is not negative.
    for place, offset in enumerate(order):
        step = best[place] - best[place + 1] + offset - ORDER_OFFSET
        ranged(circuit, step, shape.bits, f"order of places {place} and {place + 1}")
    # hW and hT, which were sent before the point was drawn: with t, ids and margins they fix all z.
    hashed = hash_inputs(circuit, [*pack(gaps, shape.bits), *masks], "hash of the margins")
    circuit.zero(hashed - margins, "commitment to the margins")
    hashed = hash_inputs(circuit, [*best, salt], "hash of the threshold")
    circuit.zero(hashed - threshold, "commitment to the threshold")
    # Σ z_j r^j + Σ M_i r^(n+i) = ez: these z are the committed index's, with the sub-seed's noise.
    at_point = horner(circuit, [*scores, *masks], point, "scores at the point")
    circuit.zero(at_point - value, "value at the point")
    return circuit


def link_margins(scores: Sequence[int], threshold: int, winners: Collection[int]) -> list[int]:
    """Return what must not be negative: z - t for a winner, t - z - 1 for every other slot.

    Args:
        scores: z_j, not reduced.
        threshold: z of the last place of the answer.
        winners: Slots of this chunk that the answer names.
    """
    return [
        int(score) - threshold if slot in winners else threshold - int(score) - 1
        for slot, score in enumerate(scores)
    ]


def link_commitment(shape: Shape, margins: Sequence[int], masks: Sequence[int]) -> int:
    """Return the public input ``margins``, which the prover names before it learns the point.

    Args:
        shape: Gives the bits of a margin.
        margins: Margins from :func:`link_margins`, one per slot.
        masks: The three effective masks, in [0, R).

    Raises:
        InputError: A margin is negative or too large, or a mask is outside the field.
    """
    return poseidon([*pack_values(margins, shape.bits), *masks])


def threshold_commitment(best: Sequence[int], salt: int) -> int:
    """Return the public input ``threshold``, the same for all chunks of an answer.

    Args:
        best: z of the answer's slots, best first, in [0, R).
        salt: Random, in [0, R); it hides the rest.
    """
    return poseidon([*best, salt])


def _winners(circuit: Circuit, shape: Shape) -> list[Linear]:
    """Return one boolean wire per slot, 1 where an active place of the answer names it."""
    first = circuit.allocate(shape.slots)
    active, ids = circuit.inputs["active"], circuit.inputs["ids"]

    def step(wires: Wires) -> None:
        for place, slot in zip(active, ids, strict=True):
            if wires[place] and wires[slot] < shape.slots:
                wires[first + wires[slot]] = 1

    circuit.compute(step)
    winners = [Linear({first + slot: 1}) for slot in range(shape.slots)]
    for winner in winners:
        boolean(circuit, winner, "a slot wins or does not")
    return winners


def _name(
    circuit: Circuit,
    places: tuple[Sequence[Linear], Sequence[Linear]],
    slots: tuple[Sequence[Linear], Sequence[Linear]],
    best: Sequence[Linear],
) -> None:
    """Tie the winners, and their scores, to the places of the answer by power sums.

    As many booleans as places with the same power sums 0 … K are 1 at just these places (Newton);
    with K distinct places a Vandermonde matrix then fixes the score that stands at each.
    """
    powers, ids = list(places[0]), places[1]
    winners, gains = (power_sums(values, len(best) + 1) for values in slots)
    for power in range(len(best) + 1):
        # Σ b_j jᵃ = Σ_i ids_iᵃ, a = 0 … K, over the places that are active.
        circuit.zero(total(powers) - winners[power], "the winners are the named slots")
        if power == len(best):
            return
        # Σ p_j jᵃ = Σ_i ids_iᵃ (best_i - t), a = 0 … K - 1; the last place's difference is 0.
        parts = [
            circuit.product(weight, score - best[-1], "score of a named slot")
            for weight, score in zip(powers[:-1], best[:-1], strict=True)
        ]
        circuit.zero(total(parts) - gains[power], "the best scores are the named slots'")
        powers = [
            circuit.product(weight, slot, "power of a named slot")
            for weight, slot in zip(powers, ids, strict=True)
        ]
