"""A prover of answers that lies as well as can be, and verifiers that have one mistake each."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.proofs import argument, prove_selection, selection
from ragwitness.crypto.proofs.argument import Proof, SecretColumns, commit_columns
from ragwitness.crypto.proofs.arithmetic import (
    ProofTranscript,
    R,
    Shape,
    curve,
    dot,
    encode_point,
    generator,
    lagrange_at,
    powers,
    scalar,
    vanishing,
)
from ragwitness.crypto.proofs.prove_selection import (
    ChunkWitness,
    argue,
    chunk_scores,
    chunk_witness,
    noisy_scores,
)
from ragwitness.crypto.proofs.prover import RootsDomain, SecretGroup
from ragwitness.crypto.proofs.selection import AnswerClaim, verify_answers

SLOTS = 512
SHAPE = Shape(SLOTS, 3, 3, 16, 400)

P = int(
    "1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB",
    16,
)
"""What coordinates are computed modulo."""


@dataclass(frozen=True)
class World:
    """A true claim with everything that its prover knows."""

    claim: AnswerClaim
    secret: SecretColumns
    order: tuple[int, ...]
    """All slots, best first."""

    def parts(self, claim: AnswerClaim | None = None) -> tuple[list[int], list[ChunkWitness]]:
        """Return the columns that a claim, true or false, leads to; range is not looked at."""
        told = claim or self.claim
        chunks = told.chunks(SHAPE)
        held = [chunk_scores(SHAPE, told, self.secret, one) for one in chunks]
        pairs = list(zip(held, chunks, strict=True))
        noisy = np.concatenate([noisy_scores(*pair) for pair in pairs])
        numbers = [int(noisy[slot]) for slot in told.ids]
        return numbers, [chunk_witness(SHAPE, one, numbers, part) for part, one in pairs]

    def noisy(self) -> list[int]:
        """Return y of every slot."""
        chunks = self.claim.chunks(SHAPE)
        held = ((chunk_scores(SHAPE, self.claim, self.secret, one), one) for one in chunks)
        return [int(y) for pair in held for y in noisy_scores(*pair)]

    def naming(self, *ids: int, **more: Any) -> AnswerClaim:
        """Return the claim with another answer."""
        return replace(self.claim, ids=ids, **more)


def world(seed: int = 1, capacity: int = 40) -> World:
    """Return rows of norm at most 16, their commitments, and a true claim over them."""
    return _world(seed, capacity)  # one key for every spelling of a call: blinds are drawn once


@cache
def _world(seed: int, capacity: int) -> World:
    draw = random.Random(seed)
    rows = np.array([[draw.randrange(-9, 10) for _ in range(3)] for _ in range(capacity)], np.int16)
    query = np.array([draw.randrange(-9, 10) for _ in range(3)], np.int16)
    secret = commit_columns(rows, SHAPE)
    noise = np.array([draw.randrange(-200, 200) for _ in range(capacity)], np.int64)
    y = rows.astype(np.int64) @ query.astype(np.int64) + noise
    order = tuple(np.argsort(-y, kind="stable").tolist())
    context = f"record {seed}".encode()
    claim = AnswerClaim(secret.public, query, noise, order[:3], context)
    return World(claim, secret, order)


def argued(claim: AnswerClaim, numbers: Sequence[int], parts: Sequence[ChunkWitness]) -> bytes:
    """Return what the honest conversation makes of these columns."""
    return argue(SHAPE, claim, numbers, parts).encode()


def verdict(claim: AnswerClaim, data: bytes) -> str:
    """Return the name of the check that refuses a proof; ``accepted`` where none does."""
    try:
        verify_answers(SHAPE, {"Proof": (claim, data)})
    except VerificationError as error:
        return error.check
    return "accepted"


def with_bits(part: ChunkWitness, change: Callable[[np.ndarray], None]) -> ChunkWitness:
    """Return a chunk whose opened columns are changed, to any numbers modulo R."""
    values = part.bits.values.astype(object)
    change(values)
    return replace(part, bits=SecretGroup(values % R, part.bits.blinds))


def whole_margins(
    claim: AnswerClaim, world_: World, parts: Sequence[ChunkWitness]
) -> list[ChunkWitness]:
    """Return chunks whose highest digit makes up for every margin that is out of range."""
    noisy, found = world_.noisy(), []
    for chunk, part in zip(claim.chunks(SHAPE), parts, strict=True):
        here = {slot for _, slot in chunk.here}

        def change(values: np.ndarray, chunk=chunk, here=here, part=part) -> None:
            top = SHAPE.bits - 1
            for slot in range(chunk.real):
                y = noisy[chunk.number * SLOTS + slot]
                margin = (part.upper.values[slot] - y) * (-1 if slot in here else 1)
                margin -= chunk.late[slot]
                below = sum(int(values[slot, i]) << i for i in range(top))
                values[slot, top] = (margin - below) * pow(2, -top, R) % R

        found.append(with_bits(part, change))
    return found


# Verifiers with one mistake. Each is a context in which prover and verifier run.


@contextmanager
def instead(owner: object, name: str, other: object) -> Iterator[None]:
    """Put something else in place of a name for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, other)
        yield


