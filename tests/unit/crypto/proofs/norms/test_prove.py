"""The norm proof: true ones are accepted, each false one is refused under its own name."""

import dataclasses
import random

import numpy as np
import pytest

from ragwitness.crypto.proofs.circuits.norm import norm_circuit, norm_commitment
from ragwitness.crypto.proofs.groth16.zksnake import make_key
from ragwitness.crypto.proofs.native import native_commit, to_native_g1
from ragwitness.crypto.proofs.norms.polynomials import (
    PROJECTIONS,
    Matrix,
    projection_bits,
    split_parts,
)
from ragwitness.crypto.proofs.norms.proof import Conversation, NormProof, chunk_bytes
from ragwitness.crypto.proofs.norms.prove import (
    Masks,
    derive_masks,
    evaluate,
    open_parts,
    prove_norms,
)
from ragwitness.crypto.proofs.norms.verify import verify_norms
from ragwitness.crypto.proofs.opening import Columns
from ragwitness.crypto.proofs.points import R, encode_g1, encode_g2
from ragwitness.crypto.proofs.prover_setup import ProverSetup
from ragwitness.crypto.proofs.secret import SecretColumns, commit_rows
from ragwitness.crypto.proofs.setup import MASKS, Shape, VerifierSetup, make_srs
from ragwitness.errors import InputError, VerificationError
from tests.unit.crypto.proofs.norms.norms_fields import FieldMatrix, constant

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("arithmetic")]

SHAPE = Shape(8, 2, 4, 100, 1000)
CONTEXT = b"window 7, tenant 2"
OUTSIDE = (  # on the twist at x = 1, not in the group of order R
    (1, 0),
    (
        18278151005453108793778860132295291098363647455926340152056652516292830556603,
        5912654199736721486680175016176231956195085055698687135131307249486702594212,
    ),
)


@pytest.fixture(scope="module")
def setup():
    srs = make_srs(SHAPE)
    key = make_key(norm_circuit(SHAPE))
    public = VerifierSetup(SHAPE, srs.tau, srs.powers[8:], key.verifying, key.verifying)
    return ProverSetup(public, [to_native_g1(point) for point in srs.powers], lambda name: key)


def _rows():
    """Two chunks: zeros, ±S on an axis, exactly S off the axes, small, random."""
    rows = np.random.default_rng(1).integers(-49, 50, (16, 4)).astype(np.int16)
    rows[:6] = [
        [0, 0, 0, 0],
        [100, 0, 0, 0],
        [0, 0, 0, -100],
        [60, 0, -80, 0],
        [-50, 50, -50, 50],
        [0, -1, 0, 0],
    ]
    return rows


@pytest.fixture(scope="module")
def secret(setup):
    return commit_rows(_rows(), SHAPE, setup.powers)


@pytest.fixture(scope="module")
def proof(setup, secret):
    return prove_norms(setup, secret, CONTEXT)


def _refused(check, setup, columns, proof, context=CONTEXT):
    with pytest.raises(VerificationError) as found:
        verify_norms(setup.verifier, columns, context, proof)
    assert found.value.check == check, found.value.message
    return found.value.message


def _parts(proof):
    size = chunk_bytes(SHAPE)
    return [NormProof.parse(proof[i : i + size], SHAPE) for i in range(0, len(proof), size)]


def test_rows_within_the_bound_are_accepted(setup, secret, proof):
    verify_norms(setup.verifier, secret.public, CONTEXT, proof)
    assert len(proof) == 2 * chunk_bytes(SHAPE) == 2 * (896 + 64 * SHAPE.dimension)
    assert b"".join(part.encode() for part in _parts(proof)) == proof


def test_made_again_it_opens_the_same_points_and_no_others(setup):
    secret = commit_rows(_rows()[:8], SHAPE, setup.powers)
    contexts = (CONTEXT, CONTEXT, b"another window")
    old, new, other = (_parts(prove_norms(setup, secret, text))[0] for text in contexts)
    assert dataclasses.replace(old, circuit=new.circuit) == new
    assert old.circuit != new.circuit
    assert not set(old.evaluations.scalars) & set(other.evaluations.scalars)


