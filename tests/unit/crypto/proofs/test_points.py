"""Points and scalars of BN254 as bytes; what computes with them is tested with the curve."""

from __future__ import annotations

import pytest

from ragwitness.crypto.proofs.points import (
    G2_GENERATOR,
    P,
    R,
    encode_g2,
    encode_scalar,
    in_twist,
    parse_twist,
)
from ragwitness.errors import InputError, VerificationError


def test_g2s_bytes_have_the_imaginary_part_first() -> None:
    (x0, x1), (y0, y1) = G2_GENERATOR
    parts = [encode_g2(G2_GENERATOR)[i : i + 32] for i in range(0, 128, 32)]
    assert [int.from_bytes(part, "big") for part in parts] == [x1, x0, y1, y0]


def test_a_scalar_outside_the_field_is_not_written() -> None:
    for value in (-1, R):
        with pytest.raises(InputError):
            encode_scalar(value)


def test_a_point_off_the_twisted_curve_is_refused() -> None:
    x, (y0, y1) = G2_GENERATOR
    assert in_twist(G2_GENERATOR)
    assert parse_twist(encode_g2(G2_GENERATOR), "p") == G2_GENERATOR
    with pytest.raises(VerificationError, match="off the twisted curve"):
        parse_twist(encode_g2((x, ((y0 + 1) % P, y1))), "p")
