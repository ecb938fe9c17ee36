"""Models by name, as users write them in a configuration or on the command line."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ragwitness.core.registry import Listing, Registry, refuse_unlisted
from ragwitness.models.base import Embedder, LanguageModel

LANGUAGE_MODELS = Registry(
    "language model",
    {
        "reader": Listing(
            "ragwitness.models.reader.model:Reader.load",
            "the packaged reader, another of the repository's by name, or a folder of the Qwen3"
            " layout, in numpy",
            "reader[:NAME_OR_FOLDER][@TEMPERATURE]",
        ),
        "hf": Listing(
            "ragwitness.models.hf:HFLanguageModel", "any model of transformers", "hf:NAME_OR_FOLDER"
        ),
        "gguf": Listing(
            "ragwitness.models.endpoint:GgufModel",
            "a chat model out of a GGUF file, by llama.cpp",
            "gguf:FILE",
        ),
        "smollm2": Listing(
            "ragwitness.models.smollm2:load",
            "SmolLM2-135M-Instruct, fetched once (98 MB), by llama.cpp",
            "smollm2",
        ),
        "repeat": Listing(
            "ragwitness.models.base:EchoModel",
            "no model: repeats its passages, and so bounds what any generator copies",
            "repeat",
        ),
    },
    more=", URL#MODEL, openai/MODEL, openai-api/NAME/MODEL",
)
"""Language models that run here; :func:`load_language_model` also opens endpoints."""

_ENDPOINT = re.compile(r"https?://|openai(-api)?[/:]", re.IGNORECASE)

EMBEDDERS = Registry(
    "embedder",
    {
        "minilm": Listing("ragwitness.models.embedders:MiniLMEmbedder", "MiniLM, from its package"),
        "hf": Listing(
            "ragwitness.models.embedders:HFEmbedder",
            "any model of sentence-transformers",
            "hf:NAME_OR_FOLDER",
        ),
        "hashing": Listing(
            "ragwitness.models.embedders:hashing", "hashed words, no model", "hashing:DIMENSION"
        ),
    },
    more=", URL#MODEL",
)
"""Embedders that run here; :func:`load_embedder` also opens endpoints."""

_loaded: dict[tuple[str, str], Any] = {}
_lock = threading.RLock()
_elsewhere: Callable[[str], LanguageModel] | None = None


@contextmanager
def computed_by(make: Callable[[str], LanguageModel]) -> Iterator[None]:
    """Have ``make`` give each language model, by its address, that would be loaded here."""
    global _elsewhere
    _loaded.clear()
    _elsewhere = make
    try:
        yield
    finally:
        _elsewhere = None
        _loaded.clear()


def load_language_model(spec: str = "reader") -> LanguageModel:
    """Return the language model ``spec`` names, loaded once per process.

    Args:
        spec: ``reader`` (packaged), ``reader:NAME`` (of the repository's ladder; ``@0.7`` after
            it sets a temperature),
            ``reader:/folder`` (numpy, Qwen3 layout), ``hf:NAME_OR_FOLDER`` (transformers),
            ``gguf:FILE`` (llama.cpp), or a chat endpoint as targets are addressed: ``URL#MODEL``,
            ``openai/MODEL`` or ``openai-api/NAME/MODEL``.

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
        TargetError: The endpoint does not answer.
    """
    model: LanguageModel = _load(LANGUAGE_MODELS, spec)
    return model


def load_embedder(spec: str = "minilm") -> Embedder:
    """Return the embedder ``spec`` names, loaded once per process.

    Args:
        spec: ``minilm`` (from its package), ``hf:NAME_OR_FOLDER`` (transformers),
            ``hashing:DIMENSION``, or ``URL#MODEL`` of anything that answers
            ``POST URL/embeddings`` as OpenAI does, e.g. ``http://host:port/v1#bge``.

    Raises:
        InputError: ``spec`` has no valid form.
        MissingExtraError: The form needs an extra that is not installed.
        ModelError: The model cannot be loaded.
    """
    embedder: Embedder = _load(EMBEDDERS, spec)
    return embedder


def _load(registry: Registry[Listing], spec: str) -> Any:
    """Load what ``NAME`` or ``NAME:OPTION`` names, once; a failure is not remembered.

    Raises:
        UnlistedError: :func:`~ragwitness.core.registry.nothing_but` keeps it out.
    """
    refuse_unlisted(spec)
    # Looked up before the lock: a bad name must not wait for a model that loads.
    make, option = _maker(registry, spec)
    with _lock:
        key = (registry.noun, spec)
        if key not in _loaded:
            _loaded[key] = make(option) if option else make()
        return _loaded[key]


def _maker(registry: Registry[Listing], spec: str) -> tuple[Callable[..., Any], str]:
    """Return what makes the model of an address, and what it is given."""
    if _ENDPOINT.match(spec):
        from ragwitness.models.endpoint import EndpointEmbedder, EndpointModel

        return EndpointModel.load if registry is LANGUAGE_MODELS else EndpointEmbedder, spec
    name, option = registry.split(spec)
    if _elsewhere is not None and registry is LANGUAGE_MODELS:
        return _elsewhere, spec
    return registry.load(name), option
