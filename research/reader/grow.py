"""Go on from an exported reader: more layers, and one token for a gap.

New layers start as identities (what they write is zero), so the grown reader says at first what
the old one says. The gap's token starts as a copy of a mask's: the pointer that finds a mask
after ``[Mask_i]:`` then finds the gap after ``____:``, without training (66% of held-out words).
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file

from research.reader.corpus import Vocabulary
from research.reader.export import hugging_face_name
from research.reader.network import Block, Reader


class StartError(ValueError):
    """The reader to go on from does not fit; the message says how."""


@torch.no_grad()  # type: ignore[untyped-decorator]
def grow(reader: Reader, vocabulary: Vocabulary, folder: Path, inserted: tuple[int, ...]) -> None:
    """Load the weights of ``folder`` into ``reader``; layers ``inserted`` start as identities.

    Args:
        reader: changed in place; it has as many layers more as ``inserted`` names.
        vocabulary: that of ``folder``, with the gap's token after its last.
        folder: an exported reader.
        inserted: numbers of the new layers among those of the grown reader.

    Raises:
        StartError: The folder holds another shape, or no reader.
    """
    path = folder / "model.safetensors"
    if not path.is_file():
        raise StartError(f"there is no reader to go on from: {path} is missing")
    old = json.loads((folder / "config.json").read_text("utf-8"))
    kept = [layer for layer in range(reader.config.layers) if layer not in inserted]
    if old["num_hidden_layers"] != len(kept) or old["hidden_size"] != reader.config.width:
        raise StartError(
            f"{folder} has {old['num_hidden_layers']} layers of width {old['hidden_size']}, "
            f"not {len(kept)} of {reader.config.width}"
        )
    weights = {name: weight.float() for name, weight in load_file(path).items()}
    # 1. Embedding: the gap's row is a mask's.
    embedding = weights["model.embed_tokens.weight"]
    reader.embedding.weight[: len(embedding)] = embedding
    if vocabulary.gap is not None and vocabulary.gap >= len(embedding):
        reader.embedding.weight[vocabulary.gap] = embedding[vocabulary.masks[0]]
    reader.norm.weight.copy_(weights["model.norm.weight"])
    # 2. Old layers in their order, new ones as identities.
    for number, layer in enumerate(kept):
        for name, parameter in reader.blocks[layer].named_parameters():
            parameter.copy_(weights[hugging_face_name(number, name)])
    for layer in inserted:
        _identity(reader.blocks[layer], reader.blocks[max(k for k in kept if k < layer)])


def _identity(block: Block, model: Block) -> None:
    """A layer that writes nothing yet, with the norms of ``model`` and like attending to like."""
    for mine, other in zip(block.parameters(), model.parameters(), strict=True):
        if mine.dim() == 1:
            mine.copy_(other)
    shared = torch.randn(block.key.weight.shape) / math.sqrt(block.key.weight.shape[1])
    block.key.weight.copy_(0.5 * shared + 0.3 * block.key.weight)
    block.query.weight.copy_(0.5 * shared + 0.3 * block.query.weight)
    block.output.weight.zero_()
    block.down.weight.zero_()
