"""The extraction attacks by name.

Other packages add theirs as entry points of the group ``ragwitness.attacks``: the name is the
attack's, the object its class, made from a configuration. The configuration is a dataclass with
defaults, one of them ``limits``, in the same module under the class's name followed by ``Config``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ragwitness.extraction.attacks.base import Attack, Limits
from ragwitness.kit.registry import Listing, Registry, config_class

GROUP = "ragwitness.attacks"
"""Entry-point group of other packages' attacks."""


def _fits(kind: Any) -> bool:
    config = config_class(kind)
    limited = config is not None and any(one.name == "limits" for one in fields(config))
    return limited and hasattr(kind, "name") and hasattr(kind, "steps")


_HERE = "ragwitness.extraction.attacks"
ATTACKS = Registry(
    "attack",
    {
        "composite": Listing(
            f"{_HERE}.composite:Composite", "random fragments, repeat the context"
        ),
        "composite-conditions": Listing(
            f"{_HERE}.composite:Composite",
            "medical conditions, repeat the context",
            preset={"target": "conditions"},
        ),
        "composite-contacts": Listing(
            f"{_HERE}.composite:Composite",
            "leads to contact details, repeat the context",
            preset={"target": "contacts"},
        ),
        "pide": Listing(f"{_HERE}.composite:Pide", "copy all text before this sentence"),
        "thief": Listing(f"{_HERE}.thief:Thief", "goes on from the ends of leaked passages"),
        "pirates": Listing(f"{_HERE}.pirates:Pirates", "words by relevance, repeat the context"),
        "benign": Listing(f"{_HERE}.benign:Benign", "ordinary questions only"),
        "crawler": Listing(f"{_HERE}.crawler:Crawler", "a bandit over the graph of leaked words"),
    },
    group=GROUP,
    fits=_fits,
    needs="It must be a class with name and steps, beside a dataclass with its name followed by"
    " Config and a field limits.",
)
"""Our own are the names for ``--attacks``; ``all`` means these."""


def build_attack(
    name: str,
    limits: Limits | None = None,
    options: Mapping[str, object] | None = None,
    texts: Sequence[str] = (),
) -> Attack:
    """Return an attack by name.

    Args:
        name: One of ``ATTACKS.names()``.
        limits: How much it may ask; None for SAGE's 250 prompts.
        options: Fields of its configuration; text is turned into the field's type.
        texts: Public texts to cut information from, for attacks that take any.

    Raises:
        InputError: Unknown name, field or value, or a plug-in that fails.
    """
    # Limits and texts come from options of their own.
    fixed = {"limits": limits or Limits(), "texts": tuple(texts) or None}
    config = ATTACKS.configure(name, options, fixed)
    kind = ATTACKS.load(name)
    attack: Attack = ATTACKS.guard(name, lambda: kind(config))
    return attack
