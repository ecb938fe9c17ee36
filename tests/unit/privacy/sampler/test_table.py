"""The table sampler: its thresholds, its layout in the stream, its distance to the exact one."""

import hashlib
import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from ragwitness.core.errors import InputError
from ragwitness.privacy import table as module
from ragwitness.privacy.sampler import variance_of
from ragwitness.privacy.table import MOST_VARIANCE, gaussian_table
from tests.support.gaussian import exact_pmf

KEY = bytes(range(32))
VARIANCES = [64, Fraction(1201, 7), variance_of(256.0)]


def cumulative(table):
    """The thresholds as whole numbers, by way of the probabilities."""
    pmf = table.pmf()
    sizes = [int(p * 2**128) for p in (*reversed(pmf[1:]), *pmf)]
    return [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]


def literal_draw(thresholds, radius, key, slot):
    """The definition, one slot at a time: how many thresholds a 128-bit number reaches."""
    block, at = divmod(slot, 4096)
    stream = hashlib.shake_256(key + block.to_bytes(8, "big")).digest(65536)
    number = stream[8 * at : 8 * at + 8] + stream[32768 + 8 * at : 32768 + 8 * at + 8]
    return bisect_right(thresholds, int.from_bytes(number, "big")) - radius


@pytest.mark.parametrize("variance", VARIANCES)
def test_draws_are_those_of_the_definition(variance):
    table = gaussian_table(variance)
    thresholds = cumulative(table)
    assert thresholds == sorted(thresholds)
    drawn = table.draw(KEY, 0, 9000)
    slots = [*range(40), 4095, 4096, 4097, 8191, 8192, 8999]
    literal = [literal_draw(thresholds, table.radius, KEY, slot) for slot in slots]
    assert [int(drawn[slot]) for slot in slots] == literal


class FakeStream:
    """A stream whose first high half and low half are chosen."""

    def __init__(self, number):
        high, low = divmod(number, 2**64)
        self.content = high.to_bytes(8, "big") + bytes(32760) + low.to_bytes(8, "big")

    def digest(self, count):
        return self.content[:count]


