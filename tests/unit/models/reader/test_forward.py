from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import ModelError
from ragwitness.models.reader import forward
from ragwitness.models.reader.checkpoint import read_config, read_weights, weights_digest
from ragwitness.models.reader.forward import Network
from tests.unit.models.models_fakes import advance


@pytest.fixture(scope="module")
def network(folder: Path) -> Network:
    return Network(read_config(folder), read_weights(folder))


@pytest.fixture(scope="module")
def ids() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 640, 600)


@pytest.fixture(scope="module")
def full(network: Network, ids: np.ndarray) -> np.ndarray:
    return network.logits(advance(network, network.new_cache(len(ids)), ids, len(ids)))


@pytest.mark.slow
def test_logits_equal_transformers(folder: Path, ids: np.ndarray, full: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        theirs = model(torch.from_numpy(ids[None])).logits[0].numpy()
    assert np.abs(theirs).max() > 1, "logits too flat to tell anything"
    np.testing.assert_allclose(full, theirs, atol=1e-3)
    np.testing.assert_allclose(full, theirs, atol=1e-4)  # far inside what is asked for


def test_everything_stays_float32(network: Network, ids: np.ndarray) -> None:
    hidden = advance(network, network.new_cache(300), ids[:300], 2)
    assert hidden.dtype == np.float32
    assert network.logits(hidden).dtype == np.float32


@pytest.mark.parametrize("keep", [0, 1, 7, 300, 600])
def test_only_wanted_positions_are_returned(
    network: Network, ids: np.ndarray, full: np.ndarray, keep: int
) -> None:
    cache = network.new_cache(len(ids))
    hidden = advance(network, cache, ids, keep)
    assert hidden.shape == (keep, 64)
    assert cache.length == len(ids)
    np.testing.assert_allclose(network.logits(hidden), full[len(ids) - keep :], atol=1e-4)


def test_token_by_token_equals_one_pass(
    network: Network, ids: np.ndarray, full: np.ndarray
) -> None:
    cache = network.new_cache(320)
    advance(network, cache, ids[:290], 0)
    rows = [network.run(cache, ids[i : i + 1], 1) for i in range(290, 320)]
    np.testing.assert_allclose(network.logits(np.concatenate(rows)), full[290:320], atol=1e-4)


def test_block_size_does_not_matter(
    folder: Path, ids: np.ndarray, full: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "BLOCK_TOKENS", 37)
    small = Network(read_config(folder), read_weights(folder))
    logits = small.logits(advance(small, small.new_cache(600), ids, 600))
    np.testing.assert_allclose(logits, full, atol=1e-4)


def _naive(network: Network, weights: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    """Qwen3 as its paper has it, in float64: no blocks, no caches, no fused or folded weights."""
    c, n = network.config, len(ids)

    def norm(rows: np.ndarray, name: str) -> np.ndarray:
        return rows / np.sqrt(np.square(rows).mean(-1, keepdims=True) + c.epsilon) * weights[name]

    def turned(heads: np.ndarray) -> np.ndarray:
        half = c.head_dim // 2
        angles = np.arange(n)[:, None] / c.rope_theta ** (2 * np.arange(half) / c.head_dim)
        one, other = heads[..., :half], heads[..., half:]
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.concatenate((one * cos - other * sin, other * cos + one * sin), -1)

    weights = {name: tensor.astype(np.float64) for name, tensor in weights.items()}
    rows = weights["model.embed_tokens.weight"][ids]
    for index in range(c.layers):
        stem = f"model.layers.{index}."
        inside = norm(rows, stem + "input_layernorm.weight")
        query, key, value = (
            (inside @ weights[f"{stem}self_attn.{letter}_proj.weight"].T).reshape(n, -1, c.head_dim)
            for letter in "qkv"
        )
        query = turned(norm(query, stem + "self_attn.q_norm.weight"))
        key = turned(norm(key, stem + "self_attn.k_norm.weight"))
        mixed = np.empty((n, c.heads, c.head_dim))
        for head in range(c.heads):
            shared = head // (c.heads // c.key_value_heads)
            for place in range(n):
                scores = key[: place + 1, shared] @ query[place, head] / np.sqrt(c.head_dim)
                shares = np.exp(scores - scores.max())
                mixed[place, head] = shares @ value[: place + 1, shared] / shares.sum()
        rows = rows + mixed.reshape(n, -1) @ weights[stem + "self_attn.o_proj.weight"].T
        inside = norm(rows, stem + "post_attention_layernorm.weight")
        gate, up = (inside @ weights[f"{stem}mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        rows = rows + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{stem}mlp.down_proj.weight"].T
    return norm(rows, "model.norm.weight") @ weights["model.embed_tokens.weight"].T


def test_logits_equal_the_textbook(folder: Path, ids: np.ndarray, full: np.ndarray) -> None:
    weights = read_weights(folder)
    exact = _naive(Network(read_config(folder), weights), weights, ids)
    assert np.abs(exact).max() > 1, "logits too flat to tell anything"
    np.testing.assert_allclose(full, exact, atol=5e-5)


def test_sharp_attention_keeps_its_maximum(folder: Path, ids: np.ndarray) -> None:
    """Gains so large that ``exp`` of a score could overflow are seen at load."""
    config, weights = read_config(folder), read_weights(folder)
    mild = Network(config, weights)
    assert all(layer.bounded for layer in mild._layers)
    sharp = "model.layers.1.self_attn.q_norm.weight"
    weights[sharp] = weights[sharp] * np.float32(60)
    network = Network(config, weights)
    assert [layer.bounded for layer in network._layers] == [True, False, True]
    found = network.logits(advance(network, network.new_cache(300), ids[:300], 300))
    exact = _naive(network, weights, ids[:300])
    np.testing.assert_allclose(found, exact, atol=2e-2)  # such scores magnify rounding
    assert np.abs(found - exact).mean() < 1e-3


def test_no_score_passes_its_bound(folder: Path, ids: np.ndarray) -> None:
    """With the factor's rounding, and met by a text made to meet it."""
    config, weights = read_config(folder), read_weights(folder)
    network, scores = Network(config, weights), []
    network._weigh = lambda found, bounded: scores.append(np.abs(found).max())  # type: ignore[method-assign]
    advance(network, network.new_cache(600), ids, 600)
    pairs = [np.abs(x.head_gain).reshape(6, -1, 2).max(-1) for x in network._layers]
    bound = max(float((p[:4].reshape(2, 2, -1) * p[4:, None]).max()) for p in pairs)
    assert 0.2 * bound < max(scores) <= 1.001 * bound


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_files_are_read(folder: Path, tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file

    original = load_file(folder / "model.safetensors")
    halves = {name: tensor.to(getattr(torch, kind)) for name, tensor in original.items()}
    save_file(halves, tmp_path / "model.safetensors")
    ours = read_weights(tmp_path)
    for name, tensor in halves.items():
        np.testing.assert_array_equal(ours[name], tensor.float().numpy())


def test_split_files_and_their_digest(folder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    save_file({n: weights[n] for n in names[:9]}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({n: weights[n] for n in names[9:]}, tmp_path / "model-00002-of-00002.safetensors")
    assert read_weights(tmp_path).keys() == weights.keys()
    assert len(weights_digest(tmp_path)) == 64
    assert weights_digest(tmp_path) != weights_digest(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "llama"}, "model_type"),
        ({"attention_bias": True}, "attention_bias"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6}}, "rope_type"),
        ({"head_dim": None}, "lacks or garbles"),
        ({"hidden_size": 32}, "of shape"),
        ({"num_hidden_layers": 4}, "missing"),
    ],
)
def test_unusable_configurations(
    folder: Path, tmp_path: Path, change: dict[str, object], says: str
) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    stated = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(stated | change))
    with pytest.raises(ModelError, match=says) as caught:
        Network(read_config(copy), read_weights(copy))
    assert caught.value.hint


def test_damaged_files(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="not a whole safetensors file"):
        read_weights(copy)
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no \.safetensors file"):
        read_weights(copy)
    (copy / "config.json").write_text("{")
    with pytest.raises(ModelError, match="not valid JSON"):
        read_config(copy)
