"""LINK end to end: true answers pass, every lie is refused under the name of the step it breaks."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.crypto.proofs import curve
from ragwitness.crypto.proofs.opening import Columns
from ragwitness.crypto.proofs.points import P, R
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.provider import commit_columns, prove_selection
from ragwitness.crypto.proofs.secret import SecretColumns
from ragwitness.crypto.proofs.selection.statement import (
    CHUNK_BYTES,
    HEAD_BYTES,
    SelectionClaim,
    SelectionProof,
)
from ragwitness.crypto.proofs.selection.verify import ClaimError, verify_selections
from ragwitness.errors import InputError, MissingExtraError
from ragwitness.privacy.mechanism.release import select
from tests.unit.crypto.proofs.selection.proving_link import Forger, claim_of, replaced

pytestmark = pytest.mark.usefixtures("arithmetic")

QUERY = np.array([9, -7, 5, -2], np.int16)
ROWS = np.array(
    [
        [9, -7, 5, -2],
        [1, 2, 3, 4],
        [8, -8, 4, 0],
        [0, 0, 0, 0],
        [-9, 7, -5, 2],
        [3, 3, -3, 3],
        [0, 0, 0, 0],
        [2, -9, 9, 1],
    ],
    np.int16,
)
NOISE = np.array([3, -50, 20, 0, 100, -7, 0, -31], np.int64)


@pytest.fixture(scope="module")
def secret(link_setup: ProverSetup) -> SecretColumns:
    return commit_columns(ROWS, link_setup)


@pytest.fixture(scope="module")
def claim(secret: SecretColumns) -> SelectionClaim:
    return claim_of(secret, QUERY, NOISE)


@pytest.fixture(scope="module")
def proof(link_setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim) -> bytes:
    return proved(link_setup, secret, claim)


def proved(setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim) -> bytes:
    return prove_selection(setup, secret, claim.query, claim.noise, claim.ids, claim.context)


def refused(check: str, setup: ProverSetup, claim: SelectionClaim, proof: bytes) -> ClaimError:
    with pytest.raises(ClaimError) as caught:
        verify_selections(setup.verifier, [claim], [proof])
    assert caught.value.check == check, caught.value.message
    assert "Proof 0" in caught.value.message
    return caught.value


def test_a_true_answer_passes(link_setup: ProverSetup, claim: SelectionClaim, proof: bytes) -> None:
    verify_selections(link_setup.verifier, [claim], [proof])
    assert len(proof) == HEAD_BYTES + CHUNK_BYTES == 736


def test_the_forger_without_a_lie_passes(
    link_setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim
) -> None:
    verify_selections(link_setup.verifier, [claim], [Forger(link_setup, secret, claim).prove()])


def test_ties_and_their_order_pass_in_several_chunks(link_setup: ProverSetup) -> None:
    """Winners, ties and losers of ties on both sides of the chunks' borders, all at once."""
    claims, proofs = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = np.repeat(rng.integers(-4, 5, (4, 4)), 6, axis=0)[rng.permutation(24)]
        secret = commit_columns(rows.astype(np.int16), link_setup)
        noise = rng.integers(-1, 2, 24)
        claim = claim_of(secret, QUERY, noise)
        noisy = rows @ QUERY.astype(np.int64) + noise
        assert select(noisy, 3).ids == claim.ids
        claims.append(claim)
        proofs.append(proved(link_setup, secret, claim))
    verify_selections(link_setup.verifier, claims, proofs)
    assert len(proofs[0]) == HEAD_BYTES + 3 * CHUNK_BYTES


def test_a_false_score_at_an_untouched_slot_is_refused_in_every_variant(
    link_setup: ProverSetup, secret: SecretColumns
) -> None:
    """What the paper's optimised circuit accepts: the best document is scored down."""
    true = claim_of(secret, QUERY, NOISE)
    best = true.ids[0]
    lie = {best: -400}
    shown = tuple(slot for slot in _ranked() if slot != best)[:3]
    claim = replace(true, ids=shown)
    forger = Forger(link_setup, secret, claim, lie=lie)
    refused("link.noise", link_setup, claim, forger.prove())  # e true, so ez does not follow
    forger.open_lie = True
    refused("link.scores", link_setup, claim, forger.prove())  # e follows, so the opening is false
    forger.extra = {best: -400}
    refused("link.mask", link_setup, claim, forger.prove())  # C_m carries the lie
    late = Forger(link_setup, secret, claim, lie=lie, late_mask=True)
    refused("link.noise", link_setup, claim, late.prove())  # solved for r, but then r is another


