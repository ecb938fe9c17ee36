"""What is compared: texts that stand in the same private records' place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragwitness.errors import InputError
from ragwitness.extraction.attacks import Attack
from ragwitness.models.base import Embedder
from ragwitness.rag import RagConfig
from ragwitness.text.secrets import Secret
from ragwitness.types import Document, Target

__all__ = [
    "JUDGED",
    "ORIGIN",
    "ZERO_SHOT",
    "ComparisonPlan",
    "Judge",
    "Material",
    "Question",
    "Variant",
    "check_name",
]

ORIGIN = "origin"
"""The records as they are; everything else is compared with it."""
ZERO_SHOT = "zero-shot"
"""No passage at all: what the generator knows by itself (SAGE, Table 1, "0-shot")."""

JUDGED = "judged"
"""Folder of judgements, beside those of the variants."""

_NAME = re.compile(r"[A-Za-z0-9][\w.:+-]{0,39}", re.ASCII)


def check_name(name: str) -> str:
    """Return a variant's name.

    Raises:
        InputError: It cannot name a folder, or is one of ours.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:60]!r} cannot name a variant.",
            "Use up to 40 letters, digits and . _ - : +, a letter or digit first.",
        )
    if name in (ORIGIN, ZERO_SHOT, JUDGED):
        raise InputError(f"{name} is a name of our own.", "Choose another for your file.")
    return name


@dataclass(frozen=True, slots=True)
class Question:
    """A question that tells how useful a system is.

    Attributes:
        text: What is asked.
        answers: What is right; of several the best match counts.
    """

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """A corpus divided once, for all variants alike.

    Attributes:
        records: The private records, which leaks are counted against.
        background: Records of the same source in no index: what is shared by chance.
        questions: About neither, or about the background.
        secrets: Known secrets in the records.
        decoys: Made like them and put nowhere.
        held: Ids that no variant may index.
    """

    records: tuple[Document, ...]
    background: tuple[Document, ...] = ()
    questions: tuple[Question, ...] = ()
    secrets: tuple[Secret, ...] = ()
    decoys: tuple[Secret, ...] = ()
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Variant:
    """What stands in the records' place.

    Attributes:
        name: Of the row, and of a folder.
        documents: What is indexed, under the ids of the records they stand for.
        retrieve: Whether passages are retrieved at all.
        defense: Before the system.
        settings: How the texts were made.
        warnings: What to beware of.
    """

    name: str
    documents: tuple[Document, ...]
    retrieve: bool = True
    defense: str = "none"
    settings: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges answers.

    Attributes:
        model: A chat model of the auditor's own.
        embedder: For the likeness of answer and reference.
    """

    model: Target
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """How variants are compared.

    Attributes:
        material: The corpus.
        attacks: The same for every variant, with their seed.
        prompts: Most prompts of each.
        answer_tokens: Most tokens of an answer to a question.
        rag: The system in which every variant is indexed.
        by_original: Whether a text is found by its original instead of itself, as in SAGE.
        seed: Of the resampling.
        embedder: For likeness in meaning; None leaves it out.
    """

    material: Material
    attacks: Sequence[Attack]
    prompts: int
    answer_tokens: int
    rag: RagConfig
    by_original: bool = False
    seed: int = 0
    embedder: Embedder | None = None
