"""Min-K% and Min-K%++ (Shi et al., 2024; Zhang et al., 2025) on the answer of a RAG system."""

from ragwitness.membership.min_k.config import MinKConfig
from ragwitness.membership.min_k.probe import MinK

__all__ = ["MinK", "MinKConfig"]
