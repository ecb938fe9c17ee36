"""The constructed start: copying circuits written into the first three layers, then trained on.

At this budget plain training does not find copying. The circuits below do it from step 0:

* layer 0 looks 1, 2 and 3 tokens back and notes what it saw in subspaces ``back[0..2]``;
* layer 1 copies what followed the last 1, 2 or 3 tokens elsewhere; a pointer pair, active after
  ``[Mask_i]:``, fetches the two tokens left and the one right of that mask in the user's text;
* layer 2 copies what stands after the fetched left tokens (the same heads continue the user's last
  words at ``<|assistant|>``), finds the place whose right neighbour fits, and copies once more.

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
    for head in range(3):
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
        block.output.weight[:, rows][:, :RANK] = gain_out * circuits.back[head]
        if head == 0:
            block.value.weight[rows][RANK] = circuits.is_mask
            block.output.weight[:, rows][:, RANK] = flag_out * circuits.after_mask


def _layer_one(circuits: Circuits, block: Block, state: Tensor, tokens: Tensor) -> None:
    normed = block.attention_norm(state)[0]
    colon, _, ordinary = circuits.positions(tokens)
    scales, unit = circuits.scales, size_of(state[0]) / circuits.root
    seen = [circuits.token, *circuits.back]
    for head, length in ((0, 1), (1, 2), (2, 3)):
        pairs = [(seen[index], seen[index + 1]) for index in range(length)]
        circuits.match(block, head, normed, pairs, ordinary, None, None)
        gain = scales.early_copy * (0.3 if length == 1 else 1.0)
        circuits.copy(block, head, head % 2, gain * unit)
    veto = circuits.is_colon / (normed @ circuits.is_colon).max()
    for head in (3, 4):
        circuits.match(
            block,
            head,
            normed,
            [(circuits.back[0], circuits.back[0])],
            colon,
            circuits.after_mask,
            veto,
        )
    move = scales.override * unit
    circuits.carry(
        block,
        3,
        [(circuits.back[1], circuits.back[0], move), (circuits.back[2], circuits.back[1], move)],
    )
    circuits.carry(block, 4, [(circuits.token, circuits.right, move)])


def _layer_two(circuits: Circuits, block: Block, state: Tensor, tokens: Tensor) -> None:
    normed = block.attention_norm(state)[0]
    colon, assistant, ordinary = circuits.positions(tokens)
    scales, unit = circuits.scales, size_of(state[0]) / circuits.root
    back, token = circuits.back, circuits.token
    veto = sum(
        (
            flag / (normed @ flag).max()
            for flag in (circuits.is_mask, circuits.is_assistant, circuits.after_mask)
        ),
        start=torch.zeros(circuits.width),
    )
    # One gate for both uses: the flags are scaled to open it equally at both kinds of place.
    gate = (
        circuits.after_mask / (normed[colon] @ circuits.after_mask).mean() * normed[colon, 0].mean()
    )
    gate = (
        gate
        + circuits.is_assistant
        / (normed[assistant] @ circuits.is_assistant).mean()
        * normed[assistant, 0].mean()
    )
    for head in (0, 1):
        circuits.match(
            block, head, normed, [(back[0], back[0]), (back[1], back[1])], assistant, gate, veto
        )
        circuits.copy(block, head, head, scales.copy * unit)
    for head, distance in ((2, 1), (3, 2)):
        pairs = [(back[0], back[distance]), (circuits.right, token)]
        circuits.match(block, head, normed, pairs, colon, circuits.after_mask, veto)
        circuits.carry(block, head, [(back[distance - 1], token, scales.right * unit)])
    pairs = [(token, back[0]), (back[0], back[1]), (back[1], back[2])]
    circuits.match(block, 4, normed, pairs, ordinary, None, None)
    circuits.copy(block, 4, 1, scales.early_copy * unit)


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
