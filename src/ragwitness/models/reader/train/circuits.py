"""Parts of the constructed start: orthogonal subspaces, matching heads, copying heads.

A matching head compares sums of rotated subspaces in the slowly rotating dimensions, so position
hardly matters; a gated head rests on the opening token until its flag is on. ``init.py`` wires the
parts together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .network import Block, Reader
from .tokenizer import Vocabulary

__all__ = ["RANK", "CircuitScales", "Circuits", "size_of"]

RANK = 28  # dimensions of one matching subspace: what the slow rotary dimensions can hold
_FIRST_SLOW_PAIR = 17  # angle per token below 6.5e-4: under one radian at 1,500 tokens


@dataclass(frozen=True)
class CircuitScales:
    """Free constants of the construction, chosen by the loss of unseen rows at step 0."""

    constant: float = 0.3
    flag: float = 1.0
    back: float = 0.7
    copy: float = 2.5
    early_copy: float = 1.4
    override: float = 1.6
    sharpness: float = 2.2
    rest: float = 0.4
    gate: float = 3.0
    veto: float = 0.5
    previous_sharpness: float = 3.0
    right: float = 2.0
    final_gain: float = 4.0


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    square = torch.randn(max(rows, columns), min(rows, columns), generator=generator)
    basis, _ = torch.linalg.qr(square)
    return basis if basis.shape == (rows, columns) else basis.T.contiguous()


class Circuits:
    """Holds the bases while the circuits are written; ``init.py`` does the writing."""

    def __init__(
        self, reader: Reader, vocabulary: Vocabulary, scales: CircuitScales, seed: int
    ) -> None:
        self.reader, self.vocabulary, self.scales = reader, vocabulary, scales
        self.generator = torch.Generator().manual_seed(seed)
        config = reader.config
        self.width, self.head_dim = config.width, config.head_dim
        self.half = config.head_dim // 2
        self.root = math.sqrt(config.width)
        self.scale = reader.embedding.weight.std().item() * self.root
        basis = torch.zeros(config.width, config.width - 1)
        basis[1:] = _orthonormal(config.width - 1, config.width - 1, self.generator)
        spaces = [basis[:, index * RANK : (index + 1) * RANK] for index in range(6)]
        self.token, self.back, self.right, self.far = spaces[0], spaces[1:4], spaces[4], spaces[5]
        flags = basis[:, 6 * RANK : 6 * RANK + 6].T
        self.is_mask, self.is_assistant, self.is_colon, self.is_sink, *after = flags
        self.after_mask, self.in_answer = after
        self.reserved = torch.cat([*self.back, self.right, self.far, flags.T], 1)
        content = torch.cat([self.token, basis[:, 6 * RANK + 6 :]], 1).T
        # Copies carry content only: the bookkeeping of one position must not leak into another.
        self.content = _orthonormal(len(content), len(content), self.generator) @ content
        self.rotations = [_orthonormal(RANK, RANK, self.generator) for _ in range(4)]
        self.step = _orthonormal(RANK, RANK, self.generator)
        slow = list(range(_FIRST_SLOW_PAIR, self.half - 1))
        self.match_dims = slow + [self.half + index for index in slow]
        self.gate_dim, self.veto_dim = self.half - 1, 2 * self.half - 1
        self.one = torch.zeros(config.width)
        self.one[0] = 1.0

    def turn(self, steps: int) -> Tensor:
        """The rotation of ``far`` that stands for ``steps`` tokens of distance (rank, rank)."""
        base = self.step if steps >= 0 else self.step.T
        return torch.linalg.matrix_power(base, abs(steps))

    def history(self, length: int, far: bool) -> list[tuple[Tensor, Tensor]]:
        """Pairs that liken the last ``length`` tokens, and ``far`` ones, to what precedes a key."""
        seen = [self.token, *self.back]
        pairs = [(seen[index], seen[index + 1]) for index in range(length)]
        # What is d back for the query stands d + 1 before the key: one turn more.
        return [*pairs, (self.far @ self.turn(1).T, self.far)] if far else pairs

    def heads(self, head: int) -> slice:
        """Rows of the query, key and value maps that belong to ``head``."""
        return slice(head * self.head_dim, (head + 1) * self.head_dim)

    def noise(self, size: float) -> Tensor:
        """Small random rows for one head, so that no weight starts at exactly zero."""
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
            query[self.match_dims] += share / size_of(normed[where] @ asked) * rotation @ asked.T
            key[self.match_dims] += share / size_of(normed[8:] @ held) * rotation @ held.T
        constant = normed[8:, 0].mean().item()
        sink = (normed[0] @ self.is_sink).item()
        rest = self.scales.rest if gate is None else self.scales.gate
        query[self.gate_dim] = rest / constant * self.one
        key[self.gate_dim] = 2 / sink * self.is_sink
        if gate is None:
            # Where an answer opens, the last tokens are bookkeeping: nothing to continue from.
            for flag in (self.is_assistant, self.after_mask):
                query[self.gate_dim] += 5 / (normed @ flag).max() * flag
        else:
            there = normed[where]
            open_at = rest * there[:, 0].mean() / constant / (there @ gate).mean()
            query[self.gate_dim] -= open_at * gate
        if veto is not None:
            query[self.veto_dim] = self.scales.veto / constant * self.one
            key[self.veto_dim] = -2 * veto
        rows = self.heads(head)
        block.query.weight[rows] = query + self.noise(0.002)
        block.key.weight[rows] = key + self.noise(0.002)

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

    def positions(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Example positions: ``[Mask_i]:`` colons and what follows, ``<|assistant|>``, the rest."""
        mask = torch.isin(tokens, torch.tensor(self.vocabulary.masks))
        colon = torch.zeros_like(mask)
        colon[1:] = mask[:-1] & (tokens[1:] == self.vocabulary.colon)
        assistant = tokens == self.vocabulary.assistant
        opened = torch.zeros_like(mask)
        opened[1:] = colon[:-1]
        ordinary = ~mask & ~colon & ~assistant
        ordinary[:8] = False
        return colon, opened, assistant, ordinary


def size_of(rows: Tensor) -> float:
    """Mean length of ``rows`` (..., width)."""
    return float(rows.norm(dim=-1).mean())
