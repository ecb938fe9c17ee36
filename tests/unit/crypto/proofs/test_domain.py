"""The ceremony's powers, and columns: committed and extended as polynomials are, by definition."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.crypto.proofs import prover as module
from ragwitness.crypto.proofs.arithmetic import (
    GENERATOR,
    MOST_SLOTS,
    TAU,
    R,
    dot,
    encode_point,
    generator,
    infinity,
    interpolate,
    multiexp,
    pairs_to,
    parse_point,
    powers,
    roots,
    vanishing,
)
from ragwitness.crypto.proofs.prover import (
    ceremony_domain,
    ceremony_powers,
    draw_scalars,
)

SLOTS = 512


def test_the_file_holds_the_powers_of_the_number_behind_tau() -> None:
    """One random combination of neighbours: any other points pass with 2^-128."""
    data = ceremony_powers()
    assert len(data) == MOST_SLOTS + 3 == 2051
    held = [parse_point(point) for point in data]
    assert held[0] == generator()
    assert held[1] not in (infinity(), held[0], -held[0])
    weights = [random.randrange(1 << 128) for _ in held[1:]]
    assert pairs_to(multiexp(held[:-1], weights), multiexp(held[1:], weights), TAU)
    assert TAU.hex().startswith("b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d")


def test_a_damaged_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ceremony_powers.cache_clear()
    monkeypatch.setattr(module, "_DIGEST", "0" * 64)
    with pytest.raises(InputError, match="Install ragwitness again"):
        ceremony_powers()


@pytest.mark.parametrize("blinds", [[], [5], [R - 1, 77]])
@pytest.mark.parametrize("kind", ["bits", "signed", "few", "long"])
def test_a_column_is_committed_to_as_its_polynomial(kind: str, blinds: list[int]) -> None:
    draw, made = random.Random(1), ceremony_domain(SLOTS)
    bounds = {"bits": (0, 2), "signed": (-4096, 4097), "few": (-2, 2), "long": (0, R)}[kind]
    values = [draw.randrange(*bounds) for _ in range(SLOTS)]
    coefficients = [*interpolate([v % R for v in values]), 0, 0]
    for i, blind in enumerate(blinds):
        coefficients[i] -= blind
        coefficients[SLOTS + i] += blind
    held = np.array(values, np.int64) if kind in ("bits", "signed") else values
    due = made.commit_coefficients([c % R for c in coefficients])
    assert encode_point(made.commit(held, blinds)) == encode_point(due)


@pytest.mark.parametrize("most", [1, 16, 4096, 1 << 15, 1 << 19])
@pytest.mark.parametrize("sign", [0, -1])
def test_columns_are_extended_exactly(most: int, sign: int) -> None:
    """Against transforms in Python integers, at the largest values that a proof can have."""
    draw, made = np.random.default_rng(1), ceremony_domain(SLOTS)
    matrix = draw.integers(sign * most, most + 1, (SLOTS, 5))
    matrix[:, 0] = most
    matrix[:, 1] = sign * most
    whole = made.extend(matrix.astype(object) % R)
    for fast, slow in zip(made.extend(matrix), whole, strict=True):
        assert [x % R for x in fast] == [x % R for x in slow]


def test_the_coset_is_where_it_says() -> None:
    made, values = ceremony_domain(SLOTS), draw_scalars(SLOTS)
    coefficients = interpolate(values)
    [found] = made.extend(np.array([values], object).T)
    at = GENERATOR * roots(SLOTS)[3] % R
    assert found[3] % R == dot(coefficients, powers(at, SLOTS))
    assert made.from_coset([x % R for x in found]) == coefficients
    assert vanishing(SLOTS, at) == vanishing(SLOTS, GENERATOR) != 0
