"""LINK, the prover's side (docs/design/link.md; rounds as in ``statement``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.circuits.link import (
    link_commitment,
    link_margins,
    threshold_commitment,
)
from ragwitness.crypto.proofs.groth16 import Proof
from ragwitness.crypto.proofs.native import native_commit
from ragwitness.crypto.proofs.opening import divide, mask_responses
from ragwitness.crypto.proofs.points import G1, R
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.secret import SecretColumns, draw_scalar
from ragwitness.crypto.proofs.selection.statement import (
    ChunkProof,
    SelectionClaim,
    SelectionProof,
    active,
    challenges,
    check_claim,
    noise_digest,
    order_shifts,
    statement_digest,
)
from ragwitness.crypto.proofs.setup import MASKS
from ragwitness.errors import InputError, VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class HiddenNoise:
    """Noise that is committed to and not opened, as its prover knows it.

    Attributes:
        terms: Per chunk scalars and commitments, whose sum commits to it.
        values: Values of every slot, int64, shape (capacity,).
        blinds: Per chunk the three coefficients behind the slots.
    """

    terms: tuple[tuple[tuple[int, G1], ...], ...]
    values: NDArray[np.int64]
    blinds: tuple[Sequence[int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """A chunk's secrets, and what of them is sent in round 2."""

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
    """What all chunks share: the winners' values, and hT, the commitment to them."""

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
    hidden: HiddenNoise | None = None,
) -> bytes:
    """Prove that ``ids`` are the highest of V·query + noise, best first, ties by slot.

    Args:
        setup: Setup of the window.
        secret: The index V and its blinds.
        query: Integer vector, int16, shape (dimension,).
        noise: Noise of every slot, int64, shape (capacity,); what of it is opened.
        ids: The answer that was given, K slots.
        context: What the proof is bound to besides, e.g. the hash of the log's record.
        hidden: What of the noise is committed to instead.

    Returns:
        96 bytes and 640 for each chunk. Two proofs of one claim have nothing in common but the
        hashes of what is claimed.

    Raises:
        InputError: The answer is not the one that query, noise and index give, or a value does not
            fit the setup.
        MissingExtraError: zksnake or py_ecc is not installed.
    """
    terms = hidden.terms if hidden else ()
    claim = SelectionClaim(secret.public, query, noise, ids, context, terms)
    try:
        check_claim(claim, setup.shape)
    except VerificationError as error:
        raise InputError(
            error.message, "Use the setup, the noise and the index of one window."
        ) from error
    inner = secret.rows.astype(np.int64) @ query.astype(np.int64)
    blinds: tuple[Sequence[int], ...] = ((0,) * MASKS,) * len(secret.blinds)
    if hidden is not None:  # committed noise stands beside the scores, with blinds of its own
        inner, blinds = inner + hidden.values, hidden.blinds
    # No proof can be made of another answer than the mechanism's.
    best = tuple(np.argsort(-(inner + noise), kind="stable")[: len(ids)].tolist())
    if best != ids:
        raise InputError(
            f"The answer names the slots {list(ids)}; score plus noise puts {list(best)} first.",
            "No proof can be made of another answer than the mechanism's.",
        )
    return _prove(setup, secret, claim, inner, blinds).encode()


def _prove(
    setup: ProverSetup,
    secret: SecretColumns,
    claim: SelectionClaim,
    inner: NDArray[np.int64],
    blinds: Sequence[Sequence[int]],
) -> SelectionProof:
    # Round 1, statement: the hash of the claim, and apart from it that of the noise.
    digests = statement_digest(setup.verifier.digest_bytes, claim), noise_digest(claim)

    # The secret: z_j = 2(⟨v_j, q⟩ + η_j) + s_j, where s_j = 1 up to the last slot of the answer;
    # ``inner`` has ⟨v_j, q⟩ and what of η_j is committed to.
    noisy = 2 * (inner + claim.noise) + claim.early
    best = [int(noisy[slot]) for slot in claim.ids]

    # Round 2, commit: hT to the winners' values, then C_m, A_m and hW of every chunk.
    salt = draw_scalar()
    answer = _Answer(best, salt, threshold_commitment([z % R for z in best], salt))
    chunks = [
        _commit(setup, secret, claim, (inner, noisy), chunk, blinds[chunk])
        for chunk in range(len(claim.columns.chunks))
    ]

    # Challenge: r and c, after the messages of all chunks.
    sent = ((held.mask, held.first, held.margins) for held in chunks)
    point, challenge = challenges(*digests, answer.threshold, sent)

    # Round 3, respond: every chunk at the same r.
    parts = [
        _respond(setup, claim, answer, held, (number, point, challenge))
        for number, held in enumerate(chunks)
    ]
    return SelectionProof(*digests, answer.threshold, tuple(parts))


