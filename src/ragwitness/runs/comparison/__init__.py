"""Privacy against usefulness: what stands in a private corpus's place, side by side."""

from ragwitness.runs.comparison.plan import (
    ORIGIN,
    ZERO_SHOT,
    ComparisonPlan,
    Judge,
    Material,
    Question,
    Variant,
)
from ragwitness.runs.comparison.result import Compared, Comparison, Usefulness, WorstCase
from ragwitness.runs.comparison.run import run_comparison

__all__ = [
    "ORIGIN",
    "ZERO_SHOT",
    "Compared",
    "Comparison",
    "ComparisonPlan",
    "Judge",
    "Material",
    "Question",
    "Usefulness",
    "Variant",
    "WorstCase",
    "run_comparison",
]
