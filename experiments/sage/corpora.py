"""The corpora: what is indexed, what is held out, and what in it is known to be private."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ragwitness.core.types import Document
from ragwitness.synthesis.generator_registry import build_method, guard_config
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.private.evolution import WORDS, Candidates, PrivateConfig, load_embedding
from ragwitness.synthesis.run import run_synthesis
from ragwitness.text.documents import load_documents
from ragwitness.text.secrets import Secret
from research.synthetic.wiki_pii import made_up, wiki_pii

__all__ = ["Material", "Question", "load", "replaced"]

Config = dict[str, Any]

_PUBLIC = 2000  # public texts to choose among
_EVOLVED = 200  # texts that stand in the records' place


@dataclass(frozen=True)
class Question:
    """A question about a record that is not indexed, with the answer given there."""

    text: str
    answer: str


@dataclass(frozen=True)
class Material:
    """A corpus divided once, for all methods alike."""

    records: tuple[Document, ...]
    background: tuple[Document, ...]
    questions: tuple[Question, ...]
    secrets: tuple[Secret, ...]
    decoys: tuple[Secret, ...]
    public: tuple[str, ...] = ()


def load(name: str, config: Config, data: Path) -> Material:
    """Read a corpus and divide it at random."""
    own = config["corpora"][name]
    read: Callable[[Config, Path, int], Material] = _wiki if "prose" in own else _dialogues
    return read(own | {"questions": config["questions"]}, data, config["seed"])


def _dialogues(own: Config, data: Path, seed: int) -> Material:
    rows = [json.loads(line) for line in (data / own["file"]).read_text().splitlines()]
    random.Random(seed).shuffle(rows)
    held, kept = rows[: own["held_out"]], rows[own["held_out"] :]
    chosen = [row["id"] for row in kept[: own["planted"]]]
    made = made_up([*chosen, *[""] * len(chosen)], seed=seed)
    planted = {one.record: one.text for one in made[: len(chosen)]}
    return Material(
        tuple(Document(row["id"], _with(row["text"], planted.get(row["id"]))) for row in kept),
        tuple(Document(row["id"], row["text"]) for row in held),
        tuple(Question(row["question"], row["answer"]) for row in held[: own["questions"]]),
        tuple(made[: len(chosen)]),
        tuple(made[len(chosen) :]),
        tuple(one.text for one in load_documents(data / own["public"]).documents[:_PUBLIC]),
    )


def _with(text: str, contact: str | None) -> str:
    """A dialogue in which the patient leaves a contact detail."""
    if contact is None:
        return text
    said, doctor, reply = text.partition("Doctor:")
    return f"{said.rstrip()} You can reach me at {contact} {doctor}{reply}".rstrip()


def _wiki(own: Config, data: Path, seed: int) -> Material:
    made = wiki_pii((data / own["prose"]).read_text(encoding="utf-8"), seed=seed)
    held = {one.id for one in random.Random(seed).sample(made.records, own["held_out"])}
    inside = tuple(one for one in made.secrets if one.record not in held)
    return Material(
        tuple(one for one in made.records if one.id not in held),
        tuple(one for one in made.records if one.id in held),
        (),
        inside,
        made.decoys[: len(inside)],
    )


async def replaced(material: Material, spec: str, folder: Path) -> tuple[Document, ...]:
    """Return what stands in the records' place: ``NAME`` or ``private-evolution:E``.

    What a method withholds is in no index. Noisy votes are kept in ``folder``.
    """
    name, _, option = spec.partition(":")
    if name == "private-evolution":
        return await _evolved(material, float(option), folder)
    method = build_method(name, secrets=material.secrets)
    texts = [one.text for one in material.records]
    guard = SyntheticGuard(texts, material.secrets, guard_config(name, GuardConfig()))
    made = await run_synthesis(material.records, method, guard)
    return tuple(Document(one.record, one.text) for one in made.made if one.text)


async def _evolved(material: Material, epsilon: float, folder: Path) -> tuple[Document, ...]:
    """Public texts that the records vote for; no text stands for a record."""
    candidates = Candidates(
        material.public, WORDS, partial(load_embedding, WORDS, material.public), None
    )
    budget = PrivateConfig(epsilon, texts=_EVOLVED)
    method = build_method("private-evolution", private=(budget, candidates))
    guard = SyntheticGuard((), (), guard_config("private-evolution", GuardConfig()))
    made = await run_synthesis(material.records, method, guard, run=folder / "made")
    return tuple(Document(f"made-{i}", one.text) for i, one in enumerate(made.made) if one.text)
