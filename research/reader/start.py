"""The constructed start: copying circuits written into the first three layers, then trained on.

At this budget plain training does not find copying. The circuits below do it from step 0:

* layer 0 looks 1 to 6 tokens back: the last three go to subspaces ``back[0..2]``, the third to the
  sixth together to ``far``, each turned once more per token of distance;
* layer 1 copies what followed the last 1, 2 or up to 6 tokens elsewhere; two pointers, active after
  ``[Mask_i]:``, fetches the tokens left and the one right of that mask in the user's text, and a
  third pointer fetches the left ones again after the answer's first token;
* layer 2 copies what stands after the fetched left tokens (the same heads continue the user's last
  words at ``<|assistant|>``), finds the place whose right neighbour fits, and copies once more.

``far`` decides where the last three tokens occur twice: on real text (not the text reported on) a
reader that matched three tokens was right 98% of the time where three sufficed and 45% elsewhere.

Scales are set from activations measured on one example row; the parts come first in this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from research.reader.corpus import Vocabulary
from research.reader.network import Block, Reader

# Parts of the constructed start: orthogonal subspaces, matching heads, copying heads.
#
# A matching head compares sums of rotated subspaces in the slowly rotating dimensions, so position
# hardly matters; a gated head rests on the opening token until its flag is on.

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


_REACH = 6  # tokens back that are noted
_FAST_PAIRS = 6  # quickly rotating dimensions: they tell neighbours apart


def _embeddings(circuits: Circuits) -> None:
    """Equal-length content, no bookkeeping, a constant, and flags for the special tokens."""
    weight, scale = circuits.reader.embedding.weight, circuits.scale
    weight -= (weight @ circuits.reserved) @ circuits.reserved.T
    weight[:, 0] = 0
    weight *= scale / weight.norm(dim=1, keepdim=True)
    # Resting heads look at <|system|>: what they copy from there must be nothing.
    weight[circuits.vocabulary.system] = 0
    weight[:, 0] = circuits.scales.constant * scale
    flag = circuits.scales.flag * scale
    gap = circuits.vocabulary.gap
    for token in (*circuits.vocabulary.masks, *(() if gap is None else (gap,))):
        weight[token] += flag * circuits.is_mask
    weight[circuits.vocabulary.assistant] += flag * circuits.is_assistant
    weight[circuits.vocabulary.colon] += flag * circuits.is_colon
    weight[circuits.vocabulary.system] += flag * circuits.is_sink
    weight[circuits.vocabulary.end] += flag * circuits.is_sink


def _look_back(circuits: Circuits, block: Block, state: Tensor) -> None:
    """Layer 0: heads 0-2 attend exactly 1, 2, 3 tokens back and write what they saw."""
    frequency = circuits.reader.config.rope_theta ** (
        -torch.arange(0, circuits.head_dim, 2).float() / circuits.head_dim
    )
    for gain in (block.query_norm.weight, block.key_norm.weight):
        gain.fill_(1.0)
        for pair in range(_FAST_PAIRS):
            gain[pair] = gain[circuits.half + pair] = circuits.scales.previous_sharpness
    normed = block.attention_norm(state)[0]
    amplitude = (normed @ circuits.token).norm(dim=1).mean().item()
    own = circuits.scale * math.sqrt(RANK / len(circuits.content))
    gain_out = circuits.scales.back * own / amplitude * 2
    flag_out = (
        circuits.scales.flag * circuits.scale / max((normed @ circuits.is_mask).max().item(), 1e-6)
    )
    for head in range(_REACH):
        rows = circuits.heads(head)
        query, key = (
            torch.zeros(circuits.head_dim, circuits.width),
            torch.zeros(circuits.head_dim, circuits.width),
        )
        for pair in range(_FAST_PAIRS):
            angle = (head + 1) * frequency[pair]
            key[pair, 0] = 1.0
            query[pair, 0], query[circuits.half + pair, 0] = angle.cos(), -angle.sin()
        block.query.weight[rows] = 2 * query + circuits.noise(0.02)
        block.key.weight[rows] = 2 * key + circuits.noise(0.02)
        block.value.weight[rows] = 0
        block.output.weight[:, rows] = 0
        block.value.weight[rows][:RANK] = circuits.token.T
        written = gain_out * circuits.back[head] if head < 3 else 0
        if head >= 2:
            written = written + gain_out / 2 * circuits.far @ circuits.turn(head + 1)
        block.output.weight[:, rows][:, :RANK] = written
        if head < 2:
            flag = (circuits.after_mask, circuits.in_answer)[head]
            block.value.weight[rows][RANK] = circuits.is_mask
            block.output.weight[:, rows][:, RANK] = flag_out * flag


def _layer_one(circuits: Circuits, block: Block, state: Tensor, tokens: Tensor) -> None:
    normed = block.attention_norm(state)[0]
    colon, opened, _, ordinary = circuits.positions(tokens)
    scales, unit = circuits.scales, size_of(state[0]) / circuits.root
    for head, length in ((0, 1), (1, 2), (2, 3)):
        pairs = circuits.history(length, far=length == 3)
        circuits.match(block, head, normed, pairs, ordinary, None, None)
        gain = scales.early_copy * (0.3 if length == 1 else 1.0)
        circuits.copy(block, head, head % 2, gain * unit)
    veto = circuits.is_colon / (normed @ circuits.is_colon).max()
    back = circuits.back
    for head, asked, where, gate in (
        (3, back[0], colon, circuits.after_mask),
        (4, back[0], colon, circuits.after_mask),
        (5, back[1], opened, circuits.in_answer),
    ):
        circuits.match(block, head, normed, [(asked, back[0])], where, gate, veto)
    move = scales.override * unit
    circuits.carry(
        block,
        3,
        [
            # At the mask's right neighbour: one step nearer than there.
            (back[1], back[0], move),
            (circuits.far, circuits.far @ circuits.turn(-1), move),
        ],
    )
    circuits.carry(block, 4, [(circuits.token, circuits.right, move), (back[2], back[1], move)])
    circuits.carry(block, 5, [(back[1], back[0], move), (back[2], back[1], move)])


def _layer_two(circuits: Circuits, block: Block, state: Tensor, tokens: Tensor) -> None:
    normed = block.attention_norm(state)[0]
    colon, _, assistant, ordinary = circuits.positions(tokens)
    scales, unit = circuits.scales, size_of(state[0]) / circuits.root
    back, token = circuits.back, circuits.token
    flags = (circuits.is_mask, circuits.is_assistant, circuits.after_mask)
    nothing = torch.zeros(circuits.width)
    veto = sum((flag / (normed @ flag).max() for flag in flags), start=nothing)
    # One gate for both uses: the flags are scaled to open it equally at both kinds of place.
    gate = sum(
        (
            flag / (normed[where] @ flag).mean() * normed[where, 0].mean()
            for flag, where in ((circuits.after_mask, colon), (circuits.is_assistant, assistant))
        ),
        start=nothing,
    )
    same = [(back[0], back[0]), (back[1], back[1]), (circuits.far, circuits.far)]
    for head in (0, 1):
        circuits.match(block, head, normed, same, assistant, gate, veto)
        circuits.copy(block, head, head, scales.copy * unit)
    for head, distance in ((2, 1), (3, 2)):
        pairs = [(back[0], back[distance]), (circuits.right, token)]
        circuits.match(block, head, normed, pairs, colon, circuits.after_mask, veto)
        circuits.carry(block, head, [(back[distance - 1], token, scales.right * unit)])
    for head, part in ((4, 1), (5, 0)):
        circuits.match(block, head, normed, circuits.history(3, far=True), ordinary, None, None)
        circuits.copy(block, head, part, scales.early_copy * unit)


def _alike(block: Block, generator: torch.Generator) -> None:
    """Free heads start by attending to like content: query and key maps share a random part."""
    shape = block.key.weight.shape
    shared = torch.randn(shape, generator=generator) / math.sqrt(shape[1])
    block.key.weight.copy_(0.5 * shared + 0.3 * block.key.weight)
    block.query.weight.copy_(0.5 * shared + 0.3 * block.query.weight)


@torch.no_grad()  # type: ignore[untyped-decorator]
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
    circuits = Circuits(reader, vocabulary, scales or CircuitScales(), seed)
    for block in reader.blocks[1:]:
        _alike(block, circuits.generator)
    for block in reader.blocks:
        block.down.weight.mul_(0.15)
        block.output.weight.mul_(0.3)
    _embeddings(circuits)
    tokens = torch.tensor([example])
    cosine, sine = reader.cosine[: len(example)], reader.sine[: len(example)]
    state = reader.embedding(tokens)
    writers = (None, _layer_one, _layer_two)
    for block, writer in zip(reader.blocks, writers, strict=False):
        if writer is None:
            _look_back(circuits, block, state)
        else:
            for norm in (block.query_norm, block.key_norm):
                norm.weight.fill_(circuits.scales.sharpness)
            writer(circuits, block, state, tokens[0])
        state = block(state, cosine, sine)
    reader.norm.weight.fill_(circuits.scales.final_gain)
