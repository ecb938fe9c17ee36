"""The auditor's own models: language models that score and generate, and embedders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.lazy import lazy_names

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


__getattr__ = lazy_names(__name__, _HOMES)
