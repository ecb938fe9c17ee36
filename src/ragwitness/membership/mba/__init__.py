"""MBA (WWW 2025): membership audit by masked words of the document."""

from ragwitness.membership.mba.config import (
    LLM_MASK_PROMPT,
    MASK_PROMPT,
    PUBLISHED_GAMMA,
    MbaConfig,
)
from ragwitness.membership.mba.probe import Mba
from ragwitness.membership.mba.spelling import LibrarySpeller, SequenceSpeller, Speller

__all__ = [
    "LLM_MASK_PROMPT",
    "MASK_PROMPT",
    "PUBLISHED_GAMMA",
    "LibrarySpeller",
    "Mba",
    "MbaConfig",
    "SequenceSpeller",
    "Speller",
]
