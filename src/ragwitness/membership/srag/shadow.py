"""The shadow RAG system (§4.2.1): a system of the auditor's own, where the truth is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragwitness.errors import InputError
from ragwitness.rag import LabTarget, RagConfig, build_system
from ragwitness.types import Document

__all__ = ["Shadow", "ShadowConfig", "Split", "build_shadow", "split_auxiliary"]

_FEWEST = 10  # documents per half; below that a classifier learns nothing


@dataclass(frozen=True, slots=True)
class ShadowConfig:
    """How the shadow system is made.

    Attributes:
        audited: Documents probed per half.
        stored: Most documents in its database.
        rag: Generator, encoder, k and template; the target's where they are known.
        seed: Of the split.
    """

    audited: int = 100
    stored: int = 1000
    rag: RagConfig = field(default_factory=RagConfig)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Shadow:
    """A shadow system and the documents that D_audit is made from.

    Attributes:
        target: The system, asked like any other target.
        inside: Documents of its database (D_s,i), to be probed.
        outside: Documents it does not hold (D_s,o), to be probed.
        spare: The rest of D_s,o, never shown to it nor probed at it.
    """

    target: LabTarget
    inside: tuple[Document, ...]
    outside: tuple[Document, ...]
    spare: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Which auxiliary documents go where.

    Attributes:
        stored: The shadow system's database.
        inside: Those of it that are probed (D_s,i).
        outside: Probed documents it does not hold (D_s,o).
        spare: The rest of D_s,o, never shown to it nor probed at it.
    """

    stored: tuple[Document, ...]
    inside: tuple[Document, ...]
    outside: tuple[Document, ...]
    spare: tuple[Document, ...]


def split_auxiliary(auxiliary: Sequence[Document], config: ShadowConfig) -> Split:
    """Split the auxiliary documents into disjoint halves; nothing is built.

    Raises:
        InputError: Too few auxiliary documents.
    """
    if len(auxiliary) < 2 * _FEWEST:
        raise InputError(
            f"{len(auxiliary)} auxiliary documents are too few for a shadow system;"
            f" it needs at least {2 * _FEWEST}.",
            "Give more with --auxiliary, or leave the option out to use the generated corpus.",
        )
    shuffled = list(auxiliary)
    random.Random(config.seed).shuffle(shuffled)
    half = len(shuffled) // 2
    stored, out = shuffled[:half][: config.stored], shuffled[half:]
    # Half of D_s,o stays unprobed here, so that it can calibrate at the target.
    probed = min(config.audited, max(_FEWEST, len(out) // 2))
    return Split(
        stored=tuple(stored),
        inside=tuple(stored[: config.audited]),
        outside=tuple(out[:probed]),
        spare=tuple(out[probed:]),
    )


def build_shadow(auxiliary: Sequence[Document], config: ShadowConfig) -> Shadow:
    """Split the auxiliary documents and index the stored ones.

    Raises:
        InputError: Too few auxiliary documents.
        ModelError: A model of ``config.rag`` cannot be loaded.
    """
    split = split_auxiliary(auxiliary, config)
    return Shadow(
        target=LabTarget(build_system(split.stored, config.rag)),
        inside=split.inside,
        outside=split.outside,
        spare=split.spare,
    )
