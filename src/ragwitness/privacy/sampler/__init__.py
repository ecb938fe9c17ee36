"""Integer noise: the discrete Gaussian, exact, and from a committed table."""

from ragwitness.privacy.sampler.bits import Bits, ShakeBits, system_bits, uniform
from ragwitness.privacy.sampler.exact import (
    EXACT_SAMPLER,
    as_variance,
    discrete_gaussian,
    variance_of,
)
from ragwitness.privacy.sampler.pmf import exact_pmf
from ragwitness.privacy.sampler.table import (
    MOST_VARIANCE,
    TABLE_SAMPLER,
    GaussianTable,
    check_table,
    gaussian_table,
)

__all__ = [
    "EXACT_SAMPLER",
    "MOST_VARIANCE",
    "TABLE_SAMPLER",
    "Bits",
    "GaussianTable",
    "ShakeBits",
    "as_variance",
    "check_table",
    "discrete_gaussian",
    "exact_pmf",
    "gaussian_table",
    "system_bits",
    "uniform",
    "variance_of",
]
