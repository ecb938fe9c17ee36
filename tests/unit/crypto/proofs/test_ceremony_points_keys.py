"""Keys out of powers, against keys from numbers that the test knows; and every other key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragwitness.crypto.proofs.ceremony_points import (
    LagrangePoints,
    Powers,
    check_key,
    circuit_key,
    with_delta,
)
from ragwitness.crypto.proofs.groth16.zksnake import PointList, ProvingKey, _Basis, domain_of
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    native_curve,
    native_ring,
)
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.errors import VerificationError
from tests.unit.crypto.proofs.ceremony_toys import CIRCUITS

NUMBERS = {"kzg": 3, "tau": 987654321, "alpha": 1 << 100, "beta": R - 12345}
DELTA = 1 << 77
LARGEST = max(map(domain_of, CIRCUITS.values()))


@pytest.fixture(scope="module")
def powers() -> Powers:
    return Powers.start(5, LARGEST).raised(NUMBERS)


@pytest.fixture(scope="module", params=CIRCUITS)
def made(request: pytest.FixtureRequest, powers: Powers) -> tuple[Circuit, ProvingKey]:
    """The smaller circuit takes the larger one's powers too."""
    circuit = CIRCUITS[request.param]
    basis = LagrangePoints.of(powers, domain_of(circuit))
    return circuit, with_delta(circuit_key(powers, basis, circuit), DELTA)


def point(scalar: int) -> Any:
    return native_curve().G1() * (scalar % R)


def listed(points: PointList) -> list[Any]:
    zero = points.points[0] * 0
    known = dict(zip(points.numbers, points.points, strict=True))
    return [known.get(number, zero) for number in range(points.size)]


def test_the_key_is_that_of_the_numbers(made: tuple[Circuit, ProvingKey]) -> None:
    circuit, key = made
    tau, alpha, beta = (NUMBERS[name] for name in ("tau", "alpha", "beta"))
    left, right, output = _Basis.of(circuit, tau).wires(circuit)
    mixed = [beta * a + alpha * b + c for a, b, c in zip(left, right, output, strict=True)]
    first, inverse = 1 + circuit.publics, pow(DELTA, -1, R)
    assert listed(key.left) == [point(a) for a in left]
    assert listed(key.right) == [point(b) for b in right]
    assert listed(key.right_2) == [native_curve().G2() * b for b in right]
    assert [*key.verifying.inputs] == [from_native_g1(point(m)) for m in mixed[:first]]
    assert listed(key.private) == [point(m * inverse) for m in mixed[first:]]
    assert (key.beta, key.delta) == (point(beta), point(DELTA))
    assert key.verifying.delta == from_native_g2(native_curve().G2() * DELTA)


def test_the_quotients_points_sum_up_to_the_quotient(made: tuple[Circuit, ProvingKey]) -> None:
    """Σ (value at the coset's point i) · point i = h(τ)·Z(τ)/delta for every h of its degree."""
    circuit, key = made
    domain, tau = domain_of(circuit), NUMBERS["tau"]
    full = _Basis.of(circuit, tau).quotient
    shift = pow(5, (R - 1) // (2 * domain), R)
    for coefficients in ([1] + [0] * (domain - 1), [7 * i + 1 for i in range(domain - 1)] + [0]):
        moved = [c * pow(shift, i, R) % R for i, c in enumerate(coefficients)]
        values = native_ring().fft(moved, domain)
        total = point(0)
        for value, held in zip(values, listed(key.quotient), strict=True):
            total = total + held * value
        expected = sum(v * q for v, q in zip(values, full, strict=True)) * pow(DELTA, -1, R)
        assert total == point(expected)


def test_an_honest_key_passes(powers: Powers, made: tuple[Circuit, ProvingKey]) -> None:
    circuit, key = made
    check_key(powers, key, circuit, from_native_g1(point(DELTA)))


@pytest.mark.parametrize("field", ["left", "right", "right_2", "private", "quotient"])
@pytest.mark.parametrize("place", [0, -1])
def test_any_other_point_is_refused(
    powers: Powers, made: tuple[Circuit, ProvingKey], field: str, place: int
) -> None:
    circuit, key = made
    held = getattr(key, field)
    points = [*held.points]
    points[place] = points[place] * 2
    refused(powers, replace(key, **{field: replace(held, points=points)}), circuit)
    # A point that is left out.
    numbers, rest = [*held.numbers], [*held.points]
    del numbers[place], rest[place]
    refused(powers, replace(key, **{field: PointList(held.size, numbers, rest)}), circuit)


def test_other_fixed_points_are_refused(powers: Powers, made: tuple[Circuit, ProvingKey]) -> None:
    circuit, key = made
    known, g2 = key.verifying, from_native_g2(native_curve().G2() * 5)
    inputs = (*known.inputs[:-1], from_native_g1(point(5)))
    for change in (
        {"alpha": from_native_g1(point(5))},
        {"beta": g2},
        {"gamma": g2},
        {"delta": g2},
        {"inputs": inputs},
        {"inputs": known.inputs[:-1]},
    ):
        refused(powers, replace(key, verifying=replace(known, **change)), circuit)
    for field in ("beta", "delta"):
        refused(powers, replace(key, **{field: point(5)}), circuit)
    empty = PointList(key.left.size, [], [])
    refused(powers, replace(key, left=empty), circuit)
    # The key of an own delta, which a forger would know, under the chain's point.
    refused(powers, with_delta(key, 3), circuit)


def refused(powers: Powers, key: ProvingKey, circuit: Circuit) -> None:
    with pytest.raises(VerificationError) as caught:
        check_key(powers, key, circuit, from_native_g1(point(DELTA)))
    assert caught.value.check == "ceremony.keys"
