"""Powers of a ceremony, against the same powers from numbers that the test knows."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from ragwitness.crypto.proofs.ceremony_points import Powers, check_orders, check_powers
from ragwitness.crypto.proofs.native import from_native_g1, native_curve
from ragwitness.crypto.proofs.points import R, encode_g1
from ragwitness.errors import VerificationError

COEFFICIENTS, DOMAIN = 5, 8
FIRST = {"kzg": 1234567, "tau": R - 99, "alpha": 31, "beta": 1 << 200}
SECOND = {"kzg": 5, "tau": 1 << 130, "alpha": R - 2, "beta": 77}


@pytest.fixture(scope="module")
def powers() -> Powers:
    return Powers.start(COEFFICIENTS, DOMAIN).raised(FIRST).raised(SECOND)


def product() -> dict[str, int]:
    return {name: FIRST[name] * SECOND[name] % R for name in FIRST}


def due() -> dict[str, tuple[int, int]]:
    one = native_curve().G1()
    return {name: from_native_g1(one * value) for name, value in product().items()}


def test_two_steps_make_the_powers_of_the_products(powers: Powers) -> None:
    one, two, by = native_curve().G1(), native_curve().G2(), product()
    tau = [pow(by["tau"], i, R) for i in range(2 * DOMAIN - 1)]
    assert powers.kzg == [one * pow(by["kzg"], i, R) for i in range(COEFFICIENTS)]
    assert powers.tau == [one * t for t in tau]
    assert powers.alpha == [one * (by["alpha"] * t % R) for t in tau[:DOMAIN]]
    assert powers.beta == [one * (by["beta"] * t % R) for t in tau[:DOMAIN]]
    assert powers.tau_2 == [two * t for t in tau[:DOMAIN]]
    assert powers.kzg_2 == two * by["kzg"]
    assert powers.beta_2 == two * by["beta"]
    check_powers(powers, due())


@pytest.mark.parametrize("field", [field.name for field in fields(Powers)])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_any_other_point_is_refused(powers: Powers, field: str, place: int) -> None:
    held = getattr(powers, field)
    if isinstance(held, list):
        changed = [*held]
        changed[place] = changed[place] * 2
    else:
        changed = held * 2
    refused("ceremony.powers", replace(powers, **{field: changed}))


def test_powers_of_other_numbers_than_the_chains_are_refused(powers: Powers) -> None:
    """Consistent in themselves, and one contributor's alone."""
    for name in FIRST:
        other = Powers.start(COEFFICIENTS, DOMAIN).raised(product() | {name: 5})
        refused("ceremony.powers", other)


def refused(check: str, powers: Powers) -> None:
    with pytest.raises(VerificationError) as caught:
        check_powers(powers, due())
    assert caught.value.check == check


def test_orders_of_many_points_are_found_together() -> None:
    from tests.unit.crypto.proofs.test_native import OUTSIDE, to_native_g2

    good = [native_curve().G2() * i for i in range(1, 40)]
    check_orders(good)
    for place in (0, 17, 39):
        with pytest.raises(VerificationError) as caught:
            check_orders([*good[:place], to_native_g2(OUTSIDE), *good[place:]])
        assert caught.value.check == "ceremony.subgroup"


def test_powers_are_read_back_and_nothing_else_is(powers: Powers) -> None:
    data = powers.encode()
    again = Powers.parse(data, COEFFICIENTS, DOMAIN)
    assert again.encode() == data
    check_powers(again, due())
    off = encode_g1((1, 3)) + data[64:]
    for wrong, check in (
        (data[:-1], "ceremony.size"),
        (data + b"\0", "ceremony.size"),
        (off, "ceremony.curve"),
        (b"\xff" * 64 + data[64:], "ceremony.field"),
        (data[:-128] + b"\1" * 128, "ceremony.curve"),
        (data[:-128] + b"\xff" * 128, "ceremony.curve"),
    ):
        with pytest.raises(VerificationError) as caught:
            Powers.parse(wrong, COEFFICIENTS, DOMAIN)
        assert caught.value.check == check
    refused("ceremony.powers", Powers.parse(data[:-128] + bytes(128), COEFFICIENTS, DOMAIN))
