"""Read a folder in the layout of ``Qwen3ForCausalLM`` into float32 arrays, without torch.

Safetensors is a length, a JSON header and raw bytes; it is read here directly because its numpy
binding cannot give bfloat16, in which most published models are stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError
from ragwitness.core.files import files_digest

Float32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Shape of the decoder.

    Attributes:
        layers: Number of decoder blocks.
        width: Size of the residual stream.
        heads: Number of query heads.
        key_value_heads: Number of key and value heads; divides ``heads``.
        head_dim: Size of one head.
        mlp_width: Inner size of the gated MLP.
        vocabulary: Number of rows of the embedding.
        rope_theta: Base of the rotary positions.
        epsilon: Epsilon of every RMS norm.
        positions: Context length in tokens.
    """

    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_dim: int
    mlp_width: int
    vocabulary: int
    rope_theta: float
    epsilon: float
    positions: int


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises:
        ModelError: The file is missing or holds no JSON object.
    """
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(
            f"The model folder {path.parent} has no readable {path.name}.",
            "Give a folder with config.json, model.safetensors and tokenizer.json.",
        ) from error
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON.", "Copy the model folder again.") from error
    if not isinstance(loaded, dict):
        raise ModelError(f"{path} holds no JSON object.", "Copy the model folder again.")
    return loaded


def read_config(folder: Path) -> NetworkConfig:
    """Return the shape stated by ``config.json``.

    Raises:
        ModelError: The file is missing or unreadable, or describes a network this module
            does not compute.
    """
    raw = read_json(folder / "config.json")
    # transformers 5 moved the rotary base into a table.
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    computed = {"model_type": "qwen3", "hidden_act": "silu", "rope_type": "default"}
    stated = {"hidden_act": "silu", "rope_type": "default", **raw, **rope}
    unsupported = [name for name, value in computed.items() if stated.get(name) != value]
    unsupported += [name for name in ("attention_bias", "use_sliding_window") if raw.get(name)]
    if unsupported:
        raise ModelError(
            f"The numpy reader cannot run {folder}, because of its {', '.join(unsupported)}.",
            f"Run it through transformers instead: hf:{folder}",
        )
    try:
        return NetworkConfig(
            layers=int(raw["num_hidden_layers"]),
            width=int(raw["hidden_size"]),
            heads=int(raw["num_attention_heads"]),
            key_value_heads=int(raw["num_key_value_heads"]),
            head_dim=int(raw["head_dim"]),
            mlp_width=int(raw["intermediate_size"]),
            vocabulary=int(raw["vocab_size"]),
            rope_theta=float(rope["rope_theta"] if "rope_theta" in rope else raw["rope_theta"]),
            epsilon=float(raw["rms_norm_eps"]),
            positions=int(raw["max_position_embeddings"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{folder / 'config.json'} lacks or garbles {error}.",
            "Give the config.json of a Qwen3ForCausalLM.",
        ) from error


def _weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of ``folder``, sorted by name.

    Raises:
        ModelError: There are none.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(
            f"The model folder {folder} holds no .safetensors file.",
            "Convert the weights with transformers' save_pretrained.",
        )
    return files


def weights_digest(folder: Path) -> str:
    """Return the sha256 (hex) over the safetensors files, in order of their names."""
    return files_digest(_weight_files(folder))


def _to_float32(raw: NDArray[np.uint8], kind: str, path: Path) -> Float32:
    if kind == "BF16":  # the upper half of a float32
        return (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if kind == "F16":
        return raw.view(np.float16).astype(np.float32)
    if kind == "F32":
        return raw.view(np.float32).copy()
    raise ModelError(
        f"{path} stores weights as {kind}; only F32, F16 and BF16 are read.",
        "Convert them with transformers' save_pretrained.",
    )


def _read_safetensors(path: Path) -> dict[str, Float32]:
    from safetensors import SafetensorError, deserialize

    try:
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"{path} is not a whole safetensors file.", "Copy the model folder again."
        ) from error
    # safetensors.numpy has no bfloat16, so its raw bytes are taken.
    weights = {
        name: _to_float32(np.frombuffer(entry["data"], np.uint8), entry["dtype"], path).reshape(
            entry["shape"]
        )
        for name, entry in entries
    }
    broken = next((name for name, weight in weights.items() if not np.isfinite(weight).all()), None)
    if broken is not None:
        raise ModelError(
            f"{path} holds values that are no numbers, in {broken}.", "Copy the model folder again."
        )
    return weights


def read_weights(folder: Path) -> dict[str, Float32]:
    """Return every tensor of ``folder`` by name, as float32.

    Raises:
        ModelError: No weights, a damaged file, an unknown number format, or a number that is
            none (NaN or infinity).
    """
    weights: dict[str, Float32] = {}
    for path in _weight_files(folder):
        weights |= _read_safetensors(path)
    return weights