def test_a_lie_that_changes_no_answer_is_refused_too(
    link_setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim
) -> None:
    worst = _ranked()[-1]
    forger = Forger(link_setup, secret, claim, lie={worst: -2}, open_lie=True)
    refused("link.scores", link_setup, claim, forger.prove())


def _ranked() -> list[int]:
    noisy = (ROWS.astype(np.int64) @ QUERY + NOISE).tolist()
    return sorted(range(len(noisy)), key=lambda slot: (-noisy[slot], slot))


@pytest.mark.parametrize(
    ("other", "check"),
    [((2, 0, 7), "link.noise"), ((0, 2, 3), "link.selection"), ((2, 0, 6), "link.noise")],
    ids=["worse", "swapped", "tie"],
)
def test_another_answer_cannot_be_proved_nor_claimed(
    link_setup: ProverSetup, secret: SecretColumns, other: tuple[int, ...], check: str
) -> None:
    noise = NOISE.copy()
    noise[[3, 6]] = 100  # two empty slots tie for the last place
    true = claim_of(secret, QUERY, noise)
    assert true.ids == (2, 0, 3)
    claim = replace(true, ids=other)
    with pytest.raises(InputError, match="names the slots"):
        proved(link_setup, secret, claim)
    with pytest.raises(InputError):  # the circuit has no witness, or no margin fits
        Forger(link_setup, secret, claim).prove()
    forger = Forger(link_setup, secret, claim, answer=true.ids)  # the true ids, told as others
    refused(check, link_setup, claim, forger.prove())


def test_a_proof_holds_for_its_own_claim_alone(
    link_setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim, proof: bytes
) -> None:
    other = commit_columns(ROWS, link_setup).public
    noise = claim.noise.copy()
    noise[5] += 1
    query = claim.query.copy()
    query[3] += 1
    first, second, third = claim.ids
    for changed in (
        replace(claim, columns=other),
        replace(claim, columns=Columns((claim.columns.chunks[0][::-1],))),
        replace(claim, context=b"another record"),
        replace(claim, query=query),
        replace(claim, ids=(second, first, third)),
    ):
        refused("link.statement", link_setup, changed, proof)
    refused("link.noise", link_setup, replace(claim, noise=noise), proof)


@pytest.mark.parametrize("part", ["noise", "query", "context"])
def test_with_the_hashes_put_right_a_proof_of_another_claim_still_fails(
    link_setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim, proof: bytes, part: str
) -> None:
    """The hashes in the proof are for its name alone: r is another, and so nothing follows."""
    noise = claim.noise.copy()
    noise[0] += 1
    changes = {"noise": noise, "query": -claim.query, "context": b"x"}
    changed = replace(claim, **{part: changes[part]})
    forged = b"".join(Forger(link_setup, secret, changed).digests) + proof[64:]
    refused("link.noise", link_setup, changed, forged)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda proof: b"", "link.size"),
        (lambda proof: proof[:-1], "link.size"),
        (lambda proof: proof + b"\0", "link.size"),
        (lambda proof: proof + proof[HEAD_BYTES:], "link.size"),
        (lambda proof: replaced(proof, 64, R.to_bytes(32, "big")), "point.field"),
        (lambda proof: replaced(proof, 96, P.to_bytes(32, "big")), "point.field"),
        (lambda proof: replaced(proof, 96, bytes(63) + b"\1"), "point.curve"),
        (lambda proof: replaced(proof, 96, bytes(64)), "link.noise"),
        (lambda proof: replaced(proof, 480, bytes(64)), "link.selection"),
        (lambda proof: replaced(proof, 672, bytes(64)), "link.selection"),
    ],
)
def test_damaged_proofs_are_refused_by_name(
    link_setup: ProverSetup, claim: SelectionClaim, proof: bytes, change: object, check: str
) -> None:
    refused(check, link_setup, claim, change(proof))  # type: ignore[operator]


def test_every_byte_counts(link_setup: ProverSetup, claim: SelectionClaim, proof: bytes) -> None:
    """Every third byte flipped; of the 96 response bytes, whose check takes long, every 32nd."""
    slow = range(HEAD_BYTES + 3 * 64 + 32, HEAD_BYTES + 3 * 64 + 32 + 96)
    sample = [at for at in range(len(proof)) if (at % 32 == 31 if at in slow else at % 3 == 0)]
    for at in sample:
        with pytest.raises(ClaimError) as caught:
            verify_selections(link_setup.verifier, [claim], [replaced(proof, at, [proof[at] ^ 1])])
        assert caught.value.check.startswith(("link.", "point.")), at
        assert at not in slow or caught.value.check == "link.mask"