def test_masks_depend_on_the_blinds_and_on_the_conversation():
    rows = np.zeros((8, 1), np.int16)
    one, other = (Matrix(rows, ((i,), (2,), (3,))) for i in (1, 2))
    drawn = [derive_masks(seed, matrix) for matrix in (one, other) for seed in (b"a", b"b")]
    numbers = [x for m in drawn for x in (*m.a, *m.b, m.salt)]
    assert len(set(numbers)) == len(numbers) == 36
    assert derive_masks(b"a", one) == drawn[0]


def test_rows_over_the_bound_are_refused_before_anything_is_proved(setup, secret):
    rows = secret.rows.copy()
    rows[3] = [100, 1, 0, 0]
    with pytest.raises(InputError, match="10,001"):
        prove_norms(setup, SecretColumns(rows, secret.blinds, secret.public), CONTEXT)


def test_rows_other_than_those_committed_to_give_no_proof(setup):
    secret = commit_rows(_rows()[:8], SHAPE, setup.powers)
    rows = secret.rows.copy()
    rows[5, 2] += 1
    with pytest.raises(InputError, match=r"norm\.opening"):
        prove_norms(setup, SecretColumns(rows, secret.blinds, secret.public), CONTEXT)


# Named refusals


def test_another_size_is_refused(setup, secret, proof):
    size = chunk_bytes(SHAPE)
    for wrong in (b"", proof[:-1], proof + b"\0", proof[:size], proof + proof[:size]):
        _refused("norm.size", setup, secret.public, wrong)
    with pytest.raises(VerificationError, match="bytes"):
        NormProof.parse(proof, SHAPE)


def test_another_context_index_setup_or_order_is_refused(setup, secret, proof):
    message = _refused("norm.identity", setup, secret.public, proof, CONTEXT + b"\0")
    assert "chunk 0" in message
    again = commit_rows(_rows(), SHAPE, setup.powers)
    _refused("norm.identity", setup, again.public, proof)
    size = chunk_bytes(SHAPE)
    _refused("norm.identity", setup, secret.public, proof[size:] + proof[:size])
    swapped = Columns(secret.public.chunks[::-1])
    _refused("norm.identity", setup, swapped, proof[size:] + proof[:size])
    wider = dataclasses.replace(SHAPE, reach=1001)
    other = dataclasses.replace(setup, verifier=dataclasses.replace(setup.verifier, shape=wider))
    _refused("norm.identity", other, secret.public, proof)


def test_columns_of_another_dimension_are_refused(setup, secret, proof):
    wrong = Columns(tuple(chunk[:-1] for chunk in secret.public.chunks))
    _refused("columns.size", setup, wrong, proof)
    _refused("columns.size", setup, Columns(()), b"")


@pytest.mark.parametrize("name", ["commitment", "total"])
def test_a_changed_number_is_refused(setup, secret, proof, name):
    first, second = _parts(proof)
    wrong = dataclasses.replace(second, **{name: (getattr(second, name) + 1) % R})
    message = _refused("norm.identity", setup, secret.public, first.encode() + wrong.encode())
    assert "chunk 1" in message


@pytest.mark.parametrize("name", ["upper", "lower", "a", "b", "p", "q"])
def test_a_falsified_evaluation_is_refused(setup, secret, proof, name):
    first, second = _parts(proof)
    held = first.evaluations
    value = getattr(held, name)
    value = (value[0], (value[1] + 1) % R, *value[2:]) if name in ("upper", "lower") else value + 1
    wrong = dataclasses.replace(first, evaluations=dataclasses.replace(held, **{name: value}))
    _refused("norm.identity", setup, secret.public, wrong.encode() + second.encode())


