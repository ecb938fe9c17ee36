"""The forward pass of a ``Qwen3ForCausalLM`` in numpy, float32 from end to end.

One routine serves every use: it advances a sequence by any number of tokens, many while a prompt is
read, and few while an answer is written.

Layer by layer (Qwen3): RMS norm, queries and keys with their own RMS norm per head and rotary
positions, causal attention, residual; RMS norm, SiLU-gated MLP, residual. The gains of the two
block norms are multiplied into the weights that follow them, once, at load.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError
from ragwitness.models.reader.checkpoint import Float32, NetworkConfig

# Weights of the network, laid out once at load the way the forward pass wants them.
#
# Four rearrangements, none of which changes what is computed:
#
# - A norm's gain is multiplied into the weights that follow it. The forward pass divides by the
# length ``sqrt(sum(x^2) + d * e)``, not by the root mean square; so gains also carry ``sqrt(d)``.
# - Query and key rows are reordered so that a rotary pair is adjacent: a rotation is then one
# complex multiplication. Both are reordered alike, which leaves their products as they are.
# - Matrices are transposed and fused for ``rows @ weight``.
# - Gate and up have their signs turned: ``silu(g) * u = (-g) / (1 + exp(-g)) * (-u)`` then needs
# no negation.


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one block, fused and transposed for ``rows @ weight``.

    Attributes:
        query_key_value: (width, (heads + 2 * key_value_heads) * head_dim).
        head_gain: Norm gain of every query and key head, queries scaled by
            ``head_dim ** -0.5``; (heads + key_value_heads, head_dim).
        output: (heads * head_dim, width).
        gate_up: Both with their signs turned, (width, 2 * mlp_width).
        down: (mlp_width, width).
        bounded: Whether no softmax of this block can overflow; see :func:`_is_bounded`.
    """

    query_key_value: Float32
    head_gain: Float32
    output: Float32
    gate_up: Float32
    down: Float32
    bounded: bool


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


_LARGEST = 3e38
"""Largest sum of an unshifted softmax; float32 ends at 3.4e38."""

_FAINTEST = np.float32(-80)
"""Scores this far below the largest are raised to here: ``exp`` of less is a denormal number, and
a processor multiplies those a hundred times more slowly."""


def _is_bounded(head_gain: Float32, value: Float32, config: NetworkConfig) -> bool:
    """Whether ``exp`` of any score, and any sum over it, stays far inside float32.

    Queries and keys are brought to unit length, then multiplied by their gains, then rotated in
    pairs. So by Cauchy-Schwarz no score exceeds the largest product of a pair's gains, whatever
    the text; and a value is at most as long as its column of weights. Where this holds, the
    softmax needs no maximum taken off.

    Args:
        head_gain: See :class:`Layer`.
        value: Weights of the values after their norm's gain, (out, width).
        config: Shape of the network.
    """
    pairs = np.abs(head_gain).reshape(len(head_gain), -1, 2).max(-1)
    queries = pairs[: config.heads].reshape(config.key_value_heads, -1, pairs.shape[1])
    # A thousandth for rounding, which is a hundred times smaller.
    score = 1.001 * float((queries * pairs[config.heads :, None]).max())
    longest = 1.0 + float(np.sqrt(np.square(value, dtype=np.float64).sum(-1).max()))
    largest = score + math.log(config.positions * longest)
    return bool(-score > _FAINTEST and largest < math.log(_LARGEST))


