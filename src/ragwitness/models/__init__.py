"""The auditor's own models: language models that score and generate, and embedders."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .base import ChatPrompt, Embedder, Generation, LanguageModel, TextScores

if TYPE_CHECKING:
    from .hf import HFEmbedder, HFLanguageModel
    from .minilm import MiniLMEmbedder
    from .reader import Reader
    from .registry import load_embedder, load_language_model
    from .words import WordScore, map_to_words, word_scores

__all__ = [
    "ChatPrompt",
    "Embedder",
    "Generation",
    "HFEmbedder",
    "HFLanguageModel",
    "LanguageModel",
    "MiniLMEmbedder",
    "Reader",
    "TextScores",
    "WordScore",
    "load_embedder",
    "load_language_model",
    "map_to_words",
    "word_scores",
]

_HOMES = {
    "HFEmbedder": "hf",
    "HFLanguageModel": "hf",
    "MiniLMEmbedder": "minilm",
    "Reader": "reader",
    "WordScore": "words",
    "load_embedder": "registry",
    "load_language_model": "registry",
    "map_to_words": "words",
    "word_scores": "words",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
