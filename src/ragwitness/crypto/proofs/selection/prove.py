"""LINK, the prover's side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.circuits import (
    link_commitment,
    link_margins,
    threshold_commitment,
)
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.groth16 import Proof
from ragwitness.crypto.proofs.native import from_native_g1, native_msm
from ragwitness.crypto.proofs.opening import divide, mask_responses
from ragwitness.crypto.proofs.points import G1
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.secret import SecretColumns, draw_scalar
from ragwitness.crypto.proofs.selection.format import (
    ChunkProof,
    SelectionProof,
    challenges,
)
from ragwitness.crypto.proofs.selection.statement import (
    Claim,
    active,
    check_claim,
    noise_digest,
    order_shifts,
    statement_digest,
)
from ragwitness.crypto.proofs.shape import MASKS
from ragwitness.errors import InputError, VerificationError

__all__ = ["prove_selection"]


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """A chunk's secrets and what is sent of them before the challenges."""

    scores: list[int]
    """Inner products, doubled; without noise."""
    noisy: list[int]
    """z_j: with noise and the bit that breaks ties."""
    drawn: tuple[int, ...]
    """The masks m_i of this proof."""
    effective: tuple[int, ...]
    """M_i: with the columns' blinds."""
    nonces: tuple[int, ...]
    mask: G1
    first: G1
    margins: int


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is shared by all chunks."""

    best: list[int]
    salt: int
    threshold: int


def prove_selection(
    setup: ProverSetup,
    secret: SecretColumns,
    query: NDArray[np.int16],
    noise: NDArray[np.int64],
    ids: tuple[int, ...],
    context: bytes,
) -> bytes:
    """Prove that ``ids`` are the highest of V·query + noise, best first, ties by slot.

    Args:
        setup: Of the window.
        secret: The index V and its blinds.
        query: Integer vector, int16, shape (dimension,).
        noise: Of every slot, int64, shape (capacity,).
        ids: The answer that was given, K slots.
        context: What the proof is bound to besides, e.g. the hash of the log's record.

    Returns:
        96 bytes and 640 for each chunk. Two proofs of one claim have nothing in common but the
        hashes of what is claimed.

    Raises:
        InputError: The answer is not the one that query, noise and index give, or a value does not
            fit the setup.
        MissingExtraError: zksnake or py_ecc is not installed.
    """
    claim = Claim(secret.public, query, noise, ids, context)
    try:
        check_claim(claim, setup.shape)
    except VerificationError as error:
        raise InputError(
            error.message, "Use the setup, the noise and the index of one window."
        ) from error
    inner = secret.rows.astype(np.int64) @ query.astype(np.int64)
    _check_answer(inner + noise, ids)
    return _prove(setup, secret, claim, inner).encode()


def _check_answer(noisy: NDArray[np.int64], ids: tuple[int, ...]) -> None:
    best = tuple(np.argsort(-noisy, kind="stable")[: len(ids)].tolist())
    if best != ids:
        raise InputError(
            f"The answer names the slots {list(ids)}; score plus noise puts {list(best)} first.",
            "No proof can be made of another answer than the mechanism's.",
        )


def _prove(
    setup: ProverSetup, secret: SecretColumns, claim: Claim, inner: NDArray[np.int64]
) -> SelectionProof:
    noisy = 2 * (inner + claim.noise) + claim.early
    best = [int(noisy[slot]) for slot in claim.ids]
    salt = draw_scalar()
    answer = _Answer(best, salt, threshold_commitment([z % R for z in best], salt))
    chunks = [
        _commit(setup, secret, claim, (inner, noisy), chunk)
        for chunk in range(len(claim.columns.chunks))
    ]
    digests = statement_digest(setup.verifier.digest_bytes, claim), noise_digest(claim)
    sent = ((held.mask, held.first, held.margins) for held in chunks)
    point, challenge = challenges(*digests, answer.threshold, sent)
    parts = [
        _respond(setup, claim, answer, held, (number, point, challenge))
        for number, held in enumerate(chunks)
    ]
    return SelectionProof(*digests, answer.threshold, tuple(parts))


def _commit(
    setup: ProverSetup,
    secret: SecretColumns,
    claim: Claim,
    values: tuple[NDArray[np.int64], NDArray[np.int64]],
    chunk: int,
) -> _Chunk:
    """Everything that has to be said before the challenges."""
    shape = setup.shape
    part = slice(chunk * shape.slots, (chunk + 1) * shape.slots)
    inner, noisy = (value[part].tolist() for value in values)
    drawn = tuple(draw_scalar() for _ in range(MASKS))
    nonces = tuple(draw_scalar() for _ in range(MASKS))
    effective = _effective(claim.query.tolist(), secret.blinds[chunk], drawn)
    here, slots = active(claim.ids, chunk, shape.slots)
    winners = {slot for held, slot in zip(here, slots, strict=True) if held}
    threshold = 2 * int(values[0][claim.ids[-1]] + claim.noise[claim.ids[-1]]) + 1
    gaps = link_margins(noisy, threshold, winners)
    bases = setup.powers[shape.slots :]
    return _Chunk(
        [2 * score for score in inner],
        noisy,
        drawn,
        effective,
        nonces,
        _point(bases, drawn),
        _point(bases, nonces),
        link_commitment(shape, gaps, effective),
    )


def _effective(
    query: Sequence[int], blinds: Sequence[Sequence[int]], drawn: Sequence[int]
) -> tuple[int, ...]:
    """M_i = 2 Σ_c q_c · blind_(c,i) + m_i."""
    return tuple(
        (2 * sum(q * column[i] for q, column in zip(query, blinds, strict=True)) + mask) % R
        for i, mask in enumerate(drawn)
    )


def _respond(
    setup: ProverSetup, claim: Claim, answer: _Answer, held: _Chunk, at: tuple[int, int, int]
) -> ChunkProof:
    """Everything that is said after the challenges ``at`` = (chunk's number, r, c)."""
    chunk, point, challenge = at
    value, quotient = divide([*held.scores, *held.effective], point)
    noisy = (value + claim.shift(point, chunk, setup.shape.slots)) % R
    responses = mask_responses(held.drawn, held.nonces, challenge)
    witness = _point(setup.powers[: len(quotient)], quotient)
    proof = _select(setup, claim, answer, held, (chunk, point, noisy))
    return ChunkProof(held.mask, held.first, held.margins, responses, value, noisy, witness, proof)


def _select(
    setup: ProverSetup, claim: Claim, answer: _Answer, held: _Chunk, at: tuple[int, int, int]
) -> Proof:
    """The circuit's proof, for ``at`` = (chunk's number, r, its noisy polynomial at r)."""
    chunk, point, value = at
    here, slots = active(claim.ids, chunk, setup.shape.slots)
    inputs = {
        "margins": [held.margins],
        "threshold": [answer.threshold],
        "value": [value],
        "point": [point],
        "active": here,
        "ids": slots,
        "order": order_shifts(claim.ids),
        "scores": [score % R for score in held.noisy],
        "best": [score % R for score in answer.best],
        "salt": [answer.salt],
        "masks": list(held.effective),
    }
    return setup.prove_link(inputs)


def _point(bases: Sequence[Any], scalars: Sequence[int]) -> G1:
    return from_native_g1(native_msm(bases, scalars))
