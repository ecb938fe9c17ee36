from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import MissingExtraError
from research.gguf_file import main, tensor_names, write_gguf
from tests.unit.models.models_fakes import SHAPE, TEMPLATE, make_weights


@pytest.fixture(scope="module")
def written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    gguf = pytest.importorskip("gguf")
    target = tmp_path_factory.mktemp("gguf") / "reader.gguf"
    write_gguf(target, folder)
    return gguf.GGUFReader(target)


def _value(reader: object, key: str) -> object:
    return reader.fields[key].contents()  # type: ignore[attr-defined]


def test_shape(written: object) -> None:
    assert _value(written, "general.architecture") == "qwen3"
    expected = {
        "block_count": SHAPE["num_hidden_layers"],
        "embedding_length": SHAPE["hidden_size"],
        "attention.head_count": SHAPE["num_attention_heads"],
        "attention.head_count_kv": SHAPE["num_key_value_heads"],
        "attention.key_length": SHAPE["head_dim"],
        "feed_forward_length": SHAPE["intermediate_size"],
        "context_length": SHAPE["max_position_embeddings"],
        "rope.freq_base": SHAPE["rope_theta"],
    }
    for key, value in expected.items():
        assert _value(written, f"qwen3.{key}") == value


def test_tensors_survive(written: object) -> None:
    weights, names = make_weights(), tensor_names(3)
    found = {tensor.name: tensor for tensor in written.tensors}  # type: ignore[attr-defined]
    assert found.keys() == {names[name] for name in weights}
    for name, value in weights.items():
        data = found[names[name]].data
        np.testing.assert_array_equal(np.asarray(data).reshape(value.shape), value)


def test_tokenizer_and_layout(written: object) -> None:
    gguf = pytest.importorskip("gguf")
    tokens = _value(written, "tokenizer.ggml.tokens")
    kinds = _value(written, "tokenizer.ggml.token_type")
    assert isinstance(tokens, list)
    assert isinstance(kinds, list)
    assert len(tokens) == len(kinds) == SHAPE["vocab_size"]
    by_token = dict(zip(tokens, kinds, strict=True))
    assert by_token["<|end|>"] == gguf.TokenType.CONTROL
    assert by_token["[Mask_20]"] == gguf.TokenType.USER_DEFINED
    assert by_token["Ġthe"] == gguf.TokenType.NORMAL
    assert kinds[-1] == gguf.TokenType.UNUSED
    assert _value(written, "tokenizer.ggml.pre") == "smollm"
    assert _value(written, "tokenizer.ggml.eos_token_id") == 4
    assert _value(written, "tokenizer.ggml.padding_token_id") == 0
    assert _value(written, "tokenizer.ggml.add_bos_token") is False
    assert _value(written, "tokenizer.chat_template") == TEMPLATE
    assert _value(written, "tokenizer.ggml.merges")


def test_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gguf")
    target = tmp_path / "out.gguf"
    assert main([str(target), str(folder)]) == 0
    assert target.stat().st_size > 100_000
    assert main([]) == 2
    assert "Usage:" in capsys.readouterr().err
    assert main([str(target), str(tmp_path / "nothing")]) == 1


def test_missing_extra(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"ragwitness\[gguf\]"):
        write_gguf(tmp_path / "out.gguf", folder)
