"""The powers of τ: made, written, read, and checked whoever made them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragwitness.crypto.proofs.curve import Term, product_holds
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    native_multiples,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.points import G1_GENERATOR, G2_GENERATOR, negate
from ragwitness.crypto.proofs.setup import Shape, Srs, check_powers, make_srs
from ragwitness.errors import VerificationError

SHAPE = Shape(slots=8, top=2, dimension=4, scale=16, reach=100)


@pytest.fixture(scope="module")
def srs() -> Srs:
    return make_srs(SHAPE)


def powers_of(tau: int) -> Srs:
    scalars = [tau**i for i in range(SHAPE.coefficients)]
    points = native_multiples(to_native_g1(G1_GENERATOR), scalars)
    [second] = native_multiples(to_native_g2(G2_GENERATOR), [tau])
    return Srs(tuple(map(from_native_g1, points)), from_native_g2(second))


def test_each_power_is_tau_times_the_one_before(srs: Srs) -> None:
    assert len(srs.powers) == SHAPE.slots + 3
    for lower, upper in zip(srs.powers, srs.powers[1:], strict=False):
        assert product_holds([Term(1, upper, G2_GENERATOR), Term(-1, lower, srs.tau)])
    check_powers(srs)


def test_two_setups_share_no_power(srs: Srs) -> None:
    assert not set(srs.powers[1:]) & set(make_srs(SHAPE).powers[1:])


def test_the_file_is_read_back(srs: Srs) -> None:
    assert Srs.parse(srs.encode(), SHAPE) == srs


@pytest.mark.parametrize("place", [1, 5, 10])
def test_one_wrong_power_is_found(srs: Srs, place: int) -> None:
    powers = list(srs.powers)
    powers[place] = negate(powers[place])
    refused("srs.powers", replace(srs, powers=tuple(powers)))


@pytest.mark.parametrize("tau", [0, 1, -1])
def test_a_tau_that_hides_nothing_is_refused(tau: int) -> None:
    refused("srs.powers", powers_of(tau))


def test_a_tau_of_another_setup_is_refused(srs: Srs) -> None:
    refused("srs.powers", replace(srs, tau=G2_GENERATOR))
    refused("srs.powers", replace(powers_of(5), tau=powers_of(7).tau))
    check_powers(powers_of(5))


def refused(check: str, srs: Srs) -> None:
    with pytest.raises(VerificationError) as caught:
        check_powers(srs)
    assert caught.value.check == check


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda data: data[:-1], "srs.size"),
        (lambda data: data + b"\0", "srs.size"),
        (lambda data: b"x" + data[1:], "srs.format"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "srs.curve"),
        (lambda data: data[:-64] + b"\xff" * 64, "srs.field"),
    ],
)
def test_a_damaged_file_is_refused_by_name(srs: Srs, change: object, check: str) -> None:
    with pytest.raises(VerificationError) as caught:
        Srs.parse(change(srs.encode()), SHAPE)  # type: ignore[operator]
    assert caught.value.check == check
