"""The constructed start: copying circuits written into the first three layers, then trained on.

At this budget plain training does not find copying. The circuits below do it from step 0:

* layer 0 looks 1, 2 and 3 tokens back and notes what it saw in subspaces ``back[0..2]``;
* layer 1 copies what followed the last 1, 2 or 3 tokens elsewhere; a pointer pair, active after
  ``[Mask_i]:``, fetches the two tokens left and the one right of that mask in the user's text;
* layer 2 copies what stands after the fetched left tokens (the same heads continue the user's last
  words at ``<|assistant|>``), finds the place whose right neighbour fits, and copies once more.

A matching head compares sums of rotated subspaces in the slowly rotating dimensions, so position
hardly matters; a gated head rests on the opening token until its flag is on. Scales are set from
activations measured on one example row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .network import Block, Reader
from .tokenizer import Vocabulary

__all__ = ["CircuitScales", "construct"]

_RANK = 28  # dimensions of one matching subspace: what the slow rotary dimensions can hold
_FIRST_SLOW_PAIR = 17  # angle per token below 6.5e-4: under one radian at 1,500 tokens
_FAST_PAIRS = 6


@dataclass(frozen=True)
class CircuitScales:
    """Free constants of the construction, chosen by the loss of unseen rows at step 0."""

    constant: float = 0.3
    flag: float = 1.0
    back: float = 0.7
    copy: float = 3.0
    early_copy: float = 2.0
    override: float = 1.6
    sharpness: float = 2.2
    rest: float = 0.6
    gate: float = 3.0
    veto: float = 0.5
    previous_sharpness: float = 3.0
    right: float = 2.0
    final_gain: float = 4.0


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    square = torch.randn(max(rows, columns), min(rows, columns), generator=generator)
    basis, _ = torch.linalg.qr(square)
    return basis if basis.shape == (rows, columns) else basis.T.contiguous()


class _Circuits:
    """Holds the bases while the circuits are written; use ``construct``."""

    def __init__(
        self, reader: Reader, vocabulary: Vocabulary, scales: CircuitScales, seed: int
    ) -> None:
        self.reader, self.vocabulary, self.scales = reader, vocabulary, scales
        self.generator = torch.Generator().manual_seed(seed)
        config = reader.config
        self.width, self.head_dim = config.width, config.head_dim
        self.half = config.head_dim // 2
        self.root = math.sqrt(config.width)
        basis = torch.zeros(config.width, config.width - 1)
        basis[1:] = _orthonormal(config.width - 1, config.width - 1, self.generator)
        spaces = [basis[:, index * _RANK : (index + 1) * _RANK] for index in range(5)]
        self.token, self.back, self.right = spaces[0], spaces[1:4], spaces[4]
        flags = basis[:, 5 * _RANK : 5 * _RANK + 5].T
        self.is_mask, self.is_assistant, self.is_colon, self.is_sink, self.after_mask = flags
        self.reserved = torch.cat([*self.back, self.right, flags.T], 1)
        content = torch.cat([self.token, basis[:, 5 * _RANK + 5 :]], 1).T
        # Copies carry content only: the bookkeeping of one position must not leak into another.
        self.content = _orthonormal(len(content), len(content), self.generator) @ content
        self.rotations = [_orthonormal(_RANK, _RANK, self.generator) for _ in range(4)]
        slow = list(range(_FIRST_SLOW_PAIR, self.half - 1))
        self.match_dims = slow + [self.half + index for index in slow]
        self.gate_dim, self.veto_dim = self.half - 1, 2 * self.half - 1
        self.one = torch.zeros(config.width)
        self.one[0] = 1.0

    def heads(self, head: int) -> slice:
        """Rows of the query, key and value maps that belong to ``head``."""
        return slice(head * self.head_dim, (head + 1) * self.head_dim)

    def embeddings(self) -> None:
        """Equal-length content, no bookkeeping, a constant, and flags for the special tokens."""
        weight = self.reader.embedding.weight
        scale = weight.std().item() * self.root
        weight -= (weight @ self.reserved) @ self.reserved.T
        weight[:, 0] = 0
        weight *= scale / weight.norm(dim=1, keepdim=True)
        # Resting heads look at <|system|>: what they copy from there must be nothing.
        weight[self.vocabulary.system] = 0
        weight[:, 0] = self.scales.constant * scale
        flag = self.scales.flag * scale
        for token in self.vocabulary.masks:
            weight[token] += flag * self.is_mask
        weight[self.vocabulary.assistant] += flag * self.is_assistant
        weight[self.vocabulary.colon] += flag * self.is_colon
        weight[self.vocabulary.system] += flag * self.is_sink
        weight[self.vocabulary.end] += flag * self.is_sink
        self.scale = scale

    def look_back(self, block: Block, state: Tensor) -> None:
        """Layer 0: heads 0-2 attend exactly 1, 2, 3 tokens back and write what they saw."""
        frequency = self.reader.config.rope_theta ** (
            -torch.arange(0, self.head_dim, 2).float() / self.head_dim
        )
        for gain in (block.query_norm.weight, block.key_norm.weight):
            gain.fill_(1.0)
            for pair in range(_FAST_PAIRS):
                gain[pair] = gain[self.half + pair] = self.scales.previous_sharpness
        normed = block.attention_norm(state)[0]
        amplitude = (normed @ self.token).norm(dim=1).mean().item()
        own = self.scale * math.sqrt(_RANK / len(self.content))
        gain_out = self.scales.back * own / amplitude * 2
        flag_out = self.scales.flag * self.scale / max((normed @ self.is_mask).max().item(), 1e-6)
        for head in range(3):
            rows = self.heads(head)
            query, key = (
                torch.zeros(self.head_dim, self.width),
                torch.zeros(self.head_dim, self.width),
            )
            for pair in range(_FAST_PAIRS):
                angle = (head + 1) * frequency[pair]
                key[pair, 0] = 1.0
                query[pair, 0], query[self.half + pair, 0] = angle.cos(), -angle.sin()
            block.query.weight[rows] = 2 * query + self._noise(0.02)
            block.key.weight[rows] = 2 * key + self._noise(0.02)
            block.value.weight[rows] = 0
            block.output.weight[:, rows] = 0
            block.value.weight[rows][:_RANK] = self.token.T
            block.output.weight[:, rows][:, :_RANK] = gain_out * self.back[head]
            if head == 0:
                block.value.weight[rows][_RANK] = self.is_mask
                block.output.weight[:, rows][:, _RANK] = flag_out * self.after_mask

    def _noise(self, size: float) -> Tensor:
        return size * torch.randn(self.head_dim, self.width, generator=self.generator)

    def match(self, block: Block, head: int, normed: Tensor, pairs: Sequence[tuple[Tensor, Tensor]],
              where: Tensor, gate: Tensor | None, veto: Tensor | None) -> None:  # fmt: skip
        """A head whose score is the likeness of query subspaces to key subspaces.

        Args:
            block: the layer written to.
            head: which of its heads.
            normed: normalised example activations (time, width) entering this layer.
            pairs: (query subspace, key subspace), each (width, rank); their likenesses add up.
            where: example positions at which the head should be active.
            gate: direction that switches the head on; without it the head is always on and rests
                on the opening token only when nothing matches.
            veto: direction whose keys are never looked at.
        """
        query, key = torch.zeros(self.head_dim, self.width), torch.zeros(self.head_dim, self.width)
        share = 1 / math.sqrt(len(pairs))
        for rotation, (asked, held) in zip(self.rotations, pairs, strict=False):
            query[self.match_dims] += share / _size(normed[where] @ asked) * rotation @ asked.T
            key[self.match_dims] += share / _size(normed[8:] @ held) * rotation @ held.T
        constant = normed[8:, 0].mean().item()
        sink = (normed[0] @ self.is_sink).item()
        rest = self.scales.rest if gate is None else self.scales.gate
        query[self.gate_dim] = rest / constant * self.one
        key[self.gate_dim] = 2 / sink * self.is_sink
        if gate is None:
            # Where an answer opens, the last tokens are bookkeeping: nothing to continue from.
            for flag in (self.is_assistant, self.after_mask):
                query[self.gate_dim] += 3 / (normed @ flag).max() * flag
        else:
            there = normed[where]
            open_at = rest * there[:, 0].mean() / constant / (there @ gate).mean()
            query[self.gate_dim] -= open_at * gate
        if veto is not None:
            query[self.veto_dim] = self.scales.veto / constant * self.one
            key[self.veto_dim] = -2 * veto
        rows = self.heads(head)
        block.query.weight[rows] = query + self._noise(0.002)
        block.key.weight[rows] = key + self._noise(0.002)

    def carry(self, block: Block, head: int, moves: Sequence[tuple[Tensor, Tensor, float]]) -> None:
        """What a head moves: (read subspace, written subspace, gain) packed into one value head."""
        rows = self.heads(head)
        block.value.weight[rows] = 0
        block.output.weight[:, rows] = 0
        at = 0
        for read, written, gain in moves:
            rank = read.shape[1]
            block.value.weight[rows][at : at + rank] = read.T
            block.output.weight[:, rows][:, at : at + rank] = gain * written
            at += rank

    def copy(self, block: Block, head: int, part: int, gain: float) -> None:
        """Copy 64 of the content directions (``part`` 0 or 1), so two heads copy nearly all."""
        rows = self.content[part * self.head_dim : (part + 1) * self.head_dim]
        self.carry(block, head, [(rows.T, rows.T, gain)])

    def positions(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Example positions: ``[Mask_i]:`` colons, ``<|assistant|>``, and ordinary ones."""
        mask = torch.isin(tokens, torch.tensor(self.vocabulary.masks))
        colon = torch.zeros_like(mask)
        colon[1:] = mask[:-1] & (tokens[1:] == self.vocabulary.colon)
        assistant = tokens == self.vocabulary.assistant
        ordinary = ~mask & ~colon & ~assistant
        ordinary[:8] = False
        return colon, assistant, ordinary

    def layer_one(self, block: Block, state: Tensor, tokens: Tensor) -> None:
        normed = block.attention_norm(state)[0]
        colon, _, ordinary = self.positions(tokens)
        scales, unit = self.scales, _size(state[0]) / self.root
        seen = [self.token, *self.back]
        for head, length in ((0, 1), (1, 2), (2, 3)):
            pairs = [(seen[index], seen[index + 1]) for index in range(length)]
            self.match(block, head, normed, pairs, ordinary, None, None)
            gain = scales.early_copy * (0.3 if length == 1 else 1.0)
            self.copy(block, head, head % 2, gain * unit)
        veto = self.is_colon / (normed @ self.is_colon).max()
        for head in (3, 4):
            self.match(
                block, head, normed, [(self.back[0], self.back[0])], colon, self.after_mask, veto
            )
        move = scales.override * unit
        self.carry(
            block, 3, [(self.back[1], self.back[0], move), (self.back[2], self.back[1], move)]
        )
        self.carry(block, 4, [(self.token, self.right, move)])

    def layer_two(self, block: Block, state: Tensor, tokens: Tensor) -> None:
        normed = block.attention_norm(state)[0]
        colon, assistant, ordinary = self.positions(tokens)
        scales, unit = self.scales, _size(state[0]) / self.root
        back, token = self.back, self.token
        veto = sum(
            (
                flag / (normed @ flag).max()
                for flag in (self.is_mask, self.is_assistant, self.after_mask)
            ),
            start=torch.zeros(self.width),
        )
        # One gate for both uses: the flags are scaled to open it equally at both kinds of place.
        gate = self.after_mask / (normed[colon] @ self.after_mask).mean() * normed[colon, 0].mean()
        gate = (
            gate
            + self.is_assistant
            / (normed[assistant] @ self.is_assistant).mean()
            * normed[assistant, 0].mean()
        )
        for head in (0, 1):
            self.match(
                block, head, normed, [(back[0], back[0]), (back[1], back[1])], assistant, gate, veto
            )
            self.copy(block, head, head, scales.copy * unit)
        for head, distance in ((2, 1), (3, 2)):
            pairs = [(back[0], back[distance]), (self.right, token)]
            self.match(block, head, normed, pairs, colon, self.after_mask, veto)
            self.carry(block, head, [(back[distance - 1], token, scales.right * unit)])
        pairs = [(token, back[0]), (back[0], back[1]), (back[1], back[2])]
        self.match(block, 4, normed, pairs, ordinary, None, None)
        self.copy(block, 4, 1, scales.early_copy * unit)


