"""Groth16: proofs that hold, everything near them that must not."""

import itertools
from dataclasses import replace
from typing import NamedTuple

import pytest

from ragwitness.crypto.proofs.curve import bn128, in_twist_subgroup
from ragwitness.crypto.proofs.groth16 import PROOF_BYTES, Proof, VerifyingKey, holds, terms
from ragwitness.crypto.proofs.groth16.zksnake import (
    PointList,
    ProvingKey,
    blind,
    domain_of,
    make_key,
    prove,
)
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    native_multiples,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.points import (
    G1_GENERATOR,
    G2_GENERATOR,
    P,
    R,
    encode_g2,
    in_twist,
    negate,
)
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.errors import InputError, VerificationError
from tests.support.circuits import violated


def _circuit(extra=0):
    """The public a is b³ + b + 5; ``unused`` is read by no constraint."""
    circuit = Circuit("test")
    [a], _ = circuit.public("a"), circuit.public("unused")
    [b] = circuit.private("b")
    cube = circuit.product(circuit.product(b, b, "square"), b, "cube")
    for _ in range(extra):
        circuit.product(cube, b, "more")
    circuit.zero(cube + b + 5 - a, "a is the polynomial of b")
    return circuit


def _wires(b, unused=7, circuit=None):
    return (circuit or CIRCUIT).witness(
        {"a": [(b**3 + b + 5) % R], "b": [b % R], "unused": [unused]}
    )


CIRCUIT = _circuit()
GENERATOR = to_native_g1(G1_GENERATOR)


class Statement(NamedTuple):
    """What a proof shows, and the proof."""

    key: VerifyingKey
    publics: tuple[int, ...]
    proof: Proof


@pytest.fixture(scope="module")
def key():
    return make_key(CIRCUIT)


@pytest.fixture(scope="module")
def statement(key):
    wires = _wires(3)
    return Statement(key.verifying, tuple(wires[1:3]), prove(key, CIRCUIT, wires))


def _holds(statement, **parts):
    return holds(*statement._replace(**parts))


def test_a_proof_holds_and_shows_nothing_twice(key, statement):
    assert statement.publics == (35, 7)
    assert _holds(statement)
    again = prove(key, CIRCUIT, _wires(3))
    assert _holds(statement, proof=again)
    for name in ("a", "b", "c"):
        assert getattr(again, name) != getattr(statement.proof, name)


def test_other_public_inputs(statement):
    """The second is read by no constraint; its own row holds it fast all the same."""
    for publics in ((36, 7), (35, 8), (35, 0), (0, 7), (7, 35)):
        assert not _holds(statement, publics=publics)


def test_public_inputs_have_one_form(statement):
    for publics in ((35 + R, 7), (-1, 7), (35,), (35, 7, 1)):
        with pytest.raises(InputError, match=r"outside the field|public inputs"):
            terms(statement.key, publics, statement.proof)


def test_changed_proofs(statement):
    a, b, c = statement.proof.a, statement.proof.b, statement.proof.c
    wrong = [
        Proof(negate(a), b, c),
        Proof(a, b, negate(c)),
        Proof(c, b, a),
        Proof(a, statement.key.beta, c),
        Proof((0, 0), b, c),
        Proof(a, ((0, 0), (0, 0)), c),
        Proof(a, b, (0, 0)),
        Proof(statement.key.alpha, statement.key.beta, (0, 0)),
    ]
    for proof in wrong:
        assert not _holds(statement, proof=proof)


def test_a_proof_can_be_blinded_anew_by_anyone(statement):
    """Groth16 is malleable: a record's proof is bound by the bundle's digest, not by itself."""
    proof = statement.proof
    moved = Proof(negate(proof.a), _negated_2(proof.b), proof.c)
    assert moved != proof
    assert _holds(statement, proof=moved)


def _negated_2(point):
    return point[0], tuple(-value % P for value in point[1])


