"""What is handed to zksnake: points of ours that it must not panic at, nor take unchecked."""

from __future__ import annotations

import pytest

from ragwitness.crypto.proofs import curve, native
from ragwitness.crypto.proofs.curve import Term, in_twist_subgroup, msm, product_holds
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    has_order_r,
    native_curve,
    native_multiples,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.points import G1, G1_GENERATOR, G2, G2_GENERATOR, P, R, in_twist
from ragwitness.errors import InputError, MissingExtraError

OUTSIDE: G2 = (  # on the twist at x = 1, not in the group of order R
    (1, 0),
    (
        18278151005453108793778860132295291098363647455926340152056652516292830556603,
        5912654199736721486680175016176231956195085055698687135131307249486702594212,
    ),
)


@pytest.fixture(params=["written", "constructed"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Points written into memory, and by zksnake's constructor, as where the layout is unknown."""
    assert native.layout_is_known()  # on the pinned release; else reading keys takes a minute
    if request.param == "constructed":
        monkeypatch.setattr(native, "layout_is_known", lambda: False)
    return str(request.param)


def some(scalar: int) -> tuple[G1, G2]:
    [one] = native_multiples(native_curve().G1(), [scalar])
    [two] = native_multiples(native_curve().G2(), [scalar])
    return from_native_g1(one), from_native_g2(two)


@pytest.mark.parametrize("scalar", [1, 2, 12345, R - 1])
def test_points_arrive_as_zksnakes_own(layout: str, scalar: int) -> None:
    one, two = some(scalar)
    assert to_native_g1(one) == native_curve().curve.PointG1(*one)
    assert to_native_g2(two) == native_curve().curve.PointG2(*two[0], *two[1])
    assert from_native_g1(to_native_g1(one) + to_native_g1(one)) == some(2 * scalar % R)[0]
    assert from_native_g2(to_native_g2(two) + to_native_g2(two)) == some(2 * scalar % R)[1]


def test_a_point_off_the_curve_never_gets_there(layout: str) -> None:
    (x, y), (u, v) = some(5)
    for off in ((x, y + 1), (x, 0), (0, 1), (1, 3)):
        with pytest.raises(InputError, match="not on the curve"):
            to_native_g1(off)
        with pytest.raises(InputError, match="not on the curve"):
            msm([off], [3])
        with pytest.raises(InputError, match="not on the curve"):
            product_holds([Term(1, off, G2_GENERATOR)])
    for off2 in ((u, (v[0] + 1, v[1])), ((1, 1), (1, 1))):
        with pytest.raises(InputError, match="twisted curve"):
            to_native_g2(off2)


def test_the_order_of_a_point_of_the_twist_is_found_without_a_panic() -> None:
    assert in_twist(OUTSIDE)
    assert not has_order_r(to_native_g2(OUTSIDE))
    assert not in_twist_subgroup(OUTSIDE)
    small = to_native_g2(OUTSIDE) * (R - 1) + to_native_g2(OUTSIDE)  # order divides the cofactor
    cofactor = 2 * P - R
    assert cofactor % 10069 == 0
    held, rest = small * 0, small
    for bit in bin(cofactor // 10069)[:1:-1]:  # beyond R, which zksnake's own product reduces by
        held, rest = (held + rest if bit == "1" else held), rest + rest
    assert not held.is_zero()
    assert not has_order_r(held)
    assert has_order_r(native_curve().G2() * 7)


def test_where_the_layout_is_unknown_a_verifier_computes_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "layout_is_known", lambda: False)
    curve.fast.cache_clear()
    try:
        assert curve.fast() is None
        assert not in_twist_subgroup(OUTSIDE)  # where zksnake would panic
    finally:
        curve.fast.cache_clear()


def test_infinity_passes_both_ways(layout: str) -> None:
    assert to_native_g1((0, 0)).is_zero()
    assert to_native_g2(((0, 0), (0, 0))).is_zero()
    assert product_holds([Term(5, (0, 0), G2_GENERATOR), Term(0, G1_GENERATOR, G2_GENERATOR)])
    assert not product_holds([Term(5, G1_GENERATOR, G2_GENERATOR)])


def test_without_zksnake_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("Making a proof", "zk")

    monkeypatch.setattr(native, "layout_is_known", missing)
    curve.fast.cache_clear()
    try:
        assert curve.fast() is None
        assert product_holds(
            [Term(2, some_in_python(3), G2_GENERATOR), Term(-6, (1, 2), G2_GENERATOR)]
        )
    finally:
        curve.fast.cache_clear()


def some_in_python(scalar: int) -> G1:
    return msm([G1_GENERATOR], [scalar])
