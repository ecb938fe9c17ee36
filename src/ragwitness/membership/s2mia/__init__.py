"""S2MIA (Li et al., 2025): does the system say the second half of a document by itself?"""

from ragwitness.membership.s2mia.combine import (
    Boosted,
    Thresholds,
    fit_classifier,
    fit_thresholds,
)
from ragwitness.membership.s2mia.config import PROMPT, S2MiaConfig
from ragwitness.membership.s2mia.probe import S2Mia
from ragwitness.membership.s2mia.similarity import bleu, lexical_cosine

__all__ = [
    "PROMPT",
    "Boosted",
    "S2Mia",
    "S2MiaConfig",
    "Thresholds",
    "bleu",
    "fit_classifier",
    "fit_thresholds",
    "lexical_cosine",
]
