"""COINS end to end: honest proofs pass, every lie is refused under the name of what it breaks."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from ragwitness.crypto.proofs.coins import prove as prover
from ragwitness.crypto.proofs.coins.prove import ProvedCoins, SecretCoins, prove_coins
from ragwitness.crypto.proofs.coins.statement import (
    CoinClaim,
    CoinProof,
    chunk_bytes,
    identity_holds,
    total_of,
)
from ragwitness.crypto.proofs.coins.verify import coin_equations
from ragwitness.crypto.proofs.opening import first_false
from ragwitness.crypto.proofs.points import G1_GENERATOR, R
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.provider import commit_columns, prove_selection
from ragwitness.crypto.proofs.selection.statement import SelectionClaim
from ragwitness.crypto.proofs.selection.verify import ClaimError, verify_selections
from ragwitness.errors import InputError
from tests.unit.crypto.proofs.coins.proving_coins import BITS, Liar, carried, forged, renamed

COEFFICIENTS = (1, 2, 4, 4, 8, 8)
CENTRE = sum(COEFFICIENTS) // 2


def numbers(count: int, seed: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(0, 1 << BITS, count).tolist())


def stated(
    setup: ProverSetup, chunks: int = 1, seed: int = 1, context: bytes = b"record"
) -> tuple[CoinClaim, SecretCoins]:
    count = chunks * setup.shape.slots
    secret = SecretCoins(numbers(count, seed), seed.to_bytes(32, "big"))
    committed = secret.commit(setup.powers, setup.shape.slots)
    return CoinClaim(BITS, committed, numbers(count, 99), context), secret


@pytest.fixture(scope="module")
def claim(link_setup: ProverSetup) -> CoinClaim:
    return stated(link_setup)[0]


@pytest.fixture(scope="module")
def secret(link_setup: ProverSetup) -> SecretCoins:
    return stated(link_setup)[1]


@pytest.fixture(scope="module")
def made(link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins) -> ProvedCoins:
    return prove_coins(link_setup, claim, secret)


def check(setup: ProverSetup, claim: CoinClaim, proof: bytes) -> None:
    _, equations = coin_equations(setup.verifier, [claim], [proof])
    wrong = first_false(equations)
    if wrong:
        raise ClaimError(wrong.check, "", wrong.place)


def refused(name: str, setup: ProverSetup, claim: CoinClaim, proof: bytes) -> None:
    with pytest.raises(ClaimError) as caught:
        check(setup, claim, proof)
    assert caught.value.check == name, caught.value.message


def test_an_honest_proof_passes(
    link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins
) -> None:
    data = made.proof.encode()
    check(link_setup, claim, data)
    assert len(data) == 32 + chunk_bytes(BITS)


@pytest.mark.parametrize("seed", range(4))
def test_honest_proofs_of_any_numbers_pass_in_any_number_of_chunks(
    link_setup: ProverSetup, seed: int
) -> None:
    claim, secret = stated(link_setup, chunks=1 + seed % 3, seed=seed + 10)
    made = prove_coins(link_setup, claim, secret)
    check(link_setup, claim, made.proof.encode())
    sums = [(a + p) % (1 << BITS) for a, p in zip(secret.numbers, claim.public, strict=True)]
    assert (made.bits @ (1 << np.arange(BITS))).tolist() == sums


def test_a_proof_made_again_is_the_same_one(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins, made: ProvedCoins
) -> None:
    """Another one would open the commitment at two points more, and three blinds hide three."""
    again = prove_coins(link_setup, claim, secret)
    assert again.proof.encode() == made.proof.encode()
    other = prove_coins(link_setup, replace(claim, context=b"another"), secret)
    assert other.proof.chunks[0].columns != made.proof.chunks[0].columns


# Forgeries.


def test_the_forger_without_a_lie_passes(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    check(link_setup, claim, forged(link_setup, claim, secret, lambda columns: columns))


def test_a_bit_of_two_is_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    def lie(columns: prover._Columns) -> prover._Columns:
        slot = int(np.flatnonzero(columns.bits[:, 4])[0])
        columns.bits[slot, 3] += 2  # the sum stays what it was
        columns.bits[slot, 4] -= 1
        return columns

    refused("coins.bits", link_setup, claim, forged(link_setup, claim, secret, lie))


def test_bits_of_another_sum_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    def lie(columns: prover._Columns) -> prover._Columns:
        columns.bits[5, 2] ^= 1
        return columns

    refused("coins.sum", link_setup, claim, forged(link_setup, claim, secret, lie))


def test_a_carry_out_of_range_is_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    def lie(columns: prover._Columns) -> prover._Columns:
        columns.bits[5, 2] ^= 1  # any noise one likes, and a carry that makes up for it
        return carried(columns, claim, secret)

    refused("coins.bits", link_setup, claim, forged(link_setup, claim, secret, lie))


def test_numbers_of_too_many_bits_are_refused(link_setup: ProverSetup, claim: CoinClaim) -> None:
    """They need no proof of their own: the carry is then no bit."""
    big = SecretCoins((*numbers(7, 1), 3 << BITS), bytes(32))
    claim = replace(claim, committed=big.commit(link_setup.powers, 8))
    with pytest.raises(InputError, match="secret numbers of 6 bits"):
        prove_coins(link_setup, claim, big)
    lie = lambda columns: carried(columns, claim, big)  # noqa: E731
    refused("coins.bits", link_setup, claim, forged(link_setup, claim, big, lie))


def test_noise_moved_to_one_slot_is_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    def lie(columns: prover._Columns) -> prover._Columns:
        columns.bits[:, :BITS] = 0
        columns.bits[2, :BITS] = 1
        return columns

    refused("coins.sum", link_setup, claim, forged(link_setup, claim, secret, lie))
    both = lambda columns: carried(lie(columns), claim, secret)  # noqa: E731
    refused("coins.bits", link_setup, claim, forged(link_setup, claim, secret, both))


def test_another_record_s_commitment_is_refused(
    link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins, secret: SecretCoins
) -> None:
    other, other_secret = stated(link_setup, seed=2)
    refused("coins.statement", link_setup, other, made.proof.encode())
    # Made for this record, with the numbers of that one.
    refused("coins.sum", link_setup, claim, forged(link_setup, claim, other_secret, lambda c: c))
    refused("coins.bits", link_setup, other, renamed(made.proof.encode(), other, link_setup))


@pytest.mark.parametrize("place", [0, 7])
def test_other_public_coins_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins, secret: SecretCoins, place: int
) -> None:
    public = list(claim.public)
    public[place] ^= 1 << 3
    other = replace(claim, public=tuple(public))
    refused("coins.statement", link_setup, other, made.proof.encode())
    refused("coins.bits", link_setup, other, renamed(made.proof.encode(), other, link_setup))
    # Bits of the sum that the prover would have liked, under the verifier's coins.
    wanted = prove_coins(link_setup, claim, secret).bits

    def lie(columns: prover._Columns) -> prover._Columns:
        columns.bits[:, :BITS] = wanted
        return columns

    refused("coins.sum", link_setup, other, forged(link_setup, other, secret, lie))


@pytest.mark.parametrize("change", ["context", "bits"])
def test_a_proof_under_another_context_or_size_is_refused(
    link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins, change: str
) -> None:
    if change == "context":
        refused("coins.statement", link_setup, replace(claim, context=b"x"), made.proof.encode())
    else:
        refused("coins.size", link_setup, replace(claim, bits=BITS + 1), made.proof.encode())


def test_ends_chosen_after_the_challenge_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    """With ξ known first, G(ξ) would make up for any bit: so ξ follows from [G]."""

    def lie(columns: prover._Columns) -> prover._Columns:
        columns.bits[5, 2] ^= 1
        return carried(columns, claim, secret)

    kept: list[prover._Columns] = []

    def keep(columns: prover._Columns) -> prover._Columns:
        kept.append(lie(columns))
        return kept[0]

    proof = CoinProof.parse(forged(link_setup, claim, secret, keep), BITS, 1)
    [part] = proof.chunks
    # What G(ξ) has to be for the identity to hold under the challenges of this conversation.
    talk = prover.CoinConversation.begin(link_setup.verifier, claim, 0)
    kappa = talk.weight(part.columns)
    xi, omega = talk.point(part.ends, part.masks, part.constant)
    z = talk.place(part.sides)
    due = kept[0].coefficients(kappa, xi)[10] * pow(xi, -8, R) % R
    total = total_of(xi, omega, 8, due, part.constant)
    assert identity_holds((kappa, xi, omega, z), 8, part.values, total)
    late = replace(part, end=due, ends=prover.native_commit(link_setup.powers, [due]))
    refused("coins.bits", link_setup, claim, replace(proof, chunks=(late,)).encode())
    # Left as it was committed, it opens to nothing else.
    other = replace(proof, chunks=(replace(part, end=due),))
    refused("coins.opening", link_setup, claim, other.encode())


def test_ends_without_the_blinds_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    class Bare(Liar):
        def ends(self, kappa: int) -> list[int]:
            return [0, 0, 0]

    lie = lambda c: Bare(c.bits, c.blinds, c.mask)  # noqa: E731
    refused("coins.bits", link_setup, claim, forged(link_setup, claim, secret, lie))


def test_dropped_blinds_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, secret: SecretCoins
) -> None:
    def lie(columns: prover._Columns) -> prover._Columns:
        columns.blinds[3] = [0, 0, 0]
        return columns

    refused("coins.sum", link_setup, claim, forged(link_setup, claim, secret, lie))


def test_swapped_evaluations_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins
) -> None:
    part = made.proof.chunks[0]
    values = part.values

    def swapped(row: tuple[int, ...]) -> tuple[int, ...]:
        return (row[1], row[0], *row[2:])

    for other in (
        replace(values, upper=values.lower, lower=values.upper),
        replace(values, upper=swapped(values.upper), lower=swapped(values.lower)),
        replace(values, a=values.b, b=values.a),
    ):
        proof = CoinProof(made.proof.statement, (replace(part, values=other),))
        refused("coins.bits", link_setup, claim, proof.encode())


def test_evaluations_that_keep_the_identity_are_refused(
    link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins
) -> None:
    """P(z) and Q(1/z) may be moved so that the identity holds; their openings then do not."""
    part = made.proof.chunks[0]
    talk = prover.CoinConversation.begin(link_setup.verifier, claim, 0)
    talk.weight(part.columns)
    talk.point(part.ends, part.masks, part.constant)
    z = talk.place(part.sides)
    values = replace(part.values, p=(part.values.p + 1) % R, q=(part.values.q - z * z) % R)
    proof = CoinProof(made.proof.statement, (replace(part, values=values),))
    refused("coins.opening", link_setup, claim, proof.encode())


def test_every_field_is_bound(link_setup: ProverSetup, claim: CoinClaim, made: ProvedCoins) -> None:
    """One point or scalar after the other is replaced by another valid one."""
    data = made.proof.encode()
    starts = [32 + 64 * i for i in range(BITS + 2 + 10)]
    first = starts[-1] + 64
    for start in starts:
        point = b"".join(value.to_bytes(32, "big") for value in G1_GENERATOR)
        with pytest.raises(ClaimError):
            check(link_setup, claim, data[:start] + point + data[start + 64 :])
    for start in range(first, len(data), 32):
        value = (int.from_bytes(data[start : start + 32], "big") + 1) % R
        with pytest.raises(ClaimError):
            check(link_setup, claim, data[:start] + value.to_bytes(32, "big") + data[start + 32 :])
    with pytest.raises(ClaimError):
        check(link_setup, claim, bytes([data[0] ^ 1]) + data[1:])


@pytest.mark.parametrize(
    ("spoiled", "name"),
    [
        (lambda data: data[:-1], "coins.size"),
        (lambda data: data + bytes(32), "coins.size"),
        (lambda data: data[:32] + b"\xff" * 32 + data[64:], "point.field"),
        (lambda data: data[:32] + bytes(63) + b"\x01" + data[96:], "point.curve"),
        (lambda data: data[:-32] + b"\xff" * 32, "point.field"),
    ],
)
def test_bytes_that_are_no_proof_are_refused(link_setup, claim, made, spoiled, name) -> None:
    refused(name, link_setup, claim, spoiled(made.proof.encode()))


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 0},
        {"bits": 241},
        {"committed": ()},
        {"public": (0,) * 7},
        {"public": (1 << BITS,) + (0,) * 7},
        {"public": (-1,) + (0,) * 7},
    ],
)
def test_a_claim_that_cannot_be_proved_is_refused(link_setup, claim, made, change) -> None:
    assert set(change) <= {each.name for each in fields(CoinClaim)}
    refused("coins.claim", link_setup, replace(claim, **change), made.proof.encode())


# The selection over committed noise.


def selected(setup, chunks=1, seed=1, context=b"record"):
    rng = np.random.default_rng(seed)
    capacity = chunks * setup.shape.slots
    columns = commit_columns(rng.integers(-4, 5, (capacity, 4)).astype(np.int16), setup)
    claim, secret = stated(setup, chunks, seed, context)
    made = prove_coins(setup, claim, secret)
    hidden = made.hidden(COEFFICIENTS)
    query = np.array([3, -2, 1, 5], np.int16)
    noisy = columns.rows.astype(np.int64) @ query + hidden.values - CENTRE
    ids = tuple(np.argsort(-noisy, kind="stable")[:3].tolist())
    noise = np.full(capacity, -CENTRE, np.int64)
    proof = prove_selection(setup, columns, query, noise, ids, context, hidden)
    link = SelectionClaim(columns.public, query, noise, ids, context, hidden.terms)
    return claim, made.proof.encode(), link, proof


def both(setup, parts):
    coins, coin_proofs, links, proofs = zip(*parts, strict=True)
    _, beside = coin_equations(setup.verifier, coins, coin_proofs)
    verify_selections(setup.verifier, links, proofs, beside)


def test_selections_over_committed_noise_pass_together(link_setup: ProverSetup) -> None:
    both(
        link_setup,
        [selected(link_setup, 1 + i % 2, i + 1, f"record {i}".encode()) for i in range(3)],
    )


def test_committed_noise_of_another_record_is_refused(link_setup: ProverSetup) -> None:
    one, two = selected(link_setup), selected(link_setup, seed=2, context=b"two")
    lie = replace(one[2], hidden=two[2].hidden)
    with pytest.raises(ClaimError) as caught:
        both(link_setup, [(two[0], two[1], lie, one[3])])
    assert caught.value.check == "link.noise"


def test_noise_that_is_not_the_proved_bits_map_is_refused(link_setup: ProverSetup) -> None:
    coin, coin_proof, link, proof = selected(link_setup)
    [part] = link.hidden
    moved = ((part[0][0] + 1, part[0][1]), *part[1:])
    with pytest.raises(ClaimError) as caught:
        both(link_setup, [(coin, coin_proof, replace(link, hidden=(moved,)), proof)])
    assert caught.value.check == "link.noise"
    with pytest.raises(ClaimError) as caught:
        both(link_setup, [(coin, coin_proof, replace(link, hidden=()), proof)])
    assert caught.value.check == "link.noise"


def test_an_answer_ranked_without_its_noise_cannot_be_proved(link_setup: ProverSetup) -> None:
    columns = commit_columns(np.eye(8, 4, dtype=np.int16) * 9, link_setup)
    claim, secret = stated(link_setup)
    hidden = prove_coins(link_setup, claim, secret).hidden(COEFFICIENTS)
    hidden.values[:] = 0  # the numbers that the prover would have liked
    noise, query = np.full(8, -CENTRE, np.int64), np.array([4, 3, 2, 1], np.int16)
    data = prove_selection(link_setup, columns, query, noise, (0, 1, 2), b"record", hidden)
    link = SelectionClaim(columns.public, query, noise, (0, 1, 2), b"record", hidden.terms)
    with pytest.raises(ClaimError) as caught:
        verify_selections(link_setup.verifier, [link], [data])
    assert caught.value.check == "link.scores"


def test_committed_noise_beyond_the_reach_is_refused(link_setup: ProverSetup) -> None:
    coin, coin_proof, link, proof = selected(link_setup)
    far = tuple(tuple((scalar * 100, point) for scalar, point in part) for part in link.hidden)
    with pytest.raises(ClaimError) as caught:
        both(link_setup, [(coin, coin_proof, replace(link, hidden=far), proof)])
    assert caught.value.check == "link.claim"


def test_a_false_proof_among_true_ones_is_named(link_setup: ProverSetup) -> None:
    parts = [selected(link_setup, seed=i + 1, context=str(i).encode()) for i in range(3)]
    coin, secret = stated(link_setup, seed=2, context=b"1")

    def lie(columns: prover._Columns) -> prover._Columns:
        columns.bits[1, 0] ^= 1
        return columns

    bad = forged(link_setup, coin, secret, lie)
    parts[1] = (coin, bad, *parts[1][2:])
    with pytest.raises(ClaimError) as caught:
        both(link_setup, parts)
    assert (caught.value.check, caught.value.place) == ("coins.sum", 1)


def test_as_many_proofs_as_claims(link_setup: ProverSetup, claim: CoinClaim) -> None:
    with pytest.raises(InputError, match="as many proofs"):
        coin_equations(link_setup.verifier, [claim], [])