@contextmanager
def drawn_early(label: str) -> Iterator[None]:
    """A verifier who draws a challenge before anything is said but the statement."""
    true = ProofTranscript.challenge

    def start(self: ProofTranscript, domain: str, statement: bytes) -> None:
        made(self, domain, statement)
        self.known = int.from_bytes(self._hash.copy().digest(64), "big") % R  # type: ignore[attr-defined]

    def challenge(self: ProofTranscript, name: str) -> int:
        value = true(self, name)
        return self.known if name == label else value  # type: ignore[attr-defined]

    made = ProofTranscript.__init__
    with (
        instead(ProofTranscript, "__init__", start),
        instead(ProofTranscript, "challenge", challenge),
    ):
        yield


def early(domain: str, statement: bytes) -> int:
    """Return the challenge that such a verifier draws."""
    fresh = ProofTranscript(domain, statement)
    return int.from_bytes(fresh._hash.copy().digest(64), "big") % R


@contextmanager
def without_rows(*dropped: str) -> Iterator[None]:
    """A verifier who forgets an equation: bits, margins or winners."""
    true = selection.row_weights

    def row_weights(claim: AnswerClaim, shape: Shape, kappa: int) -> Iterator[list[int]]:
        for weights in true(claim, shape, kappa):
            places = {
                "digits": range(len(weights) - 3),
                "margins": [len(weights) - 2],
                "winners": [len(weights) - 1],
            }
            for place in (place for name in dropped for place in places[name]):
                weights[place] = 0
            yield weights

    with (
        instead(selection, "row_weights", row_weights),
        instead(prove_selection, "row_weights", row_weights),
    ):
        yield


@contextmanager
def without_places() -> Iterator[None]:
    """A verifier who does not check where U and A hold which numbers."""
    true = selection.place_weights

    def place_weights(mu: int, columns: int, chunks: int) -> list[int]:
        *beside, last = true(mu, columns, chunks)
        return [*(0 for _ in beside), last]

    with instead(selection, "place_weights", place_weights):
        yield


def unchecked() -> Any:
    """A verifier who takes any claim."""
    return instead(selection, "check_claim", lambda *_: None)


@contextmanager
def believing(hashed: str = "told", **told: object) -> Iterator[None]:
    """A verifier who takes a part of the claim from its prover.

    Args:
        hashed: ``told``: in the hash too; ``claimed``: the hash is of its own claim; ``named``: the
            challenges are of what was told, and only the proof's name is compared.
        told: What it takes.
    """
    true, heads = selection._opening, AnswerClaim.heads

    def opening(shape: Shape, claim: AnswerClaim, data: bytes) -> object:
        believed = replace(claim, **told)  # type: ignore[arg-type]
        with pytest.MonkeyPatch.context() as patch:
            if hashed == "claimed":
                patch.setattr(AnswerClaim, "heads", lambda _, at: heads(claim, at))
            if hashed == "named":
                assert data[:64] == heads(claim, shape)
                data = heads(believed, shape) + data[64:]
            return true(shape, believed, data)

    with instead(selection, "_opening", opening):
        yield


@contextmanager
def lenient_points() -> Iterator[None]:
    """A verifier who takes any spelling of any point, and hashes it in its one encoding."""

    def parse(data: bytes, check: str = "point") -> object:
        return curve().G1Point.from_compressed_bytes_unchecked(bytes(data))

    true = ProofTranscript.absorb_points

    def absorb(self: ProofTranscript, label: str, points: Sequence[bytes]) -> None:
        true(self, label, [encode_point(parse(data)) for data in points])

    with instead(argument, "parse_point", parse), instead(ProofTranscript, "absorb_points", absorb):
        yield


# A setup whose secret number is known, and proofs by it.


