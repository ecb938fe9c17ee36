"""RAG-MIA (Anderson et al., 2025): ask the system whether a text stands in its context."""

from ragwitness.membership.rag_mia.config import TEMPLATES, RagMiaConfig
from ragwitness.membership.rag_mia.probe import RagMia

__all__ = ["TEMPLATES", "RagMia", "RagMiaConfig"]