@pytest.mark.parametrize("names", [("a", "p"), ("b", "q"), ("a", "b")])
def test_evaluations_falsified_so_that_the_identity_holds_are_not_those_committed_to(
    setup, secret, proof, names
):
    first, second = _parts(proof)
    talk = Conversation(SHAPE, setup.verifier.digest, secret.public.digest, CONTEXT, 0)
    talk.challenges(first.commitment, first.masks)
    z = talk.point(first.total, first.sides)
    inverse = pow(z, -1, R)
    factors = {"a": inverse, "b": z, "p": -z, "q": -inverse}  # in equation (1) at z
    held, (one, other) = first.evaluations, names
    moved = {
        one: (getattr(held, one) + 5) % R,
        other: (getattr(held, other) - 5 * factors[one] * pow(factors[other], -1, R)) % R,
    }
    wrong = dataclasses.replace(first, evaluations=dataclasses.replace(held, **moved))
    message = _refused("norm.opening", setup, secret.public, wrong.encode() + second.encode())
    assert "chunk 0" in message


def test_points_exchanged_are_refused(setup, secret, proof):
    first, second = _parts(proof)
    turned = dataclasses.replace(first, quotients=first.quotients[1:] + first.quotients[:1])
    _refused("norm.opening", setup, secret.public, turned.encode() + second.encode())
    for name in ("masks", "sides"):
        turned = dataclasses.replace(first, **{name: getattr(first, name)[::-1]})
        _refused("norm.identity", setup, secret.public, turned.encode() + second.encode())


def test_a_circuit_proof_of_something_else_is_refused(setup, secret, proof):
    first, second = _parts(proof)
    wrong = dataclasses.replace(first, circuit=second.circuit)
    message = _refused("norm.rows", setup, secret.public, wrong.encode() + second.encode())
    assert "chunk 0" in message


def test_points_and_scalars_that_are_none_are_refused(setup, secret, proof):
    scalars = 2 * SHAPE.dimension + 6
    for place in (0, scalars - 1):
        wrong = bytearray(proof)
        wrong[32 * place : 32 * place + 32] = R.to_bytes(32, "big")
        _refused("point.field", setup, secret.public, bytes(wrong))
    wrong = bytearray(proof)
    wrong[32 * scalars : 32 * scalars + 64] = encode_g1((1, 3))
    _refused("point.curve", setup, secret.public, bytes(wrong))
    wrong = proof[:-192] + encode_g2(OUTSIDE) + proof[-64:]
    _refused("point.subgroup", setup, secret.public, wrong)


def test_single_bytes_changed_are_refused(setup, secret, proof):
    draw = random.Random(3)
    for _ in range(40):
        wrong = bytearray(proof)
        wrong[draw.randrange(len(wrong))] ^= 1 << draw.randrange(8)
        with pytest.raises(VerificationError):
            verify_norms(setup.verifier, secret.public, CONTEXT, bytes(wrong))


# Forgeries: rows that are too long, and every way to lie about them


def _root():
    """A number whose square modulo R is small, and which is not small itself."""
    for square in range(2, SHAPE.scale**2):
        root = _square_root(square)
        if root is not None and min(root, R - root) > 1 << 60:
            return root, square
    raise AssertionError


