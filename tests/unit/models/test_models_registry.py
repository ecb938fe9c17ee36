from __future__ import annotations

from pathlib import Path

import pytest

from ragwitness import models
from ragwitness.errors import InputError, ModelError
from ragwitness.models import load_embedder, load_language_model
from ragwitness.models.registry import EMBEDDER_FORMS, LANGUAGE_MODEL_FORMS


def test_models_are_loaded_once(folder: Path) -> None:
    first = load_language_model(f"reader:{folder}")
    assert load_language_model(f"reader:{folder}") is first
    assert first.name.startswith("reader@")


@pytest.mark.parametrize("spec", ["", "gpt-4", "reader:", "hf:", "hf", "Reader", "readers:/x"])
def test_unknown_language_models(spec: str) -> None:
    with pytest.raises(InputError, match="There is no language model") as caught:
        load_language_model(spec)
    for form in LANGUAGE_MODEL_FORMS:
        assert form in caught.value.hint


@pytest.mark.parametrize("spec", ["", "bge", "hf:", "minilm:/x", "reader"])
def test_unknown_embedders(spec: str) -> None:
    with pytest.raises(InputError, match="There is no embedder") as caught:
        load_embedder(spec)
    for form in EMBEDDER_FORMS:
        assert form in caught.value.hint


def test_failures_are_not_remembered(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ModelError, match="no model folder"):
            load_language_model(f"reader:{tmp_path / 'nothing'}")


def test_every_public_name_is_there() -> None:
    pytest.importorskip("torch")
    assert models.__all__ == sorted(models.__all__)
    for name in models.__all__:
        assert getattr(models, name).__name__ == name
    with pytest.raises(AttributeError, match="nonsense"):
        models.nonsense  # noqa: B018
