"""Models by name, as users write them in a configuration or on the command line."""

from __future__ import annotations

import threading
from typing import Any

from ragwitness.errors import InputError

from .base import Embedder, LanguageModel

__all__ = ["EMBEDDER_FORMS", "LANGUAGE_MODEL_FORMS", "load_embedder", "load_language_model"]

LANGUAGE_MODEL_FORMS = ("reader", "reader:/folder", "hf:NAME_OR_FOLDER")
"""Valid names of language models."""

EMBEDDER_FORMS = ("minilm", "hf:NAME_OR_FOLDER")
"""Valid names of embedders."""

_loaded: dict[tuple[str, str], Any] = {}
_lock = threading.RLock()


def _unknown(what: str, spec: str, forms: tuple[str, ...]) -> InputError:
    return InputError(f"There is no {what} {spec!r}.", f"Valid forms: {', '.join(forms)}")


def _new_language_model(spec: str) -> LanguageModel:
    kind, colon, rest = spec.partition(":")
    if kind == "reader" and bool(colon) == bool(rest):
        from .reader import Reader

        return Reader.load(rest or None)
    if kind == "hf" and rest:
        from .hf import HFLanguageModel

        return HFLanguageModel(rest)
    raise _unknown("language model", spec, LANGUAGE_MODEL_FORMS)


def _new_embedder(spec: str) -> Embedder:
    kind, _, rest = spec.partition(":")
    if spec == "minilm":
        from .minilm import MiniLMEmbedder

        return MiniLMEmbedder()
    if kind == "hf" and rest:
        from .hf import HFEmbedder

        return HFEmbedder(rest)
    raise _unknown("embedder", spec, EMBEDDER_FORMS)


def load_language_model(spec: str = "reader") -> LanguageModel:
    """Return the language model ``spec`` names, loaded once per process.

    Args:
        spec: ``reader`` (packaged), ``reader:/folder`` (numpy, Qwen3 layout), or
            ``hf:NAME_OR_FOLDER`` (transformers).

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
    """
    with _lock:
        key = ("language model", spec)
        if key not in _loaded:
            _loaded[key] = _new_language_model(spec)
        model: LanguageModel = _loaded[key]
        return model


def load_embedder(spec: str = "minilm") -> Embedder:
    """Return the embedder ``spec`` names, loaded once per process.

    Args:
        spec: ``minilm`` (from its package) or ``hf:NAME_OR_FOLDER`` (transformers).

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
    """
    with _lock:
        key = ("embedder", spec)
        if key not in _loaded:
            _loaded[key] = _new_embedder(spec)
        embedder: Embedder = _loaded[key]
        return embedder
