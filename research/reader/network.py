"""The reader's network: a small decoder in the layout of ``Qwen3ForCausalLM``.

Rotary positions, normalised queries and keys, gated MLP, RMS norms, tied embeddings. Parameter
names follow this file; ``export.py`` maps them to the Hugging Face names. Written out in plain
torch because the constructed initialisation and the per-layer learning rates need the parts by
name, and because a compiled forward pass of 150 lines is easier to trust than a patched library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from research.reader.config import ModelConfig


class RMSNorm(nn.Module):  # type: ignore[misc]
    """Root-mean-square normalisation with a learned gain."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise the last axis of ``hidden`` (any shape)."""
        gain = self.weight.to(hidden.dtype)
        return functional.rms_norm(hidden, (hidden.shape[-1],), gain, self.epsilon)


def apply_rotary(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate ``heads`` (batch, heads, time, head_dim) by position; half-split pairs as in Qwen3."""
    half = heads.shape[-1] // 2
    first, second = heads[..., :half], heads[..., half:]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


class Block(nn.Module):  # type: ignore[misc]
    """One decoder layer: attention then gated MLP, both pre-norm and residual."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, inner = config.width, config.heads * config.head_dim
        self.heads, self.head_dim = config.heads, config.head_dim
        self.query = nn.Linear(width, inner, bias=False)
        self.key = nn.Linear(width, inner, bias=False)
        self.value = nn.Linear(width, inner, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        self.gate = nn.Linear(width, config.mlp_width, bias=False)
        self.up = nn.Linear(width, config.mlp_width, bias=False)
        self.down = nn.Linear(config.mlp_width, width, bias=False)
        self.attention_norm = RMSNorm(width, config.norm_epsilon)
        self.mlp_norm = RMSNorm(width, config.norm_epsilon)
        self.query_norm = RMSNorm(config.head_dim, config.norm_epsilon)
        self.key_norm = RMSNorm(config.head_dim, config.norm_epsilon)

    def project(
        self, hidden: Tensor, cosine: Tensor, sine: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys (normalised, rotated), values: (batch, heads, time, head_dim) each."""
        batch, time, _ = hidden.shape
        shape = (batch, time, self.heads, self.head_dim)
        normed = self.attention_norm(hidden)
        query = self.query_norm(self.query(normed).view(shape)).transpose(1, 2)
        key = self.key_norm(self.key(normed).view(shape)).transpose(1, 2)
        value = self.value(normed).view(shape).transpose(1, 2)
        return apply_rotary(query, cosine, sine), apply_rotary(key, cosine, sine), value

    def forward(self, hidden: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Map ``hidden`` (batch, time, width) to the next layer's input, causally."""
        batch, time, _ = hidden.shape
        query, key, value = self.project(hidden, cosine, sine)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.output(mixed.transpose(1, 2).reshape(batch, time, -1))
        normed = self.mlp_norm(hidden)
        return hidden + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Reader(nn.Module):  # type: ignore[misc]
    """The whole decoder; ``hidden`` and ``logits`` are apart: logits only where needed."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = RMSNorm(config.width, config.norm_epsilon)
        exponent = torch.arange(0, config.head_dim, 2).float() / config.head_dim
        angles = torch.outer(torch.arange(config.positions).float(), config.rope_theta**-exponent)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.embedding.weight, std=0.02)
        for name, parameter in self.named_parameters():
            if parameter.dim() != 2 or name.startswith("embedding"):
                continue
            residual = name.endswith(("output.weight", "down.weight"))
            # Residual writers start smaller so that depth does not inflate the stream.
            fan_in = parameter.shape[1] * (2 * self.config.layers if residual else 1)
            nn.init.normal_(parameter, std=0.5 / math.sqrt(fan_in))

    def hidden(self, tokens: Tensor, blocks: Iterable[nn.Module] | None = None) -> Tensor:
        """Final hidden states (batch, time, width) of ``tokens`` (batch, time).

        ``blocks`` stand in for the layers, compiled ones for example.
        """
        time = tokens.shape[1]
        state = self.embedding(tokens)
        cosine, sine = self.cosine[:time], self.sine[:time]
        for block in self.blocks if blocks is None else blocks:
            state = block(state, cosine, sine)
        normed: Tensor = self.norm(state)
        return normed

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary (..., vocabulary) from hidden states (..., width)."""
        return functional.linear(hidden, self.embedding.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores (batch, time, vocabulary) of the token after each position."""
        return self.logits(self.hidden(tokens))
