"""Sizes and bounds of a window's proofs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragwitness.core.errors import InputError
from ragwitness.crypto.proofs.arithmetic import Shape, chunk_slots

SHAPE = Shape(512, 4, 384, 128, 213_908)


def test_margins_have_as_many_bits_as_two_numbers_may_differ() -> None:
    most = 2 * (128**2 + 213_908)
    assert most < 1 << SHAPE.bits <= 2 * most
    assert Shape(2048, 32, 16_384, 4096, 1 << 40).bits == 42


@pytest.mark.parametrize(
    "change",
    [
        {"slots": 256},
        {"slots": 4096},
        {"slots": 1000},
        {"top": 0},
        {"top": 33},
        {"dimension": 0},
        {"scale": 4097},
        {"reach": -1},
        {"reach": (1 << 40) + 1},
    ],
)
def test_a_shape_outside_the_bounds_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError):
        replace(SHAPE, **change)


def test_chunks_cover_the_index() -> None:
    assert [chunk_slots(c) for c in (1, 512, 513, 1024, 2048, 5000)] == [
        512, 512, 1024, 1024, 2048, 2048,
    ]  # fmt: skip
    assert [SHAPE.chunks(c) for c in (1, 512, 513)] == [1, 1, 2]
    assert SHAPE.part(range(514), 1) == [512, 513, *[0] * 510]


def test_every_size_and_the_ceremony_are_in_the_digest() -> None:
    others = [{"slots": 1024}, {"top": 5}, {"dimension": 3}, {"scale": 127}, {"reach": 1}]
    digests = {replace(SHAPE, **change).digest for change in [{}, *others]}
    assert len(digests) == 6