class Parts:
    """Takes a network apart by the names of ``Qwen3ForCausalLM``.

    Args:
        config: Shape of the network.
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
        tensor = self._weights.get(name)
        if tensor is None or tensor.shape != shape:
            state = "missing" if tensor is None else f"of shape {tensor.shape}, not {shape}"
            raise ModelError(
                f"The tensor {name} is {state}.", "Copy config.json and weights from one model."
            )
        return tensor

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
            self.take(f"{mlp}{half}_proj.weight", shape.mlp_width, shape.width)
            for half in ("gate", "up")
        ]
        # The 1 / sqrt(d) of attention rides on the gain of the queries.
        gains = [query_gain * np.float32(shape.head_dim**-0.5)] * shape.heads
        gains += [key_gain] * shape.key_value_heads
        turned_gain = _interleaved(np.concatenate(gains), shape.head_dim)
        head_gain = turned_gain.reshape(-1, shape.head_dim)
        value = value * before_attention
        return Layer(
            query_key_value=_transposed(np.concatenate((turned * before_attention, value))),
            head_gain=head_gain,
            output=_transposed(self.take(attention + "o_proj.weight", shape.width, inner)),
            gate_up=_transposed(np.concatenate(gate_up) * -before_mlp),
            down=_transposed(self.take(mlp + "down_proj.weight", shape.width, shape.mlp_width)),
            bounded=_is_bounded(head_gain, value, shape),
        )


# BLAS rounds by the shape of a product, and no answer may depend on earlier questions, not even in
# its last bit. So all shapes follow from the sequence alone: it is read in blocks that begin at
# multiples of BLOCK_TOKENS, whether or not earlier blocks came from a store.

BLOCK_TOKENS = 128
"""Tokens read at once: the scores of their attention fit the processor's cache."""

_LEAST_ROWS = 16
"""Rows of the smallest product with a weight; from here on BLAS rounds each row alike."""

Tokens: TypeAlias = NDArray[np.int64]


class KeyValues:
    """Keys and values of one sequence, in room allocated once.

    Rows below ``length`` never change, so other threads may copy them at any time.

    Args:
        config: Shape of the network.
        capacity: Tokens there is room for.

    Attributes:
        keys: Shape (layers, key_value_heads, head_dim, capacity).
        values: Shape (layers, key_value_heads, capacity, head_dim).
        length: Tokens held.
    """

    __slots__ = ("keys", "length", "values")

    def __init__(self, config: NetworkConfig, capacity: int) -> None:
        heads, dim = (config.layers, config.key_value_heads), config.head_dim
        self.keys: Float32 = np.empty((*heads, dim, capacity), np.float32)
        self.values: Float32 = np.empty((*heads, capacity, dim), np.float32)
        self.length = 0

    @property
    def capacity(self) -> int:
        """Tokens there is room for."""
        return int(self.keys.shape[3])

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.keys.nbytes + self.values.nbytes


class _Scratch(threading.local):
    """Memory for what a pass makes along the way, one set per thread, used again and again.

    Fresh megabytes for every product would cost page faults and push the weights out of the
    processor's cache.
    """

    def __init__(self) -> None:
        self._held: dict[str, Float32] = {}

    def take(self, name: str, *shape: int) -> Float32:
        """Return an array of undefined content; the next one of this name takes its place."""
        size = math.prod(shape)
        array = self._held.get(name)
        if array is None or array.size < size:
            array = self._held[name] = np.empty(size, np.float32)
        return array[:size].reshape(shape)


_ATTENDED = 1 << 18
"""Scores made at once: 1 MB, so that they stay in the processor's cache until they are mixed."""