def _commit(
    setup: ProverSetup,
    secret: SecretColumns,
    claim: SelectionClaim,
    values: tuple[NDArray[np.int64], NDArray[np.int64]],
    chunk: int,
    added: Sequence[int],
) -> _Chunk:
    """Round 2 for one chunk: everything that has to be sent before the challenges."""
    shape = setup.shape
    part = slice(chunk * shape.slots, (chunk + 1) * shape.slots)
    inner, noisy = (value[part].tolist() for value in values)

    # C_m: three fresh masks at the powers above the scores', new in every proof.
    bases = setup.powers[shape.slots :]
    drawn = tuple(draw_scalar() for _ in range(MASKS))
    # A_m: Okamoto's first message, that C_m is a mask and changes no score.
    nonces = tuple(draw_scalar() for _ in range(MASKS))

    # M_i = 2 Σ_c q_c blind_(c,i) + m_i: what stands above the scores in Y, with the blinds of the
    # columns and of committed noise.
    query = claim.query.tolist()
    effective = tuple(
        (2 * (sum(q * c[i] for q, c in zip(query, secret.blinds[chunk], strict=True)) + a) + m) % R
        for i, (a, m) in enumerate(zip(added, drawn, strict=True))
    )

    # hW: margins w_j (z_j - t for a winner, t - z_j - 1 for the rest) and the masks M_i.
    here, slots = active(claim.ids, chunk, shape.slots)
    winners = {slot for held, slot in zip(here, slots, strict=True) if held}
    threshold = 2 * int(values[0][claim.ids[-1]] + claim.noise[claim.ids[-1]]) + 1
    gaps = link_margins(noisy, threshold, winners)
    return _Chunk(
        [2 * score for score in inner],
        noisy,
        drawn,
        effective,
        nonces,
        native_commit(bases, drawn),
        native_commit(bases, nonces),
        link_commitment(shape, gaps, effective),
    )


def _respond(
    setup: ProverSetup,
    claim: SelectionClaim,
    answer: _Answer,
    held: _Chunk,
    at: tuple[int, int, int],
) -> ChunkProof:
    """Round 3 for one chunk, after the challenges ``at`` = (chunk's number, r, c)."""
    chunk, point, challenge = at
    # e = Y(r), and the quotient W = (Y - e) / (X - r) that opens C_Y there.
    value, quotient = divide([*held.scores, *held.effective], point)
    witness = native_commit(setup.powers, quotient)
    # ez = e + Σ_j (2η_j + s_j) r^j: what the circuit ranks.
    noisy = (value + claim.shift(point, chunk, setup.shape.slots)) % R
    # k_i + c·m_i: Okamoto's last message.
    responses = mask_responses(held.drawn, held.nonces, challenge)
    # Groth16: under hW and hT the named slots hold the highest z, in order, and ez is theirs.
    proof = _select(setup, claim, answer, held, (chunk, point, noisy))
    return ChunkProof(held.mask, held.first, held.margins, responses, value, noisy, witness, proof)


def _select(
    setup: ProverSetup,
    claim: SelectionClaim,
    answer: _Answer,
    held: _Chunk,
    at: tuple[int, int, int],
) -> Proof:
    """The circuit's proof, for ``at`` = (chunk's number, r, its noisy polynomial at r)."""
    chunk, point, value = at
    here, slots = active(claim.ids, chunk, setup.shape.slots)
    # Public: hW, hT, ez, r, which of ``ids`` lie here and where, order. Secret: z, best, masks.
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
