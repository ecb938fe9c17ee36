"""The forward pass of a ``Qwen3ForCausalLM`` in numpy, float32 from end to end.

One routine serves every use: it advances any number of sequences by any number of tokens each.
Linear maps run over all rows at once, attention runs per sequence over its own keys and values;
so prefill is one sequence with many tokens and batched decoding many sequences with one.

Layer by layer (Qwen3): RMS norm, queries and keys with their own RMS norm per head and rotary
positions, causal attention, residual; RMS norm, SiLU-gated MLP, residual. The gains of the two
block norms are multiplied into the weights that follow them, once, at load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import ModelError
from ragwitness.models.reader.checkpoint import Float32, NetworkConfig

# Weights of the network, laid out once at load the way the forward pass wants them.
#
# Three rearrangements, none of which changes what is computed:
#
# - A norm's gain is multiplied into the weights that follow it. The forward pass divides by the
# length ``sqrt(sum(x^2) + d * e)``, not by the root mean square, so gains also carry ``sqrt(d)``.
# - Query and key rows are reordered so that a rotary pair is adjacent: a rotation is then one
# complex multiplication. Both are reordered alike, which leaves their products as they are.
# - Matrices are transposed and fused for ``rows @ weight``.


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
    # RoPE: pair i turns by position * theta^(-2i / d).
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
        # Rows reordered so that rotary pairs are adjacent, queries and keys alike.
        turned = _interleaved(np.concatenate((query, key)), shape.head_dim)
        gate_up = [
            self.take(f"{mlp}{part}_proj.weight", shape.mlp_width, shape.width)
            for part in ("gate", "up")
        ]
        # The 1 / sqrt(d) of attention rides on the gain of the queries.
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


BLOCK_TOKENS = 128
"""Tokens per block of a prefill: bounds the attention matrix, and fits the processor's cache.

Blocks begin at multiples of it. BLAS rounds by the shape of a product, so a token's keys and
values are the same to the last bit only if it is always read in a block of the same shape; then a
stored prefix of whole blocks changes no answer, whatever was asked before.
"""

Tokens: TypeAlias = NDArray[np.int64]


class KeyValues:
    """Keys and values of one sequence, in room allocated once.

    Rows below ``length`` never change, so other threads may copy them at any time.

    Args:
        config: Shape of the network.
        capacity: Tokens there is room for.

    Attributes:
        keys: Shape (layers, key_value_heads, capacity, head_dim).
        values: The same.
        length: Tokens held.
    """

    __slots__ = ("keys", "length", "values")

    def __init__(self, config: NetworkConfig, capacity: int) -> None:
        shape = (config.layers, config.key_value_heads, capacity, config.head_dim)
        self.keys: Float32 = np.empty(shape, np.float32)
        self.values: Float32 = np.empty(shape, np.float32)
        self.length = 0

    @property
    def capacity(self) -> int:
        """Tokens there is room for."""
        return int(self.keys.shape[2])

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.keys.nbytes + self.values.nbytes

    def copy_prefix(self, other: KeyValues, length: int) -> None:
        """Become the first ``length`` tokens of ``other``."""
        self.keys[:, :, :length] = other.keys[:, :, :length]
        self.values[:, :, :length] = other.values[:, :, :length]
        self.length = length


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens to append to one sequence.

    Attributes:
        cache: The sequence so far; grows by ``ids``.
        ids: New tokens, shape (n,).
        keep: How many of the last positions' hidden states are wanted.
    """

    cache: KeyValues
    ids: Tokens
    keep: int


def _normalise(rows: Float32, epsilon: np.float32) -> Float32:
    """Bring the last axis to unit length; RMS norm up to a factor that is in the weights.

    ``x / sqrt(mean(x^2) + e) = sqrt(d) * x / sqrt(sum(x^2) + d * e)``: the ``sqrt(d)`` is
    multiplied into the gains, and ``epsilon`` here is ``d * e``.
    """
    length = np.vecdot(rows, rows)
    length += epsilon
    np.sqrt(length, out=length)
    unit: Float32 = rows / length[..., None]
    return unit


def _silu_product(gate_up: Float32) -> Float32:
    """``silu(gate) * up`` of (rows, 2 * mlp_width), gate first."""
    middle = gate_up.shape[1] // 2
    gate = gate_up[:, :middle]
    shrink = np.exp(-gate)
    shrink += np.float32(1)
    np.divide(gate, shrink, out=shrink)
    shrink *= gate_up[:, middle:]
    return shrink


