"""Weights of the network, laid out once at load the way the forward pass wants them.

Three rearrangements, none of which changes what is computed:

- A norm's gain is multiplied into the weights that follow it. The forward pass divides by the
  length ``sqrt(sum(x^2) + d * e)``, not by the root mean square, so gains also carry ``sqrt(d)``.
- Query and key rows are reordered so that a rotary pair is adjacent: a rotation is then one
  complex multiplication. Both are reordered alike, which leaves their products as they are.
- Matrices are transposed and fused for ``rows @ weight``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import ModelError

from .checkpoint import Float32, NetworkConfig

__all__ = ["Layer", "Parts", "rotary_phases"]


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one block, fused and transposed for ``rows @ weight``.

    Attributes:
        query_key_value: (width, (heads + 2 * key_value_heads) * head_dim).
        head_gain: Norm gain of every query and key head, queries scaled by
            ``head_dim ** -0.5``; (heads + key_value_heads, head_dim).
        output: (heads * head_dim, width).
        gate_up: (width, 2 * mlp_width).
        down: (mlp_width, width).
    """

    query_key_value: Float32
    head_gain: Float32
    output: Float32
    gate_up: Float32
    down: Float32


def _transposed(weight: Float32) -> Float32:
    """Lay (out, in) out as (in, out): one row times this is over twice as fast in BLAS."""
    return np.ascontiguousarray(weight.T)


def _interleaved(weight: Float32, head_dim: int) -> Float32:
    """Reorder the first axis so that each rotary pair (i, i + head_dim / 2) is adjacent."""
    paired = weight.reshape(-1, 2, head_dim // 2, *weight.shape[1:])
    return np.ascontiguousarray(paired.swapaxes(1, 2)).reshape(weight.shape)


def rotary_phases(config: NetworkConfig) -> NDArray[np.complex64]:
    """Rotations by position, (positions, 1, head_dim / 2); angles in float32 as elsewhere."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32)
    exponents /= np.float32(config.head_dim)
    frequencies = np.float32(1) / np.float32(config.rope_theta) ** exponents
    angles = np.arange(config.positions, dtype=np.float32)[:, None] * frequencies
    phases = np.empty(angles.shape, np.complex64)
    phases.real, phases.imag = np.cos(angles), np.sin(angles)
    return phases[:, None]


class Parts:
    """Takes a network apart by the names of ``Qwen3ForCausalLM``.

    Args:
        config: Its shape.
        weights: Float32 tensors by name.
    """

    def __init__(self, config: NetworkConfig, weights: Mapping[str, Float32]) -> None:
        self._config = config
        self._weights = weights

    def embedding(self) -> Float32:
        """Rows of the input embedding, (vocabulary, width)."""
        return self.take("model.embed_tokens.weight", self._config.vocabulary, self._config.width)

    def unembedding(self) -> Float32:
        """Output embedding, (width, vocabulary); the input's transpose where they are tied."""
        name = "lm_head.weight"
        if name not in self._weights:
            return _transposed(self.embedding())
        return _transposed(self.take(name, self._config.vocabulary, self._config.width))

    def take(self, name: str, *shape: int) -> Float32:
        """Return a tensor.

        Raises:
            ModelError: It is missing or has another shape.
        """
        found = self._weights.get(name)
        if found is None or found.shape != shape:
            state = "missing" if found is None else f"of shape {found.shape}, not {shape}"
            raise ModelError(
                f"The tensor {name} is {state}.", "Copy config.json and weights from one model."
            )
        return found

    def gain(self, name: str, size: int) -> Float32:
        """Return a norm's gain times the square root of its size, shape (size,)."""
        return self.take(name, size) * np.float32(size**0.5)  # see the module's docstring

    def layer(self, index: int) -> Layer:
        """Return block ``index``, fused and transposed."""
        shape, stem = self._config, f"model.layers.{index}."
        attention, mlp = stem + "self_attn.", stem + "mlp."
        inner = shape.heads * shape.head_dim
        outer = shape.key_value_heads * shape.head_dim
        before_attention = self.gain(stem + "input_layernorm.weight", shape.width)
        before_mlp = self.gain(stem + "post_attention_layernorm.weight", shape.width)
        query_gain = self.gain(attention + "q_norm.weight", shape.head_dim)
        key_gain = self.gain(attention + "k_norm.weight", shape.head_dim)
        query, key, value = (
            self.take(f"{attention}{letter}_proj.weight", size, shape.width)
            for letter, size in (("q", inner), ("k", outer), ("v", outer))
        )
        turned = _interleaved(np.concatenate((query, key)), shape.head_dim)
        gate_up = [
            self.take(f"{mlp}{part}_proj.weight", shape.mlp_width, shape.width)
            for part in ("gate", "up")
        ]
        gains = [query_gain * np.float32(shape.head_dim**-0.5)] * shape.heads
        gains += [key_gain] * shape.key_value_heads
        head_gain = _interleaved(np.concatenate(gains), shape.head_dim)
        return Layer(
            query_key_value=_transposed(np.concatenate((turned, value)) * before_attention),
            head_gain=head_gain.reshape(-1, shape.head_dim),
            output=_transposed(self.take(attention + "o_proj.weight", shape.width, inner)),
            gate_up=_transposed(np.concatenate(gate_up) * before_mlp),
            down=_transposed(self.take(mlp + "down_proj.weight", shape.width, shape.mlp_width)),
        )