@pytest.mark.parametrize("value", ["quotient", "margins"])
def test_a_wrong_quotient_and_a_wrong_commitment_are_named(
    link_setup: ProverSetup, claim: SelectionClaim, proof: bytes, value: str
) -> None:
    parsed = SelectionProof.parse(proof, 1)
    [part] = parsed.chunks
    wrong = replace(part, quotient=(1, 2)) if value == "quotient" else replace(part, margins=5)
    forged = replace(parsed, chunks=(wrong,)).encode()
    refused({"quotient": "link.scores", "margins": "link.noise"}[value], link_setup, claim, forged)


def test_in_a_batch_the_bad_proof_is_named(
    link_setup: ProverSetup, secret: SecretColumns, claim: SelectionClaim, proof: bytes
) -> None:
    forger = Forger(link_setup, secret, claim, lie={_ranked()[-1]: -2}, open_lie=True)
    with pytest.raises(ClaimError, match="Proof 2, chunk 0") as caught:
        verify_selections(link_setup.verifier, [claim] * 4, [proof, proof, forger.prove(), proof])
    assert (caught.value.check, caught.value.place) == ("link.scores", 2)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (again.place, again.check, again.message) == (2, "link.scores", caught.value.message)
    with pytest.raises(InputError, match="as many proofs"):
        verify_selections(link_setup.verifier, [claim], [])
    verify_selections(link_setup.verifier, [], [])


def test_chunks_cannot_be_exchanged_nor_mixed(link_setup: ProverSetup) -> None:
    rows = np.concatenate([ROWS, -ROWS])
    secret = commit_columns(rows, link_setup)
    noise = np.concatenate([NOISE, NOISE[::-1]])
    claim = claim_of(secret, QUERY, noise)
    one, two = (SelectionProof.parse(proved(link_setup, secret, claim), 2) for _ in range(2))
    verify_selections(link_setup.verifier, [claim], [one.encode()])
    swapped = replace(one, chunks=one.chunks[::-1])
    mixed = replace(one, chunks=(one.chunks[0], two.chunks[1]))
    for forged in (swapped, mixed):
        refused("link.noise", link_setup, claim, forged.encode())


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("ids", (0, 0, 1), "different slots"),
        ("ids", (0, 1), "different slots"),
        ("ids", (0, 1, 8), "different slots"),
        ("ids", (0, 1, -1), "different slots"),
        ("query", np.full(4, 9, np.int16), "norm"),
        ("query", QUERY.astype(np.int64), "int16"),
        ("query", QUERY[:3], "int16"),
        ("noise", NOISE[:7], "noise"),
        ("noise", np.full(8, 101), "above 100"),
        ("noise", np.full(8, -101), "above 100"),
        ("noise", NOISE.astype(np.int32), "int64"),
        ("columns", Columns(()), "chunks"),
    ],
)
def test_a_claim_that_does_not_fit_the_setup_is_refused(
    link_setup: ProverSetup,
    secret: SecretColumns,
    claim: SelectionClaim,
    proof: bytes,
    field: str,
    value: object,
    said: str,
) -> None:
    changed = replace(claim, **{field: value})
    assert said in refused("link.claim", link_setup, changed, proof).message
    if field != "columns":
        with pytest.raises(InputError):
            proved(link_setup, secret, changed)


def test_a_verifier_needs_py_ecc_alone(
    link_setup: ProverSetup, claim: SelectionClaim, proof: bytes, tmp_path: Path
) -> None:
    """In a process where zksnake cannot be imported."""
    held = tmp_path / "held.pickle"
    held.write_bytes(pickle.dumps((link_setup.verifier, [claim], [proof])))
    program = (
        "import pickle, sys\n"
        "sys.modules['zksnake'] = None\n"
        "import ragwitness.crypto.proofs.selection.verify as proofs\n"
        "assert 'py_ecc' not in sys.modules\n"
        f"proofs.verify_selections(*pickle.load(open({str(held)!r}, 'rb')))\n"
        "print('holds')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "holds\n", done.stderr


def test_without_py_ecc_the_extra_is_named(
    link_setup: ProverSetup, claim: SelectionClaim, proof: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "fast", lambda: None)
    monkeypatch.setitem(sys.modules, "py_ecc.optimized_bn128", None)
    with pytest.raises(MissingExtraError, match="needs packages") as caught:
        verify_selections(link_setup.verifier, [claim], [proof])
    assert "[verify]" in caught.value.hint
