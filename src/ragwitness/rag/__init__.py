"""A RAG system we own: chunk, index, retrieve, prompt, generate; as a target or served."""

from ragwitness.rag.build import build_system
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import RagSystem
from ragwitness.rag.prompts import TEMPLATES, PromptTemplate, load_template
from ragwitness.rag.target import LabTarget

__all__ = [
    "TEMPLATES",
    "LabTarget",
    "PromptTemplate",
    "RagConfig",
    "RagSystem",
    "build_system",
    "load_template",
]