class Network:
    """A decoder ready to run; holds no state of any sequence, so threads may share it.

    Args:
        config: Shape of the network.
        weights: Float32 tensors under the names of ``Qwen3ForCausalLM``.

    Raises:
        ModelError: A tensor is missing or has the wrong shape.
    """

    def __init__(self, config: NetworkConfig, weights: Mapping[str, Float32]) -> None:
        self.config = config
        reader = Parts(config, weights)
        self._row_epsilon = np.float32(config.epsilon * config.width)
        self._head_epsilon = np.float32(config.epsilon * config.head_dim)
        self._embedding = reader.embedding()
        self._final_gain = reader.gain("model.norm.weight", config.width)
        self._unembedding = reader.unembedding()
        self._layers = [reader.layer(index) for index in range(config.layers)]
        self._phases = rotary_phases(config)
        # Which positions of a block see each other: as factors, and as terms before a softmax.
        self._seen: Float32 = np.tri(BLOCK_TOKENS, dtype=np.float32)
        self._unseen: Float32 = np.where(self._seen, np.float32(0), np.float32(-np.inf))
        self._ones: Float32 = np.ones(config.positions, np.float32)
        self._scratch = _Scratch()

    def new_cache(self, capacity: int) -> KeyValues:
        """Return an empty sequence with room for ``capacity`` tokens."""
        return KeyValues(self.config, capacity)

    def logits(self, hidden: Float32) -> Float32:
        """Unnormalised log-probabilities (n, vocabulary) from hidden states (n, width)."""
        return self._product(hidden, self._unembedding)

    def run(self, cache: KeyValues, ids: Tokens, keep: int) -> Float32:
        """Append tokens to a sequence, all of one block or a few of two.

        Args:
            cache: The sequence so far; grows by ``ids``.
            ids: New tokens, shape (n,).
            keep: Number of last positions whose hidden states are wanted.

        Returns:
            Final hidden states of the kept positions, shape (keep, width).
        """
        phases = self._phases[cache.length : cache.length + len(ids)]
        rows = self._embedding[ids]
        last = self.config.layers - 1
        with np.errstate(over="ignore"):  # exp in SiLU reaches inf, whose inverse is the limit 0
            for index in range(self.config.layers):
                # Only the last block may drop positions: the ones above read all of them.
                rows = self._block(index, rows, cache, keep if index == last else len(ids), phases)
        cache.length += len(ids)
        normed = np.array(self._normalised(rows))
        normed *= self._final_gain
        return normed

    def _normalised(self, rows: Float32) -> Float32:
        """Rows (n, width) at unit length; valid until the next call."""
        return _normalise(rows, self._row_epsilon, self._scratch.take("normed", *rows.shape))

    def _product(self, rows: Float32, weight: Float32, name: str = "") -> Float32:
        """``rows @ weight``, in the scratch memory of that name if one is given."""
        count = len(rows)
        if count < _LEAST_ROWS:
            filled = self._scratch.take("filled", _LEAST_ROWS, rows.shape[1])
            filled[:count], filled[count:] = rows, 0
            rows = filled
        shape = (len(rows), weight.shape[1])
        out = self._scratch.take(name, *shape) if name else np.empty(shape, np.float32)
        return np.matmul(rows, weight, out=out)[:count]

    def _block(
        self,
        index: int,
        rows: Float32,
        cache: KeyValues,
        keep: int,
        phases: NDArray[np.complex64],
    ) -> Float32:
        """One decoder block over ``rows``, in place; returns the last ``keep`` rows."""
        layer, heads, count = self._layers[index], self.config.heads, len(rows)
        # 1. Norm, projections, rotary positions: all rows in one product.
        query_key, value = self._project(layer, rows, phases)
        if keep < count:
            rows = rows[count - keep :].copy()
        # 2. Attention over all keys and values so far.
        self._remember(index, cache, query_key[:, heads:], value)
        mixed = self._scratch.take("mixed", keep, heads * self.config.head_dim)
        stop = cache.length + count
        first = stop - keep
        # Block by block, so that few hidden positions are computed.
        while first < stop:
            end = min(stop, first - first % BLOCK_TOKENS + BLOCK_TOKENS)
            queries = query_key[first - cache.length : end - cache.length, :heads]
            done = keep - (stop - first)
            self._attend(index, cache, end, queries, mixed[done : done + end - first])
            first = end
        if not keep:
            return rows
        # 3. Output projection and residual, then the gated MLP and residual.
        rows += self._product(mixed, layer.output, "narrow")
        gate_up = self._product(self._normalised(rows), layer.gate_up, "wide")
        rows += self._product(self._gated(gate_up), layer.down, "narrow")
        return rows

    def _gated(self, gate_up: Float32) -> Float32:
        """``silu(gate) * up`` of negated (rows, 2 * mlp_width), gate first."""
        middle = gate_up.shape[1] // 2
        gated = self._scratch.take("gated", len(gate_up), middle)
        for tile in _tiles(len(gate_up)):
            gate, up, shrink = gate_up[tile, :middle], gate_up[tile, middle:], gated[tile]
            np.exp(gate, out=shrink)
            shrink += np.float32(1)
            np.divide(gate, shrink, out=shrink)
            shrink *= up
        return gated

    def _project(
        self, layer: Layer, rows: Float32, phases: NDArray[np.complex64]
    ) -> tuple[Float32, Float32]:
        """Rotated queries and keys (n, heads + kv, dim) and values (n, kv, dim)."""
        shape = self.config
        turned = shape.heads + shape.key_value_heads
        projected = self._product(self._normalised(rows), layer.query_key_value, "wide")
        heads = projected.reshape(len(rows), -1, shape.head_dim)
        room = self._scratch.take("turned", len(rows), turned, shape.head_dim)
        for tile in _tiles(len(rows)):
            normed = _normalise(heads[tile, :turned], self._head_epsilon, room[tile])
            normed *= layer.head_gain
            # A rotation of an adjacent pair is one complex product.
            pairs = normed.view(np.complex64)
            pairs *= phases[tile]
        return room, heads[:, turned:]

    @staticmethod
    def _remember(index: int, cache: KeyValues, key: Float32, value: Float32) -> None:
        """Write keys and values (n, kv, dim) behind those the sequence has."""
        start, stop = cache.length, cache.length + len(key)
        cache.keys[index, :, :, start:stop] = key.transpose(1, 2, 0)
        cache.values[index, :, start:stop] = value.transpose(1, 0, 2)

    def _attend(
        self, index: int, cache: KeyValues, stop: int, queries: Float32, mixed: Float32
    ) -> None:
        """Causal attention of those before ``stop``, (n, heads, dim), into (n, heads * dim)."""
        count, shared = len(queries), self.config.key_value_heads
        keys, values = cache.keys[index, ..., :stop], cache.values[index, :, :stop]
        # Query heads that share a key head become further rows of one product.
        grouped = queries.transpose(1, 0, 2).reshape(shared, -1, self.config.head_dim)
        rows = grouped.shape[1]
        out = self._scratch.take("heads", shared, rows, self.config.head_dim)
        # As many heads at once as the processor's cache has room for the scores of.
        step = max(1, _ATTENDED // (rows * stop))
        for first in range(0, shared, step):
            group = slice(first, min(first + step, shared))
            scores = self._scratch.take("scores", group.stop - first, rows, stop)
            np.matmul(grouped[group], keys[group], out=scores)
            self._weigh(scores.reshape(-1, count, stop), self._layers[index].bounded)
            np.matmul(scores, values[group], out=out[group])
            out[group] /= (scores @ self._ones[:stop])[..., None]
        heads = out.reshape(self.config.heads, count, -1).transpose(1, 0, 2)
        mixed.reshape(heads.shape)[...] = heads

    def _weigh(self, scores: Float32, bounded: bool) -> None:
        """Turn scores (heads, queries, keys) into weights yet to be divided by their sum."""
        count = scores.shape[1]
        recent = scores[..., -count:]
        # The last positions must not see each other's future.
        if not bounded:
            recent += self._unseen[:count, :count]
            scores -= scores.max(-1, keepdims=True)
            np.maximum(scores, _FAINTEST, out=scores)
        np.exp(scores, out=scores)
        if count > 1:
            recent *= self._seen[:count, :count]


_TILE = 64
"""Rows worked on at once between two products, so that they stay in the processor's cache."""


def _tiles(count: int) -> Iterator[slice]:
    return (slice(start, start + _TILE) for start in range(0, count, _TILE))


def _normalise(rows: Float32, epsilon: np.float32, out: Float32) -> Float32:
    """Bring the last axis to unit length; RMS norm up to a factor that is in the weights.

    ``x / sqrt(mean(x^2) + e) = sqrt(d) * x / sqrt(sum(x^2) + d * e)``: the ``sqrt(d)`` is
    multiplied into the gains, and ``epsilon`` here is ``d * e``.
    """
    length = np.vecdot(rows, rows)
    length += epsilon
    np.sqrt(length, out=length)
    np.divide(rows, length[..., None], out=out)
    return out
