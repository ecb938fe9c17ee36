"""Defenses by name, as users write them in a configuration or on the command line.

Other packages add defenses as entry points of the group ``ragwitness.defenses``: a callable that
takes the option after ``:`` (or an empty text) and a language model (or None). It returns a
:class:`~ragwitness.rag.defenses.base.Defense`. Ours are made in the same way.
"""

from __future__ import annotations

from ragwitness.core.errors import InputError
from ragwitness.core.registry import Listing, Registry
from ragwitness.models.base import LanguageModel
from ragwitness.rag.config import TEMPLATES, PromptTemplate
from ragwitness.rag.defenses.base import Defense, NoDefense, chain
from ragwitness.rag.defenses.mirabel import Mirabel
from ragwitness.rag.defenses.rewriting import QueryRewriting

GROUP = "ragwitness.defenses"
"""Entry-point group of other packages' defenses."""

DEFENSES = Registry(
    "defense",
    {
        "none": Listing(lambda _option, _model: NoDefense()),
        "prompt": Listing(lambda _option, _model: PromptModification()),
        "paraphrase": Listing(lambda _option, model: QueryRewriting(model)),
        "mirabel": Listing(
            lambda option, _model: Mirabel(float(option or Mirabel.rho)), form="mirabel[:RHO]"
        ),
    },
    group=GROUP,
    more=", or several joined by '+'",
)
"""Several are joined by ``+`` and act in that order."""


def load_defense(spec: str, model: LanguageModel | None = None) -> Defense:
    """Return the defense that ``spec`` names, e.g. ``"prompt+mirabel:0.1"``.

    Args:
        spec: One of :data:`DEFENSES` in its form, or several joined by ``+``.
        model: Rewrites queries for ``paraphrase``; None: the generator of the system does.

    Raises:
        InputError: A name or an option is unknown, or the plug-in behind a name fails.
    """
    return chain(*(_load(name.strip(), model) for name in spec.split("+")))


def _load(spec: str, model: LanguageModel | None) -> Defense:
    name, option = DEFENSES.split(spec)
    make = DEFENSES.load(name)
    try:
        defense = DEFENSES.guard(name, lambda: make(option, model))
    except ValueError:  # the option is not a number
        raise DEFENSES.malformed(spec) from None
    if not isinstance(defense, Defense):
        raise InputError(
            f"The plug-in {name!r} ({GROUP}) made no defense, but a {type(defense).__name__}."
        )
    return defense


# Prompt modification: the system prompt forbids what an audit asks for.


class PromptModification(Defense):
    """Puts the prompt with defense intent (S-RAG, Fig. 3) in the place of the system's own."""

    name = "prompt(defended)"

    def template(self, template: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the replacement (S-RAG, §5.3: "alters the RAG prompt template")."""
        return TEMPLATES["defended"]
