"""The exact discrete Gaussian: its bytes, its probabilities, its bounds."""

import hashlib
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from scipy.stats import chisquare

from ragwitness.core.errors import InputError
from ragwitness.privacy.sampler import (
    ShakeBits,
    discrete_gaussian,
    system_bits,
    uniform,
    variance_of,
)
from ragwitness.privacy.table import PRECISION, weights
from tests.support.gaussian import exact_pmf

GOLDEN = [-10, 22, -17, -5, 15, -15, -4, -11, -10, 2, 17, -7]
GOLDEN_NEXT = "ce731be2"


class Script:
    """Bytes from a list, and how many were taken."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, count: int) -> bytes:
        taken = self.content[self.at : self.at + count]
        self.at += count
        return taken


def test_the_stream_is_shake256_from_its_beginning():
    # FIPS 202, SHAKE256 of the empty message.
    known = "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f"
    bits = ShakeBits(b"")
    assert (bits.take(5) + bits.take(0) + bits.take(27)).hex() == known
    pieces = b"".join(bits.take(count) for count in (1, 700, 3, 5000))
    assert pieces == hashlib.shake_256(b"").digest(32 + 5704)[32:]


def test_the_systems_bytes_never_repeat():
    bits = system_bits()
    assert len(bits.take(16)) == 16
    assert bits.take(16) != bits.take(16)


def test_a_uniform_draw_reads_big_endian_and_rejects():
    script = Script(bytes([0xFF, 0xFF, 0x02, 0x01]))
    # 1,000 needs ten bits: 0xFFFF is 1,023 under the mask and too high, 0x0201 is 513.
    assert uniform(1000, script) == 513
    assert script.at == 4
    assert uniform(1, script) == 0
    assert script.at == 4
    assert [uniform(256, Script(bytes([value]))) for value in range(256)] == list(range(256))


@pytest.mark.parametrize("bound", [2, 3, 5, 1000])
def test_a_uniform_draw_favours_none(bound):
    bits = ShakeBits(b"uniform")
    counts = Counter(uniform(bound, bits) for _ in range(20 * bound))
    assert set(counts) <= set(range(bound))
    assert chisquare([counts[i] for i in range(bound)]).pvalue > 1e-4


@pytest.mark.parametrize("variance", [Fraction(1, 9), 1, Fraction(7, 3), 64, variance_of(40.3)])
def test_draws_follow_the_exact_probabilities(variance):
    draws, bits = 12_000, ShakeBits(f"draws {variance}".encode())
    counts = Counter(discrete_gaussian(variance, bits) for _ in range(draws))
    pmf = [float(p) for p in exact_pmf(variance)]
    inner = [k for k in range(-len(pmf) + 1, len(pmf)) if pmf[abs(k)] * draws >= 8]
    observed = [counts[k] for k in inner]
    expected = [pmf[abs(k)] * draws for k in inner]
    rest = draws - sum(expected)
    if rest > 8:
        observed.append(draws - sum(observed))
        expected.append(rest)
    scale = sum(observed) / sum(expected)
    assert chisquare(observed, [e * scale for e in expected]).pvalue > 1e-4


def test_the_same_bytes_give_the_same_draws_on_every_platform():
    bits = ShakeBits(b"golden")
    assert [discrete_gaussian(100, bits) for _ in range(12)] == GOLDEN
    assert bits.take(4).hex() == GOLDEN_NEXT


@pytest.mark.parametrize("variance", [Fraction(1, 9), 2, 64, variance_of(300.5)])
def test_weights_lie_below_the_true_ones_by_no_more_than_stated(variance):
    found = weights(variance)
    with localcontext() as context:
        context.prec = 130
        unit = Decimal(2) ** PRECISION
        for k in {0, 1, 2, len(found) // 7, len(found) // 2, len(found) - 1}:
            exponent = Decimal(k * k) * variance.denominator / (2 * variance.numerator)
            short = (-exponent).exp() * unit - found[k]
            assert 0 <= short <= k * (k + 1)


def test_probabilities_add_up_and_have_the_known_variance():
    pmf = exact_pmf(64)
    assert pmf[0] + 2 * sum(pmf[1:]) == 1
    # CKS20, Prop. 17: below σ², and by Poisson summation next to it.
    variance = float(2 * sum(k * k * p for k, p in enumerate(pmf)))
    assert variance == pytest.approx(64, rel=1e-12)
    assert float(2 * sum(k * k * p for k, p in enumerate(exact_pmf(Fraction(1, 4))))) < 0.25
    # The normaliser, by the other side of Poisson summation.
    sigma = 0.5
    theta = 1 + 2 * sum(math.exp(-2 * (math.pi * sigma * j) ** 2) for j in (1, 2, 3))
    normaliser = sigma * math.sqrt(2 * math.pi) * theta
    assert float(exact_pmf(Fraction(1, 4))[0]) == pytest.approx(1 / normaliser, rel=1e-12)


def test_a_float_sigma_is_rounded_to_more_noise_never_less():
    for sigma in (0.001, 0.7, 1, 17.3, 1076.2):
        exact = Fraction(sigma) ** 2
        assert exact <= variance_of(sigma) < exact + Fraction(1, 2**16)
    assert variance_of(3.0) == 9


@pytest.mark.parametrize("variance", [0, -1, Fraction(-1, 2), 2.0, True, "4"])
def test_a_variance_that_is_not_an_exact_number_above_0_is_refused(variance):
    with pytest.raises(InputError, match="variance") as refused:
        discrete_gaussian(variance, system_bits())
    assert repr(variance) in refused.value.message
    assert "variance_of" in refused.value.hint


@pytest.mark.parametrize("sigma", [0.0, -2.0, math.inf, math.nan])
def test_a_sigma_that_is_not_finite_or_not_above_0_is_refused(sigma):
    with pytest.raises(InputError, match="sigma must be a finite number above 0"):
        variance_of(sigma)
