"""Interrogation Attack (Naseh et al., CCS 2025): thirty yes/no questions per document."""

from ragwitness.membership.interrogation.config import InterrogationConfig
from ragwitness.membership.interrogation.probe import Interrogation

__all__ = ["Interrogation", "InterrogationConfig"]
