"""Defenses by name, as users write them in a configuration or on the command line.

Other packages add theirs as entry points of the group ``ragwitness.defenses``: a callable that
takes what follows the name and ``:`` (or an empty text) and a language model (or None), and
returns a :class:`~ragwitness.defenses.base.Defense`. Ours are made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from ragwitness.defenses.base import Defense, NoDefense, chain
from ragwitness.defenses.mirabel import Mirabel, Rule
from ragwitness.defenses.prompt import PromptModification, Summarize
from ragwitness.defenses.retrieval import DistanceThreshold, Rerank
from ragwitness.defenses.rewriting import PARAPHRASE, REWRITE, QueryRewriting, RewritingConfig
from ragwitness.errors import InputError
from ragwitness.kit.registry import Listing, Registry
from ragwitness.models.base import LanguageModel

GROUP = "ragwitness.defenses"
"""Entry-point group of other packages' defenses."""

_Factory: TypeAlias = Callable[[str, LanguageModel | None], Defense]


def _rewriting(config: RewritingConfig) -> _Factory:
    def make(option: str, model: LanguageModel | None) -> Defense:
        # The form lists the places where a rewritten query can be used.
        return QueryRewriting(replace(config, where=option or config.where), model)  # type: ignore[arg-type]

    return make


def _by_overlap(kind: type[Rerank] | type[Summarize], name: str) -> _Factory:
    def make(option: str, model: LanguageModel | None) -> Defense:
        if option != "model":
            return kind()
        if model is None:
            raise InputError(f"{name}:model needs a language model.", f"Name one, or use '{name}'.")
        return kind(model=model)

    return make


def _mirabel(rule: Rule) -> _Factory:
    return lambda option, _: Mirabel(float(option or Mirabel.rho), rule)


DEFENSES = Registry(
    "defense",
    {
        "none": Listing(lambda _option, _model: NoDefense()),
        "prompt": Listing(lambda _option, _model: PromptModification()),
        "paraphrase": Listing(_rewriting(PARAPHRASE), form="paraphrase[:retrieve|answer|both]"),
        "rewrite": Listing(_rewriting(REWRITE), form="rewrite[:retrieve|answer|both]"),
        "rerank": Listing(_by_overlap(Rerank, "rerank"), form="rerank[:overlap|model]"),
        "summarize": Listing(_by_overlap(Summarize, "summarize"), form="summarize[:overlap|model]"),
        "threshold": Listing(
            lambda option, _: DistanceThreshold(float(option)), form="threshold:NUMBER"
        ),
        "mirabel": Listing(_mirabel("algorithm"), form="mirabel[:RHO]"),
        "mirabel-eq7": Listing(_mirabel("equation"), form="mirabel-eq7[:RHO]"),
        "mirabel-grubbs": Listing(_mirabel("grubbs"), form="mirabel-grubbs[:RHO]"),
    },
    group=GROUP,
    more=", or several joined by '+'",
)
"""Several are joined by ``+`` and act in that order."""


def load_defense(spec: str, model: LanguageModel | None = None) -> Defense:
    """Return the defense that ``spec`` names, e.g. ``"prompt+mirabel:0.1"``.

    Args:
        spec: One of :data:`DEFENSES` in its form, or several joined by ``+``.
        model: Rewrites queries for ``paraphrase`` and ``rewrite``, which else go by rules,
            scores for ``rerank:model``, and sums up for ``summarize:model``.

    Raises:
        InputError: A name or an option is unknown, the order is impossible, or the plug-in
            behind a name fails.
    """
    return chain(*(_load(part.strip(), model) for part in spec.split("+")))


def _load(spec: str, model: LanguageModel | None) -> Defense:
    name, option = DEFENSES.split(spec)
    make = DEFENSES.load(name)
    try:
        defense = DEFENSES.guard(name, lambda: make(option, model))
    except ValueError:  # of ours: the option is not a number
        raise DEFENSES.malformed(spec) from None
    if not isinstance(defense, Defense):
        raise InputError(
            f"The plug-in {name!r} ({GROUP}) made no defense, but a {type(defense).__name__}."
        )
    return defense