def _ill_willed_key():
    """A setup whose first point of a proof is [5] + b·[1], were it not blinded by the prover.

    For every witness the proof holds: nothing but b and the constant one is read, [delta] and
    beta's part are missing in G1, and the quotient's points cancel (the quotient's degree is less
    than its values allow).
    """
    alpha, beta, delta, rest = 5, 7, 11, 13
    wires, first = CIRCUIT.wires, 1 + CIRCUIT.publics
    [b] = CIRCUIT.inputs["b"]
    reads = [int(wire == b) * (beta + rest) for wire in range(wires)]
    size = domain_of(CIRCUIT)
    points = [pow(5, (R - 1) // (2 * size) * (1 + 2 * i), R) for i in range(size)]  # of the coset
    [twin_beta, one, twin_delta, twin_rest] = native_multiples(
        to_native_g2(G2_GENERATOR), [beta, 1, delta, rest]
    )
    inputs = [alpha * rest, *reads[1:first]]
    verifying = VerifyingKey(
        _points([alpha])[0],
        *map(from_native_g2, (twin_beta, one, twin_delta)),
        tuple(_points(inputs)),
    )
    return ProvingKey(
        verifying,
        native_multiples(GENERATOR, [-rest])[0],
        native_multiples(GENERATOR, [0])[0],
        PointList(wires, [b], [GENERATOR]),
        PointList(wires, [0], native_multiples(GENERATOR, [rest])),
        PointList(wires, [0], [twin_rest]),
        _listed([value * pow(delta, -1, R) for value in reads[first:]]),
        _listed(points),
    )


def test_a_key_made_with_ill_will_shows_nothing_of_the_witness():
    key = ProvingKey.parse(_ill_willed_key().encode())
    for b in (3, 4):
        wires = _wires(b)
        [plain] = _points([5 + b])
        proofs = [prove(key, CIRCUIT, wires) for _ in range(2)]
        assert all(holds(key.verifying, wires[1:3], proof) for proof in proofs)
        assert len({plain, proofs[0].a, proofs[1].a}) == 3
        assert proofs[0].b != proofs[1].b


def test_blinding_keeps_what_holds_and_nothing_else(statement):
    moved = blind(statement.key, statement.proof)
    for name in ("a", "b", "c"):
        assert getattr(moved, name) != getattr(statement.proof, name)
    assert _holds(statement, proof=moved)
    wrong = replace(statement.proof, c=G1_GENERATOR)
    assert not _holds(statement, proof=blind(statement.key, wrong))
    with pytest.raises(InputError, match="infinity"):
        blind(statement.key, replace(statement.proof, a=(0, 0)))


def _points(scalars):
    return [from_native_g1(point) for point in native_multiples(GENERATOR, scalars)]


def _listed(scalars):
    numbers = [i for i, scalar in enumerate(scalars) if scalar % R]
    held = native_multiples(GENERATOR, [scalars[i] for i in numbers])
    return PointList(len(scalars), numbers, held)


def test_another_setup_of_the_same_circuit(statement):
    other = make_key(CIRCUIT).verifying
    assert not _holds(statement, key=other)


def test_bytes(statement):
    data = statement.proof.encode()
    assert len(data) == PROOF_BYTES
    assert Proof.parse(data) == statement.proof
    for wrong in (data[:-1], data + b"\0", b""):
        with pytest.raises(VerificationError) as error:
            Proof.parse(wrong)
        assert error.value.check == "groth16.size"


def test_every_changed_byte_is_refused(statement):
    data = statement.proof.encode()
    for place in range(PROOF_BYTES):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(VerificationError) as error:
            Proof.parse(bytes(changed))
        assert error.value.check in ("point.field", "point.curve")


def test_a_coordinate_above_the_modulus(statement):
    data = statement.proof.encode()
    moved = (int.from_bytes(data[:32], "big") + P).to_bytes(32, "big") + data[32:]
    with pytest.raises(VerificationError) as error:
        Proof.parse(moved)
    assert error.value.check == "point.field"


def test_a_point_of_the_twist_outside_the_group(statement):
    data = statement.proof.encode()
    with pytest.raises(VerificationError) as error:
        Proof.parse(data[:64] + encode_g2(_outside()) + data[192:])
    assert error.value.check == "point.subgroup"


def _outside():
    """A point of the twisted curve whose order is not R."""
    FQ2, b2 = bn128().FQ2, bn128().b2  # noqa: N806
    for x in itertools.count(1):
        square = FQ2([x, 1]) ** 3 + b2
        root = square ** ((P * P + 15) // 32)  # as in EIP-197's decompression: 8th roots of unity
        for unit in (FQ2([1, 0]), FQ2([9, 1]) ** ((P * P - 1) // 16)):
            for power in range(8):
                y = root * unit**power
                point = (x, 1), tuple(int(c) for c in y.coeffs)
                if y * y == square and in_twist(point) and not in_twist_subgroup(point):
                    return point
    raise AssertionError


def test_a_key_with_a_point_outside_the_group_proves_nothing(key):
    """Such a point would stay in the proof through all blinding, and tell its wire."""
    held = list(key.right_2.points)
    held[0] = held[0] + to_native_g2(_outside())
    false = replace(key, right_2=replace(key.right_2, points=held))
    again = ProvingKey.parse(false.encode())  # a key is read without asking for the order
    for lied in (false, again):
        with pytest.raises(InputError, match="wrong order"):
            prove(lied, CIRCUIT, _wires(3))


def test_verifying_keys_in_bytes(statement):
    data = statement.key.encode()
    assert VerifyingKey.parse(data, 2) == statement.key
    for publics in (1, 3):
        with pytest.raises(VerificationError) as error:
            VerifyingKey.parse(data, publics)
        assert error.value.check == "groth16.size"
    with pytest.raises(VerificationError) as error:
        VerifyingKey.parse(data[:64] + bytes(128) + data[192:], 2)
    assert error.value.check == "groth16.key"


def test_proving_keys_in_bytes(key, statement):
    data = key.encode()
    again = ProvingKey.parse(data)
    assert again.encode() == data
    proof = prove(again, CIRCUIT, _wires(3))
    assert _holds(statement, proof=proof)


@pytest.mark.parametrize("place", [0, 30, 40, 500, -40, -1])
def test_damaged_proving_keys(key, place):
    data = bytearray(key.encode())
    data[place] ^= 1
    for wrong in (bytes(data), bytes(data[:-1]), b""):
        with pytest.raises(InputError, match="damaged"):
            ProvingKey.parse(wrong)


def test_wires_that_do_not_satisfy_the_circuit(key):
    for place in range(1, CIRCUIT.wires):
        wires = _wires(3)
        wires[place] = (wires[place] + 1) % R
        if violated(CIRCUIT, wires):
            with pytest.raises(InputError, match="does not satisfy"):
                prove(key, CIRCUIT, wires)


def test_a_key_of_another_circuit(key):
    other = _circuit(extra=2)
    with pytest.raises(InputError, match="another circuit"):
        prove(key, other, _wires(3, circuit=other))