@cache
def trapdoor() -> tuple[int, RootsDomain, bytes]:
    """Return τ, its domain and [τ]₂."""
    tau = secrets.randbelow(R)
    held, power = [], 1
    for _ in range(SLOTS + 3):
        held.append(generator() * scalar(power))
        power = power * tau % R
    second = curve().G2Point() * scalar(tau)
    return tau, RootsDomain.of(SLOTS, held), second.to_compressed_bytes()


def simulated(claim: AnswerClaim, columns: Sequence[Sequence[int]]) -> bytes:
    """Return a proof of a claim, true or false, from τ and discrete logarithms of its columns.

    Args:
        claim: Over commitments under :func:`trapdoor`'s powers, public noise.
        columns: V_c(τ) of every chunk.
    """
    tau, _, _ = trapdoor()
    chunks, width, top = len(columns), SHAPE.bits, len(claim.ids)
    fresh = lambda count: [secrets.randbelow(R) for _ in range(count)]  # noqa: E731
    # Values at τ of everything that is committed to: whatever they are.
    held = [fresh(width + 4) for _ in range(chunks)]
    point = lambda value: encode_point(generator() * scalar(value))  # noqa: E731
    sent = [point(value) for part in held for value in part]
    talk = selection.AnswerConversation(claim.heads(SHAPE))
    kappa, c = talk.columns(sent)
    responses, values = fresh(top + 2 * chunks), fresh(width * chunks)
    # T(τ) such that F(τ) = Z(τ) T(τ): any will do, since the opening is divided by τ - ζ.
    quotient = secrets.randbelow(R)
    sent.append(point(quotient))
    zeta = talk.point(responses, sent[-1])
    mu = talk.weight(values)
    challenges = selection.AnswerChallenges(kappa, c, zeta, mu)
    factors, at_quotient = selection.chunk_factors(claim, SHAPE, challenges, responses, values)
    bits = [value for part in held for value in part[:width]]
    total = sum(pow(mu, i, R) * (b - v) for i, (b, v) in enumerate(zip(bits, values, strict=True)))
    total += at_quotient * quotient
    for part, own, factor in zip(columns, held, factors, strict=True):
        upper, named, *masks = own[width:]
        scores = sum(int(q) * v for q, v in zip(claim.query, part, strict=True))
        total += factor.scores * scores + factor.upper * upper + factor.own * named
        total += sum(f * x for f, x in zip(factor.masks, masks, strict=True)) + factor.constant
    sent.append(point(total * pow(tau - zeta, -1, R) % R))
    return Proof(claim.heads(SHAPE), tuple(sent), (*responses, *values)).encode()


# What a lie needs of algebra.


def root_of(value: int) -> int | None:
    """Return a square root modulo R (Tonelli and Shanks); None where there is none."""
    if pow(value, (R - 1) // 2, R) != 1:
        return 0 if value % R == 0 else None
    odd, twos = R - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    step, found, left = pow(7, odd, R), pow(value, (odd + 1) // 2, R), pow(value, odd, R)
    while left != 1:
        order, squared = 0, left
        while squared != 1:
            squared, order = squared * squared % R, order + 1
        factor = pow(step, 1 << twos - order - 1, R)
        twos, step = order, factor * factor % R
        found, left = found * factor % R, left * step % R
    return found


def solved(square: int, linear: int, constant: int) -> int | None:
    """Return x with square · x² + linear · x + constant = 0; None where there is none."""
    root = root_of((linear * linear - 4 * square * constant) % R)
    return None if root is None else (root - linear) * pow(2 * square, -1, R) % R


def left_over(
    claim: AnswerClaim,
    parts: Sequence[ChunkWitness],
    kappa: int,
    zeta: int,
    quotient: Sequence[int],
) -> int:
    """Return F(ζ) - Z(ζ) T(ζ): 0 for what is true."""
    basis, vanish = lagrange_at(SLOTS, zeta), vanishing(SLOTS, zeta)
    values = [x for part in parts for x in part.bits.at(basis, vanish, zeta)]
    nothing = [0] * (len(claim.ids) + 2 * len(parts))
    with without_places():
        held = selection.AnswerChallenges(kappa, 0, zeta, 1)
        factors, at_quotient = selection.chunk_factors(claim, SHAPE, held, nothing, values)
    total = at_quotient * dot(quotient, powers(zeta, len(quotient)))
    for part, factor in zip(parts, factors, strict=True):
        pairs = (
            (factor.scores, part.scores),
            (factor.upper, part.upper),
            (factor.own, part.own),
        )
        total += factor.constant
        total += sum(f * column.group.at(basis, vanish, zeta)[0] for f, column in pairs)
    return total % R