def _size(rows: Tensor) -> float:
    return rows.norm(dim=-1).mean().item()


def _alike(block: Block, generator: torch.Generator) -> None:
    """Free heads start by attending to like content: query and key maps share a random part."""
    shape = block.key.weight.shape
    shared = torch.randn(shape, generator=generator) / math.sqrt(shape[1])
    block.key.weight.copy_(0.5 * shared + 0.3 * block.key.weight)
    block.query.weight.copy_(0.5 * shared + 0.3 * block.query.weight)


@torch.no_grad()
def construct(
    reader: Reader,
    vocabulary: Vocabulary,
    example: list[int],
    scales: CircuitScales | None = None,
    seed: int = 0,
) -> None:
    """Write the circuits into ``reader`` in place.

    Args:
        reader: changed in place.
        vocabulary: names the special tokens.
        example: token ids of a row that opens with ``<|system|>`` and holds a cloze answer.
        scales: constants of the construction.
        seed: of the random bases.
    """
    circuits = _Circuits(reader, vocabulary, scales or CircuitScales(), seed)
    for block in reader.blocks[1:]:
        _alike(block, circuits.generator)
    for block in reader.blocks:
        block.down.weight.mul_(0.15)
        block.output.weight.mul_(0.3)
    circuits.embeddings()
    tokens = torch.tensor([example])
    cosine, sine = reader.cosine[: len(example)], reader.sine[: len(example)]
    state = reader.embedding(tokens)
    writers = (None, circuits.layer_one, circuits.layer_two)
    for block, writer in zip(reader.blocks, writers, strict=False):
        if writer is None:
            circuits.look_back(block, state)
        else:
            for norm in (block.query_norm, block.key_norm):
                norm.weight.fill_(circuits.scales.sharpness)
            writer(block, state, tokens[0])
        state = block(state, cosine, sine)
    reader.norm.weight.fill_(circuits.scales.final_gain)
