from __future__ import annotations

from pathlib import Path

import pytest

from ragwitness.core.errors import InputError, ModelError
from ragwitness.models.model_registry import (
    EMBEDDERS,
    LANGUAGE_MODELS,
    load_embedder,
    load_language_model,
)
from ragwitness.models.reader.checkpoint import weights_digest
from ragwitness.models.reader.model import LADDER, NAMED, Reader


def test_models_are_loaded_once(folder: Path) -> None:
    first = load_language_model(f"reader:{folder}")
    assert load_language_model(f"reader:{folder}") is first
    assert first.name.startswith("reader@")


@pytest.mark.parametrize("spec", ["", "gpt-4", "Reader", "readers:/x"])
def test_unknown_language_models(spec: str) -> None:
    with pytest.raises(InputError, match="There is no language model") as caught:
        load_language_model(spec)
    for form in LANGUAGE_MODELS.forms():
        assert form in caught.value.hint


@pytest.mark.parametrize(
    ("load", "spec", "form"),
    [
        (load_language_model, "reader:", "reader[:NAME_OR_FOLDER][@TEMPERATURE]"),
        (load_language_model, "hf:", "hf:NAME_OR_FOLDER"),
        (load_language_model, "hf", "hf:NAME_OR_FOLDER"),
        (load_embedder, "hf:", "hf:NAME_OR_FOLDER"),
        (load_embedder, "minilm:/x", "minilm"),
    ],
)
def test_a_model_that_is_not_written_in_its_form(load, spec: str, form: str) -> None:
    with pytest.raises(InputError, match="is malformed") as caught:
        load(spec)
    assert caught.value.hint == f"Write it as {form}."


@pytest.mark.parametrize("spec", ["", "bge", "reader"])
def test_unknown_embedders(spec: str) -> None:
    with pytest.raises(InputError, match="There is no embedder") as caught:
        load_embedder(spec)
    for form in EMBEDDERS.forms():
        assert form in caught.value.hint


def test_a_reader_of_the_ladder_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = load_language_model("reader:reader-1")
    assert named.name == "reader@" + weights_digest(LADDER / "reader-1")[:6]
    # An installed package has no ladder: one line says where it is.
    monkeypatch.setattr("ragwitness.models.reader.model.LADDER", tmp_path)
    with pytest.raises(ModelError, match="no reader of that name here") as caught:
        load_language_model("reader:reader-2")
    assert "experiments/readers" in caught.value.hint


def test_the_environment_may_name_the_reader_that_is_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAMED, "reader-1@0.5")
    assert Reader.load().name == "reader@" + weights_digest(LADDER / "reader-1")[:6] + " T=0.5"


def test_failures_are_not_remembered(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ModelError, match="no model folder"):
            load_language_model(f"reader:{tmp_path / 'nothing'}")