def _softmax_mix(scores: Float32, values: Float32) -> Float32:
    """Softmax ``scores`` (heads, queries, keys) in place and mix ``values`` (heads, keys, dim)."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    mixed = scores @ values
    mixed /= scores.sum(-1, keepdims=True)
    return mixed


class Network:
    """A decoder ready to run; holds no state of any sequence, so threads may share it.

    Args:
        config: Its shape.
        weights: Float32 tensors under the names of ``Qwen3ForCausalLM``.

    Raises:
        ModelError: A tensor is missing or has the wrong shape.
    """

    def __init__(self, config: NetworkConfig, weights: Mapping[str, Float32]) -> None:
        self.config = config
        parts = Parts(config, weights)
        self._row_epsilon = np.float32(config.epsilon * config.width)
        self._head_epsilon = np.float32(config.epsilon * config.head_dim)
        self._embedding = parts.embedding()
        self._final_gain = parts.gain("model.norm.weight", config.width)
        self._unembedding = parts.unembedding()
        self._layers = [parts.layer(index) for index in range(config.layers)]
        self._phases = rotary_phases(config)
        self._causal: Float32 = np.triu(
            np.full((BLOCK_TOKENS, BLOCK_TOKENS), -np.inf, np.float32), 1
        )

    def new_cache(self, capacity: int) -> KeyValues:
        """Return an empty sequence with room for ``capacity`` tokens."""
        return KeyValues(self.config, capacity)

    def advance(self, cache: KeyValues, ids: Tokens, keep: int) -> Float32:
        """Append ``ids`` to one sequence, block by block.

        Returns:
            Final hidden states of the last ``keep`` positions, shape (keep, width).
        """
        total, kept, stop = len(ids), [], 0
        while stop < total:
            # Blocks begin at multiples of BLOCK_TOKENS, whatever the sequence holds already.
            start, room = stop, BLOCK_TOKENS - cache.length % BLOCK_TOKENS
            stop = min(start + room, total)
            wanted = max(0, min(stop - (total - keep), stop - start))
            kept.append(self.run([Span(cache, ids[start:stop], wanted)]))
        return np.concatenate(kept)

    def logits(self, hidden: Float32) -> Float32:
        """Unnormalised log-probabilities (n, vocabulary) from hidden states (n, width)."""
        scores: Float32 = hidden @ self._unembedding
        return scores

    def run(self, spans: Sequence[Span]) -> Float32:
        """Advance every span's sequence at once; at most ``BLOCK_TOKENS`` tokens per span.

        Returns:
            Final hidden states of the kept positions, span after span, shape (kept, width).
        """
        counts = [len(span.ids) for span in spans]
        starts = [span.cache.length for span in spans]
        positions = np.concatenate(
            [np.arange(start, start + n) for start, n in zip(starts, counts, strict=True)]
        )
        phases = self._phases[positions]
        rows = self._embedding[np.concatenate([span.ids for span in spans])]
        with np.errstate(over="ignore"):  # exp in SiLU reaches inf, whose inverse is the limit 0
            for index in range(self.config.layers):
                keeps = counts
                if index == self.config.layers - 1:  # above it nobody looks at other positions
                    keeps = [span.keep for span in spans]
                rows = self._block(index, rows, spans, keeps, phases)
        for span, count in zip(spans, counts, strict=True):
            span.cache.length += count
        normed = _normalise(rows, self._row_epsilon)
        normed *= self._final_gain
        return normed

    def _block(
        self,
        index: int,
        rows: Float32,
        spans: Sequence[Span],
        keeps: Sequence[int],
        phases: NDArray[np.complex64],
    ) -> Float32:
        """One decoder block over ``rows``; returns only each span's last ``keeps`` rows."""
        layer = self._layers[index]
        # 1. Norm, projections, rotary positions: all rows of all sequences in one product.
        query_key, value = self._project(layer, rows, phases)
        mixed, residual, start = [], [], 0
        # 2. Attention, sequence by sequence, over its own keys and values.
        for span, keep in zip(spans, keeps, strict=True):
            stop = start + len(span.ids)
            heads = self.config.heads
            self._remember(index, span.cache, query_key[start:stop, heads:], value[start:stop])
            if keep:
                queries = query_key[stop - keep : stop, :heads]
                mixed.append(self._attend(index, span.cache, len(span.ids), queries))
                residual.append(rows[stop - keep : stop])
            start = stop
        if not mixed:
            return rows[:0]
        # 3. Output projection and residual, then the gated MLP and residual.
        merged = len(mixed) > 1
        rows = np.concatenate(residual) if merged else residual[0]
        rows = rows + (np.concatenate(mixed) if merged else mixed[0]) @ layer.output
        rows += _silu_product(_normalise(rows, self._row_epsilon) @ layer.gate_up) @ layer.down
        return rows

    def _project(
        self, layer: Layer, rows: Float32, phases: NDArray[np.complex64]
    ) -> tuple[Float32, Float32]:
        """Rotated queries and keys (n, heads + kv, dim) and values (n, kv, dim)."""
        shape = self.config
        turned = shape.heads + shape.key_value_heads
        projected = (_normalise(rows, self._row_epsilon) @ layer.query_key_value).reshape(
            len(rows), -1, shape.head_dim
        )
        normed = _normalise(projected[:, :turned], self._head_epsilon)
        normed *= layer.head_gain
        # A rotation of an adjacent pair is one complex product.
        pairs = normed.view(np.complex64)
        pairs *= phases
        return normed, projected[:, turned:]

    @staticmethod
    def _remember(index: int, cache: KeyValues, key: Float32, value: Float32) -> None:
        """Write keys and values (n, kv, dim) behind those the sequence has."""
        start, stop = cache.length, cache.length + len(key)
        cache.keys[index, :, start:stop] = key.transpose(1, 0, 2)
        cache.values[index, :, start:stop] = value.transpose(1, 0, 2)

    def _attend(self, index: int, cache: KeyValues, new: int, queries: Float32) -> Float32:
        """Causal attention of the last positions; (n, heads, dim) to (n, heads * dim)."""
        stop, count, shared = cache.length + new, len(queries), self.config.key_value_heads
        keys, values = cache.keys[index, :, :stop], cache.values[index, :, :stop]
        # Query heads that share a key head become further rows of one product.
        grouped = queries.transpose(1, 0, 2).reshape(shared, -1, self.config.head_dim)
        scores = grouped @ keys.transpose(0, 2, 1)
        # The last ``count`` positions must not see each other's future.
        if count > 1:
            folded = scores.reshape(shared, -1, count, stop)
            folded[..., stop - count :] += self._causal[:count, :count]
        mixed = _softmax_mix(scores, values)
        return mixed.reshape(self.config.heads, count, -1).transpose(1, 0, 2).reshape(count, -1)
