"""The worlds of a study, with base models that are trained once and kept."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragwitness.canary.simulate.pieces import name_markers
from ragwitness.canary.simulate.policies import Base, load_base, one_thread, save_policy
from ragwitness.canary.simulate.pretrain import Pretraining
from ragwitness.canary.simulate.texts import Cut, study_examples, text_base
from ragwitness.canary.simulate.toy import toy_base, toy_examples
from ragwitness.canary.simulate.trial import World
from ragwitness.errors import InputError
from ragwitness.runs.canary_study.table import WorldSpec

__all__ = ["WorldFolders", "base_contents", "make_world", "prepare_base"]

_VERSION = 2  # raise it where code changes what a trial gives: older bases and rows are made anew


@dataclass(frozen=True, slots=True)
class WorldFolders:
    """Where things are.

    Attributes:
        data: Of the corpora; None where the table needs none.
        bases: Of the base models that are trained here.
    """

    data: Path | None
    bases: Path

    def corpus(self, name: str) -> Path:
        """Return the path of a corpus.

        Raises:
            InputError: It is not there.
        """
        path = None if self.data is None else self.data / name
        if path is None or not path.is_file():
            raise InputError(
                f"The corpus {name} is not there.",
                "Give the folder of the corpora with --data DIR.",
            )
        return path

    def digest(self, name: str) -> str:
        """Return SHA-256 of a corpus in hex; empty where none is named."""
        return hashlib.sha256(self.corpus(name).read_bytes()).hexdigest() if name else ""


def prepare_base(
    spec: WorldSpec, folders: WorldFolders, say: Callable[[str], None] = lambda _: None
) -> Path | str:
    """Return the folder or name of a world's base; train it where that is not done.

    Raises:
        InputError: A corpus is missing.
        MissingExtraError: torch or transformers is not installed.
    """
    if spec.model:
        return spec.model
    content = json.dumps(base_contents(spec, folders), sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    folder = folders.bases / f"{spec.kind}-{digest}"
    if not folder.is_dir():
        say(f"training the base {folder.name}")
        one_thread(spec.device)
        _save(_train(spec, folders), folder)
    return folder


def base_contents(spec: WorldSpec, folders: WorldFolders) -> dict[str, Any]:
    """Return everything that a base follows from, defaults included.

    Raises:
        InputError: A corpus is missing.
    """
    return {
        "version": _VERSION,
        "kind": spec.kind,
        "model": spec.model,
        "dtype": spec.dtype,
        "training": asdict(Pretraining(**spec.training)),
        "cut": asdict(Cut(**spec.cut)),
        "corpus": folders.digest(spec.corpus),
    }


def make_world(spec: Mapping[str, Any], folders: WorldFolders) -> World:
    """Load a world whose base has been prepared."""
    own = WorldSpec(**spec)
    base = load_base(str(prepare_base(own, folders)), own.dtype)
    # A base trained here knows spare markers; another one reads the strings as they are.
    named = {} if own.model else {"named": name_markers}
    if own.kind == "toy":
        return World(base, lambda rng: toy_examples(own.examples, rng), **named)
    examples = study_examples(folders.corpus(own.corpus), Cut(**own.cut))
    if len(examples) < own.examples:
        raise InputError(
            f"{own.corpus} has {len(examples)} examples left for a study, not {own.examples}.",
            "Lower examples in the table.",
        )
    return World(base, lambda rng: rng.sample(examples, own.examples), **named)


def _train(spec: WorldSpec, folders: WorldFolders) -> Base:
    config = Pretraining(**spec.training)
    if spec.kind == "toy":
        return toy_base(config)
    return text_base(folders.corpus(spec.corpus), Cut(**spec.cut), config)


def _save(base: Base, folder: Path) -> None:
    """Whole or not at all: another study may look for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        half = Path(work) / "base"
        save_policy(base, base.model, half)
        os.replace(half, folder)