def test_numbers_next_to_a_threshold_fall_on_the_right_side(monkeypatch):
    # One number in 2⁵¹ ends here: the low half decides.
    table = gaussian_table(64)
    thresholds = cumulative(table)
    chosen = [0, 1, len(thresholds) // 2, len(thresholds) - 2, len(thresholds) - 1]
    assert any(thresholds[i] >> 64 == thresholds[i + 1] >> 64 for i in range(9))
    numbers = {0, 2**128 - 1}
    for i in (*chosen, *range(12)):
        numbers |= {thresholds[i] - 1, thresholds[i], thresholds[i] + 1}
    for number in numbers:
        monkeypatch.setattr(module.hashlib, "shake_256", lambda _, n=number: FakeStream(n))
        assert int(table.draw(KEY, 0, 1)[0]) == bisect_right(thresholds, number) - table.radius


def test_slots_do_not_depend_on_how_many_are_drawn():
    table = gaussian_table(64)
    whole = table.draw(KEY, 0, 10_000)
    for start, stop in ((0, 1), (4000, 4200), (4096, 8192), (9999, 10_000), (17, 17)):
        np.testing.assert_array_equal(table.draw(KEY, start, stop), whole[start:stop])
    assert (table.draw(bytes(32), 0, 100) != whole[:100]).any()


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES)
def test_thresholds_are_the_exact_cumulative_probabilities_rounded(variance):
    table = gaussian_table(variance)
    thresholds = cumulative(table)
    assert len(thresholds) == 2 * table.radius
    with localcontext() as context:
        context.prec = 90
        scale = Decimal(2) * Fraction(variance).numerator / Fraction(variance).denominator
        mass = [(-(Decimal(k * k) / scale)).exp() for k in range(3 * table.radius // 2)]
        unit, sum_ = Decimal(2) ** 128 / (2 * sum(mass) - mass[0]), Decimal(0)
        for k in range(len(mass) - 1, 0, -1):
            sum_ += mass[k]
            if k > table.radius:
                assert sum_ * unit < 1
            else:
                assert 0 <= sum_ * unit - thresholds[table.radius - k] < 1
                assert thresholds[table.radius - 1 + k] == 2**128 - thresholds[table.radius - k]


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_distance_is_the_total_variation_to_the_exact_distribution(variance):
    table, exact = gaussian_table(variance), exact_pmf(variance)
    ours = table.pmf() + [Fraction(0)] * len(exact)
    gaps = [abs(p - q) for p, q in zip(exact, ours, strict=False)]
    known = (gaps[0] + 2 * sum(gaps[1:])) / 2
    assert ours[0] + 2 * sum(ours[1:]) == 1
    assert known <= table.distance <= known * (1 + Fraction(1, 10**6)) + Fraction(1, 2**200)
    assert table.distance < Fraction(2 * table.radius + 1, 2**128)


def test_what_the_table_adds_to_delta_covers_every_event():
    # On the table itself: P(A) <= e^eps Q(A) + delta_exact + extra, for the worst A.
    table, exact, shift, epsilon = gaussian_table(64), exact_pmf(64), 5, 1.5
    factor = Fraction(math.exp(epsilon))

    def delta(pmf):
        padded = [*reversed(pmf[1:]), *pmf]
        moved = [Fraction(0)] * shift + padded
        return sum(
            max(p - factor * q, Fraction(0))
            for p, q in zip(moved, padded + [Fraction(0)] * shift, strict=True)
        )

    extra = Fraction(table.extra_delta(epsilon, 1))
    assert delta(table.pmf()) <= delta(exact) + extra
    assert extra < Fraction(1, 10**30)
    assert table.extra_delta(epsilon, 1000) == pytest.approx(1000 * table.extra_delta(epsilon, 1))


def test_tables_and_draws_are_the_same_on_every_platform():
    table = gaussian_table(Fraction(1201, 7))
    assert table.radius == 171
    assert table.digest == "e54749f5c14b01cb3f9f2af4e6522b756a6551315d9d325405b423c9cf6fb871"
    assert table.draw(KEY, 4090, 4102).tolist() == [6, 9, -1, 6, -4, 11, 1, 10, -3, -6, -17, -5]


def fits(table, draws, part=1_000_000):
    """P-value of chi-square against the exact probabilities; tails in one cell each."""
    exact = np.array([float(p) for p in exact_pmf(table.variance)[: table.radius + 1]])
    counts = np.zeros(2 * table.radius + 1, np.int64)
    for start in range(0, draws, part):
        drawn = table.draw(KEY, start, min(start + part, draws)) + table.radius
        counts += np.bincount(drawn, minlength=len(counts))
    expected = draws * np.concatenate([exact[:0:-1], exact])
    inner = np.flatnonzero(expected >= 10)
    low, high = inner[0], inner[-1] + 1

    def cells(values):
        return [values[:low].sum(), *values[low:high], values[high:].sum()]

    observed, wanted = np.array(cells(counts)), np.array(cells(expected))
    return chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue


@pytest.mark.parametrize(("variance", "draws"), [(64, 1_000_000), (256**2, 10_000_000)])
def test_draws_follow_the_exact_probabilities(variance, draws):
    assert fits(gaussian_table(variance), draws) > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("variance", [64, Fraction(10**7, 3), MOST_VARIANCE])
def test_more_draws_follow_the_exact_probabilities(variance):
    assert fits(gaussian_table(variance), 50_000_000) > 1e-3


def test_the_fit_is_seen_to_fail_for_another_variance():
    table = gaussian_table(64)
    other = gaussian_table(65)
    drawn = other.draw(KEY, 0, 500_000)
    exact = np.array([float(p) for p in exact_pmf(table.variance)[:25]])
    counts = np.bincount(np.abs(drawn), minlength=25)[:25]
    wanted = exact * np.where(np.arange(25) > 0, 2, 1)
    assert chisquare(counts, wanted * counts.sum() / wanted.sum()).pvalue < 1e-3


def test_a_variance_too_large_for_a_table_is_refused():
    with pytest.raises(InputError, match="too large") as refused:
        gaussian_table(MOST_VARIANCE + 1)
    assert "exact sampler" in refused.value.hint
    with pytest.raises(InputError, match="above 0"):
        gaussian_table(-4)
