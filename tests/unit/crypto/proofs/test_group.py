"""Points and scalars: arkworks against py_ecc, and every way in which bytes are no point."""

from __future__ import annotations

import random

import pytest

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.proofs.arithmetic import (
    TAU,
    R,
    encode_point,
    encode_scalar,
    generator,
    infinity,
    multiexp,
    pairs_to,
    parse_point,
    parse_scalar,
    scalar,
)
from tests.support.py_ecc_oracle import (
    G1,
    add,
    compress_G1,
    curve_order,
    decompress_G1,
    multiply,
    normalize,
)
from tests.unit.crypto.proofs.forging import P

_DRAW = random.Random(1)


def _compressed(point) -> bytes:  # type: ignore[no-untyped-def]
    return int(compress_G1(point)).to_bytes(48, "big")


def test_the_order_and_the_generator_are_those_of_py_ecc() -> None:
    assert curve_order == R
    assert encode_point(generator()) == _compressed(G1)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_sums_of_multiples_are_those_of_py_ecc(count: int) -> None:
    logs = [_DRAW.randrange(R) for _ in range(count)]
    factors = [_DRAW.choice([_DRAW.randrange(R), -_DRAW.randrange(99), 0, R - 1]) for _ in logs]
    found = multiexp([generator() * scalar(log) for log in logs], factors)
    total = multiply(G1, 0)
    for log, factor in zip(logs, factors, strict=True):
        total = add(total, multiply(multiply(G1, log), factor % R))
    assert encode_point(found) == _compressed(total)
    assert normalize(decompress_G1(int.from_bytes(encode_point(found), "big"))) == normalize(total)


def test_a_point_reads_back_and_no_other_spelling_does() -> None:
    data = encode_point(generator() * scalar(77))
    assert parse_point(data) == generator() * scalar(77)
    assert parse_point(encode_point(infinity())) == infinity()
    x = int.from_bytes(data, "big") & (1 << 381) - 1
    flagged = lambda value, flag: (value | flag << 376).to_bytes(48, "big")  # noqa: E731
    outside = next(v for v in range(4, 99) if pow(v**3 + 4, (P - 1) // 2, P) == 1)
    for name, wrong in {
        "curve": flagged(1, 0x80),
        "subgroup": flagged(0, 0x80),  # (0, 2), of order 3
        "outside the group": flagged(outside, 0x80),
        "uncompressed": flagged(x, 0),
        "beyond P": flagged(P + 4, 0x80),
        "infinity with a rest": flagged(1, 0xC0),
        "infinity with a sign": flagged(0, 0xE0),
        "short": data[:-1],
        "long": data + b"\0",
        "empty": b"",
    }.items():
        with pytest.raises(VerificationError) as found:
            parse_point(wrong, "here")
        part = found.value.check
        assert part in ("here.curve", "here.encoding", "here.subgroup"), name
        if name in ("curve", "subgroup"):
            assert part == f"here.{name}"


def test_a_scalar_is_below_the_order() -> None:
    for value in (0, 1, R - 1):
        assert parse_scalar(encode_scalar(value)) == value
    for value in (R, R + 1, 2**256 - 1):
        with pytest.raises(VerificationError, match="order") as found:
            parse_scalar(value.to_bytes(32, "big"))
        assert found.value.check == "point.field"


def test_the_pairing_tells_powers_of_tau_from_others() -> None:
    assert pairs_to(infinity(), infinity(), TAU)
    assert not pairs_to(generator(), generator(), TAU)