def _square_root(value):
    """Tonelli and Shanks."""
    if pow(value, (R - 1) // 2, R) != 1:
        return None
    odd, twos = R - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    c, root, t = pow(5, odd, R), pow(value, (odd + 1) // 2, R), pow(value, odd, R)
    while t != 1:
        least = next(i for i in range(1, twos) if pow(t, 1 << i, R) == 1)
        step = pow(c, 1 << (twos - least - 1), R)
        twos, c = least, step * step % R
        root, t = root * step % R, t * c % R
    return root


LONG = {
    "norm one above": [100, 1, 0, 0],
    "half of the field": [(R + 1) // 2] * 4,  # squares sum up to 1
    "root of a small number": [_root()[0], 0, 0, 0],
}


def _forged(setup, row, lie):
    """A proof for one chunk with a forbidden row, by a prover that lies as it says."""
    draw = random.Random(4)
    table = [[x % R for x in r] for r in _rows()[:8].tolist()]
    table[3] = [x % R for x in row]
    table += [[draw.randrange(R) for _ in range(4)] for _ in range(MASKS)]
    matrix = FieldMatrix(tuple(map(tuple, table)), 8)
    columns = zip(*matrix.table, strict=True)
    public = Columns((tuple(encode_g1(native_commit(setup.powers, column)) for column in columns),))
    talk = Conversation(SHAPE, setup.verifier.digest, public.digest, CONTEXT, 0)

    norms, image = matrix.norms(), matrix.image(talk.projections)
    bound = 1 << projection_bits(SHAPE)
    norms[3] = min(norms[3], SHAPE.scale**2)
    image = [x if x < bound else x - R if x >= R - bound else 0 for x in image]
    masks = Masks(*([draw.randrange(R) for _ in range(4)] for _ in range(2)), draw.randrange(R))
    mask = masks.constant
    covers = native_commit(setup.powers, masks.a), native_commit(setup.powers, masks.b)
    commitment = norm_commitment(SHAPE, norms, image, mask, masks.salt)
    challenges = talk.challenges(commitment, covers)
    laurent = matrix.coefficients(talk.projections, challenges)
    parts = split_parts(laurent, challenges.omega, masks.a, masks.b)
    claimed = (challenges.omega * constant(norms, image, challenges) + mask) % R
    if lie == "mask adapted":  # the hash is then another, and so are the challenges
        mask = (mask + parts.total - claimed) % R
        claimed = parts.total
        commitment = norm_commitment(SHAPE, norms, image, mask, masks.salt)
    total = parts.total if lie == "total of the columns" else claimed
    sides = native_commit(setup.powers, parts.p), native_commit(setup.powers, parts.q)
    z = talk.point(total, sides)
    said = evaluate(matrix.at, parts, challenges.xi, z)
    if lie == "evaluation":
        fitting = (said.p + (parts.total - claimed) * pow(z, -1, R)) % R
        said = dataclasses.replace(said, p=fitting)
    quotients = open_parts(setup.powers, matrix, parts, talk.weights(said), challenges.xi, z)
    inputs = {
        "commitment": [commitment],
        "xi": [challenges.xi],
        "zeta": [challenges.zeta],
        "kappa": [challenges.kappa],
        "omega": [challenges.omega],
        "total": [claimed],
        "norms": norms,
        "projections": [x % R for x in image],
        "mask": [mask],
        "salt": [masks.salt],
    }
    circuit = setup.prove_norm(inputs)
    return public, NormProof(commitment, covers, total, sides, said, quotients, circuit).encode()


LIES = {
    "total of the circuit": "norm.identity",
    "total of the columns": "norm.rows",
    "evaluation": "norm.opening",
    "mask adapted": "norm.identity",
}


@pytest.mark.parametrize(
    ("kind", "lie"),
    [
        *(("half of the field", lie) for lie in LIES),
        ("norm one above", "total of the columns"),
        ("root of a small number", "total of the columns"),
    ],
)
def test_a_forbidden_row_is_caught_whatever_the_prover_says(setup, kind, lie):
    public, forged = _forged(setup, LONG[kind], lie)
    _refused(LIES[lie], setup, public, forged)


def test_the_forger_without_a_forbidden_row_is_believed(setup):
    """So it is the row that is refused, and not the forger's way of proving."""
    public, honest = _forged(setup, [60, 0, -80, 0], "total of the columns")
    verify_norms(setup.verifier, public, CONTEXT, honest)


@pytest.mark.parametrize("kind", ["half of the field", "root of a small number"])
def test_sums_of_squares_alone_would_not_catch_what_wraps_around(kind):
    row = LONG[kind]
    assert sum(x * x for x in row) % R <= SHAPE.scale**2
    matrix = FieldMatrix((tuple(row),) + ((0,) * 4,) * 7, 8)
    talk = Conversation(SHAPE, "setup", "columns", CONTEXT, 0)
    bound = 1 << projection_bits(SHAPE)
    outside = sum(bound <= x < R - bound for x in matrix.image(talk.projections))
    assert outside > PROJECTIONS / 4
