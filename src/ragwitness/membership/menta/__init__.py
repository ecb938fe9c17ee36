"""MEntA (USENIX Security 2026): open questions, answers judged by entailment."""

from ragwitness.membership.menta.config import MentaConfig
from ragwitness.membership.menta.entailment import contained
from ragwitness.membership.menta.nli import NLI_MODEL, NliEntailment
from ragwitness.membership.menta.probe import Menta

__all__ = ["NLI_MODEL", "Menta", "MentaConfig", "NliEntailment", "contained"]
