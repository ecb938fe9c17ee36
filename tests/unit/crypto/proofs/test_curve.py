"""Points, sums of multiples and pairings, against py_ecc's own and against zksnake."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from ragwitness.crypto.proofs.curve import (
    Term,
    bn128,
    msm,
    pairing_product,
    parse_g2,
    product_holds,
)
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    native_msm,
    native_multiples,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.points import (
    G1_GENERATOR,
    G2_GENERATOR,
    P,
    R,
    encode_g1,
    encode_g2,
    encode_scalar,
    in_twist,
    negate,
    parse_g1,
    parse_scalar,
)
from ragwitness.errors import InputError, VerificationError

pytestmark = pytest.mark.usefixtures("arithmetic")

oracle = bn128()  # py_ecc, imported so that the recursion limit stays
INFINITY = (0, 0)


def multiple(scalar: int) -> tuple[int, int]:
    point = oracle.multiply(oracle.G1, scalar % R)
    if oracle.is_inf(point):
        return INFINITY
    x, y = oracle.normalize(point)
    return x.n, y.n


def twin(scalar: int) -> tuple[tuple[int, int], tuple[int, int]]:
    x, y = oracle.normalize(oracle.multiply(oracle.G2, scalar))
    (a, b), (c, d) = x.coeffs, y.coeffs
    return (int(a), int(b)), (int(c), int(d))


def refused(check: str, parse: object, data: bytes) -> None:
    with pytest.raises(VerificationError) as caught:
        parse(data)  # type: ignore[operator]
    assert caught.value.check == check


def test_the_moduli_and_generators_are_eip_197s() -> None:
    assert (oracle.curve_order, oracle.field_modulus) == (R, P)
    assert multiple(1) == G1_GENERATOR
    assert twin(1) == G2_GENERATOR


@pytest.mark.parametrize("scalar", [1, 2, 77, R - 1])
def test_points_survive_their_bytes(scalar: int) -> None:
    assert parse_g1(encode_g1(multiple(scalar))) == multiple(scalar)
    assert parse_g2(encode_g2(twin(scalar))) == twin(scalar)
    assert parse_scalar(encode_scalar(scalar)) == scalar


def test_infinity_is_zeros() -> None:
    assert parse_g1(bytes(64)) == INFINITY
    assert parse_g2(bytes(128)) == ((0, 0), (0, 0))


def test_every_other_encoding_is_refused_by_name() -> None:
    x, y = multiple(5)
    big = (x + P).to_bytes(32, "big") + y.to_bytes(32, "big")
    refused("point.field", parse_g1, big)
    refused("point.curve", parse_g1, encode_g1((x, (y + 1) % P)))
    refused("point.curve", parse_g1, encode_g1((0, 1)))
    refused("point.size", parse_g1, bytes(63))
    refused("point.size", parse_g2, bytes(129))
    refused("point.field", parse_scalar, R.to_bytes(32, "big"))
    refused("point.size", parse_scalar, bytes(31))
    (a, b), (c, d) = twin(5)
    refused("point.curve", parse_g2, encode_g2(((a, b), (c, (d + 1) % P))))
    refused("point.field", parse_g2, P.to_bytes(32, "big") + bytes(96))


def test_a_point_of_the_twist_outside_the_group_is_refused() -> None:
    refused("point.subgroup", parse_g2, encode_g2(_outside_subgroup()))


def test_points_of_small_order_are_refused_too() -> None:
    """The cofactor 2p - r has the factor 10069: a point of that order meets infinity on the way."""
    cofactor = 2 * P - R
    assert cofactor % 10069 == 0
    x, y = _outside_subgroup()
    outside = (oracle.FQ2(x), oracle.FQ2(y), oracle.FQ2.one())
    small = oracle.multiply(outside, R * (cofactor // 10069))
    assert not oracle.is_inf(small)
    (a, b), (c, d) = (part.coeffs for part in oracle.normalize(small))
    point = ((int(a), int(b)), (int(c), int(d)))
    refused("point.subgroup", parse_g2, encode_g2(point))


def _outside_subgroup() -> tuple[tuple[int, int], tuple[int, int]]:
    """A point of the twist with x = 1, 2, …: the cofactor is large, so it is outside."""
    for x in range(1, 50):
        at = oracle.FQ2([x, 0])
        root = _square_root(at * at * at + oracle.b2)
        if root is not None:
            return (x, 0), root
    raise AssertionError("no point found")


def _square_root(value: oracle.FQ2) -> tuple[int, int] | None:
    """By the norm, since P is 3 modulo 4: (x + yi)² = a + bi."""
    a, b = (int(part) for part in value.coeffs)
    norm = pow(a * a + b * b, (P + 1) // 4, P)
    for sign in (1, -1):
        x = pow((a + sign * norm) * pow(2, -1, P), (P + 1) // 4, P)
        y = b * pow(2 * x, -1, P) % P if x else 0
        if oracle.FQ2([x, y]) * oracle.FQ2([x, y]) == value:
            return x, y
    return None


@pytest.mark.parametrize("bits", [1, 9, 40, 140, 253])
@pytest.mark.parametrize("count", [1, 2, 17, 60])
def test_sums_of_multiples_are_the_multiple_of_the_sum(bits: int, count: int) -> None:
    rng = random.Random(bits * 100 + count)
    logs = [rng.randrange(R) for _ in range(count)]
    scalars = [rng.getrandbits(bits) * rng.choice([1, -1, 0]) for _ in range(count)]
    points = [from_native_g1(p) for p in native_multiples(to_native_g1(G1_GENERATOR), logs)]
    expected = multiple(sum(a * b for a, b in zip(logs, scalars, strict=True)))
    assert msm(points, scalars) == expected
    assert from_native_g1(native_msm([to_native_g1(p) for p in points], scalars)) == expected


def test_sums_of_mixed_sizes_equal_points_and_infinity() -> None:
    points = [G1_GENERATOR, G1_GENERATOR, negate(G1_GENERATOR), INFINITY, multiple(3)]
    scalars = [5, R - 1, 1 << 150, 9, R + 4]
    assert msm(points, scalars) == multiple(5 + (R - 1) - (1 << 150) + 3 * (R + 4))
    assert msm([], []) == INFINITY
    assert msm([G1_GENERATOR, G1_GENERATOR], [7, -7]) == INFINITY
    with pytest.raises(InputError):
        msm([G1_GENERATOR], [])


def test_zksnake_and_py_ecc_agree_on_g2() -> None:
    [point] = native_multiples(to_native_g2(G2_GENERATOR), [12345])
    assert from_native_g2(point) == twin(12345)
    assert from_native_g2(to_native_g2(((0, 0), (0, 0)))) == ((0, 0), (0, 0))
    assert from_native_g1(to_native_g1(INFINITY)) == INFINITY


def test_a_product_of_pairings_is_bilinear() -> None:
    a, b, c = 12345, R - 77, 991
    balanced = [Term(a, multiple(b), twin(c)), Term(-1, multiple(a * b * c), twin(1))]
    assert product_holds(balanced)
    assert product_holds([*balanced, Term(4, INFINITY, twin(2)), Term(0, multiple(2), twin(2))])
    assert not product_holds([*balanced, Term(1, multiple(2), twin(2))])


def test_terms_with_equal_points_are_summed() -> None:
    two = twin(2)
    assert product_holds([Term(3, multiple(5), two), Term(-3, multiple(5), two)])
    assert product_holds([Term(R, multiple(5), two)])
    assert not product_holds([Term(3, multiple(5), two), Term(-4, multiple(5), two)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_product_of_pairings_is_py_eccs(seed: int) -> None:
    rng = random.Random(seed)
    logs = [(rng.randrange(R), rng.randrange(R)) for _ in range(seed)]
    expected = oracle.FQ12.one()
    for left, right in logs:
        expected *= oracle.pairing(
            oracle.multiply(oracle.G2, right), oracle.multiply(oracle.G1, left)
        )
    found = pairing_product([(multiple(left), twin(right)) for left, right in logs])
    assert found == expected
    assert found != oracle.FQ12.one()


def test_pairs_with_infinity_count_as_one() -> None:
    one = oracle.FQ12.one()
    assert pairing_product([]) == one
    assert pairing_product([(INFINITY, G2_GENERATOR), (G1_GENERATOR, ((0, 0), (0, 0)))]) == one


def test_the_recursion_limit_stays_when_py_ecc_is_loaded() -> None:
    """Else deep JSON, which json refuses below the limit, ends the process."""
    code = (
        "import json, sys\n"
        "from ragwitness.crypto.proofs.curve import bn128\n"
        "before = sys.getrecursionlimit()\n"
        "bn128()\n"
        "assert sys.getrecursionlimit() == before\n"
        "try:\n    json.loads('[' * 100_000)\nexcept RecursionError:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


@pytest.mark.parametrize("many", [1, 2, 7])
def test_the_twisted_curve_is_py_eccs(many):
    x, y = twin(many)
    assert in_twist((x, y))
    for off in ((x, (y[0] + 1, y[1])), ((x[0], x[1] + 1), y)):
        assert not in_twist(off)
        assert not oracle.is_on_curve((*map(oracle.FQ2, off), oracle.FQ2.one()), oracle.b2)
