"""The ways of making synthetic data by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ragwitness.defenses.sage import PublishedSage, Sage
from ragwitness.defenses.synthetic.attrprompt import AttrPrompt
from ragwitness.defenses.synthetic.base import AnyMethod
from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.defenses.synthetic.guard import GuardConfig
from ragwitness.defenses.synthetic.local import Keywords, Redact
from ragwitness.defenses.synthetic.paraphrase import Paraphrase
from ragwitness.defenses.synthetic.private.config import PrivateConfig
from ragwitness.defenses.synthetic.private.evolution import Candidates, PrivateEvolution
from ragwitness.defenses.synthetic.zerogen import ZeroGen
from ragwitness.errors import InputError
from ragwitness.text.secrets import Secret

__all__ = ["METHODS", "Entry", "build_method", "guard_config"]


@dataclass(frozen=True, slots=True)
class Materials:
    """What a method may be made from."""

    config: MakingConfig
    secrets: Sequence[Secret]
    pii: str
    k: int
    private: tuple[PrivateConfig, Candidates] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered method.

    Attributes:
        make: Makes it.
        summary: What it does, in a few words.
        evaluation: Only for evaluation: as published, without our conditions.
        copies: Copies text by design, so that the conditions on copying do not apply.
        private: Differentially private: no condition may look at a record.
    """

    make: Callable[[Materials], AnyMethod]
    summary: str
    evaluation: bool = False
    copies: bool = False
    private: bool = False


def _sage(given: Materials) -> AnyMethod:
    if not given.config.rounds:
        raise InputError("sage judges each text at least once.", "Take stage-1, or --rounds 1.")
    return Sage(given.config)


def _evolution(given: Materials) -> AnyMethod:
    if given.private is None:
        raise InputError(
            "private-evolution needs a privacy budget.",
            "Add --epsilon 1, and --public FILE with texts that are no secret.",
        )
    return PrivateEvolution(*given.private, given.config)


METHODS = {
    "sage": Entry(_sage, "attributes, a new text, a privacy agent and a rewriting agent"),
    "stage-1": Entry(
        lambda m: Sage(replace(m.config, rounds=0)), "attributes and a new text, no agents"
    ),
    "paraphrase": Entry(lambda m: Paraphrase("plain", m.config), "the record in other words"),
    "paraphrase-checklist": Entry(
        lambda m: Paraphrase("checklist", m.config), "likewise, with SAGE's six checks"
    ),
    "zerogen": Entry(lambda m: ZeroGen(m.config), "questions that the record answers"),
    "attrprompt": Entry(
        lambda m: AttrPrompt(m.config), "texts from subtopics of the corpus, of no record"
    ),
    "redact": Entry(
        lambda m: Redact(m.secrets, m.pii), "<KIND> for contacts and secrets, no model", copies=True
    ),
    "keywords": Entry(lambda m: Keywords(m.k), "words that many records share, no model"),
    "private-evolution": Entry(
        _evolution, "texts that the records vote for, differentially private", private=True
    ),
    "sage-published": Entry(
        lambda m: PublishedSage(m.config), "SAGE as its code is", evaluation=True
    ),
    "paraphrase-published": Entry(
        lambda m: Paraphrase("published", m.config), "extracts, as its code is", evaluation=True
    ),
    "zerogen-published": Entry(
        lambda m: ZeroGen(m.config, published=True), "shuffled, as its code is", evaluation=True
    ),
    "attrprompt-published": Entry(
        lambda m: AttrPrompt(m.config, published=True), "blind, as its code is", evaluation=True
    ),
}
"""By the name of ``--method``; those for evaluation are not offered there."""


def build_method(
    name: str,
    config: MakingConfig | None = None,
    secrets: Sequence[Secret] = (),
    *,
    pii: str = "auto",
    k: int = 10,
    evaluation: bool = False,
    private: tuple[PrivateConfig, Candidates] | None = None,
) -> AnyMethod:
    """Return a method by name.

    Args:
        name: One of :data:`METHODS`.
        config: Settings of those that ask a model.
        secrets: Known secrets, for ``redact``.
        pii: Who finds contact details, for ``redact``.
        k: Records that a word must stand in, for ``keywords``.
        evaluation: Allow methods that enforce none of our conditions.
        private: Budget and candidates, for ``private-evolution``.

    Raises:
        InputError: Unknown name, one for evaluation alone, or what it needs is missing.
    """
    entry = METHODS.get(name)
    offered = [key for key, one in METHODS.items() if evaluation or not one.evaluation]
    if entry is None:
        raise InputError(f"There is no method {name!r}.", f"Choose {', '.join(offered)}.")
    if entry.evaluation and not evaluation:
        raise InputError(
            f"{name} enforces no condition and is for evaluation alone.",
            f"Choose {', '.join(offered)}.",
        )
    return entry.make(Materials(config or MakingConfig(), secrets, pii, k, private))


def guard_config(name: str, config: GuardConfig) -> GuardConfig:
    """Return the conditions as they apply to a method.

    One that copies by design may copy. One that is differentially private keeps the conditions
    on form alone; give its guard no record and no secret either.
    """
    if name in METHODS and (METHODS[name].copies or METHODS[name].private):
        return replace(config, run=0, rouge=1.0, cosine=None)
    return config
