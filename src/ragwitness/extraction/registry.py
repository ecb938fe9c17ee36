"""The extraction attacks by name.

Other packages add theirs as entry points of the group ``ragwitness.attacks``: the name is the
attack's, the object its class, made from a configuration. The configuration is a dataclass with
defaults, one of them ``limits``, in the same module under the class's name followed by ``Config``.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragwitness.errors import InputError
from ragwitness.extraction import attacks
from ragwitness.extraction.attacks import Attack, Limits
from ragwitness.fields import typed_fields
from ragwitness.plugins import load_plugin, made_by_plugin, plugin_names

__all__ = ["ATTACKS", "GROUP", "AttackEntry", "attack_names", "build_attack"]

GROUP = "ragwitness.attacks"
"""Entry-point group of other packages' attacks."""

_GIVEN = ("limits", "texts")  # by options of their own


@dataclass(frozen=True, slots=True)
class AttackEntry:
    """A registered attack.

    Attributes:
        kind: Class in :mod:`ragwitness.extraction.attacks`; ``kind + "Config"`` configures it.
        summary: What it does, in a few words.
        preset: Fields of the configuration that the name stands for.
    """

    kind: str
    summary: str
    preset: Mapping[str, object] = field(default_factory=dict)


ATTACKS: dict[str, AttackEntry] = {
    "composite": AttackEntry("Composite", "random fragments, repeat the context"),
    "composite-conditions": AttackEntry(
        "Composite", "medical conditions, repeat the context", {"target": "conditions"}
    ),
    "composite-contacts": AttackEntry(
        "Composite", "leads to contact details, repeat the context", {"target": "contacts"}
    ),
    "pide": AttackEntry("Pide", "copy all text before this sentence"),
    "thief": AttackEntry("Thief", "goes on from the ends of leaked passages"),
    "pirates": AttackEntry("Pirates", "words by relevance, repeat the context"),
    "benign": AttackEntry("Benign", "ordinary questions only"),
    "crawler": AttackEntry("Crawler", "a bandit over the graph of leaked words"),
}
"""Our own names for ``--attacks``; ``all`` means these."""


def attack_names() -> tuple[str, ...]:
    """Return the names of all attacks, those of other packages last; none of these is loaded."""
    return (*ATTACKS, *(name for name in plugin_names(GROUP) if name not in ATTACKS))


def build_attack(
    name: str,
    limits: Limits | None = None,
    options: Mapping[str, object] | None = None,
    texts: Sequence[str] = (),
) -> Attack:
    """Return a registered attack.

    Args:
        name: One of :func:`attack_names`.
        limits: How much it may ask; None for SAGE's 250 prompts.
        options: Fields of its configuration; text is turned into the field's type.
        texts: Public texts to cut information from, for attacks that take any.

    Raises:
        InputError: Unknown name, field or value, or a plug-in that fails.
    """
    kind, config_class, preset = _classes(name)
    known = {one.name for one in dataclasses.fields(config_class)}
    default = _made(name, config_class)
    chosen = {**preset, **(options or {})}
    fields = typed_fields(name, default, known - set(_GIVEN), chosen)
    given = {
        "limits": limits or Limits(),
        **({"texts": tuple(texts)} if texts and "texts" in known else {}),
    }
    attack: Attack = _made(name, lambda: kind(config_class(**fields, **given)))
    return attack


def _made(name: str, make: Callable[[], Any]) -> Any:
    """Make something of an attack, ours or another package's."""
    return make() if name in ATTACKS else made_by_plugin(f"attack {name!r}", make)


def _classes(name: str) -> tuple[Any, Any, Mapping[str, object]]:
    """An attack's class, that of its configuration, and the fields that the name stands for.

    Raises:
        InputError: Unknown name, or a plug-in that is no attack.
    """
    if entry := ATTACKS.get(name):
        return getattr(attacks, entry.kind), getattr(attacks, f"{entry.kind}Config"), entry.preset
    kind = load_plugin(GROUP, name)
    if kind is None:
        raise InputError(f"Unknown attack {name!r}.", f"Available: {', '.join(attack_names())}.")
    where = sys.modules.get(getattr(kind, "__module__", ""))
    config_class = getattr(where, f"{getattr(kind, '__name__', '')}Config", None)
    complete = all(hasattr(kind, part) for part in ("name", "steps"))
    limited = dataclasses.is_dataclass(config_class) and any(
        one.name == "limits" for one in dataclasses.fields(config_class)
    )
    if not (inspect.isclass(kind) and complete and limited):
        raise InputError(
            f"The plug-in {name!r} ({GROUP}) is no attack.",
            "It must be a class with name and steps, beside a dataclass with its name followed by"
            " Config and a field limits.",
        )
    return kind, config_class, {}
