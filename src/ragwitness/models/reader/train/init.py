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

Scales are set from activations measured on one example row; ``circuits.py`` has the parts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .circuits import RANK, Circuits, CircuitScales, size_of
from .network import Block, Reader
from .tokenizer import Vocabulary

__all__ = ["construct"]

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
    for token in circuits.vocabulary.masks:
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
