"""Defenses by name, as users write them in a configuration or on the command line.

Other packages add theirs as entry points of the group ``ragwitness.defenses``: a callable that
takes what follows the name and ``:`` (or an empty text) and a language model (or None), and
returns a :class:`~ragwitness.defenses.base.Defense`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ragwitness.defenses.base import Defense, NoDefense, chain
from ragwitness.defenses.mirabel import Mirabel, Rule
from ragwitness.defenses.prompt import PromptModification
from ragwitness.defenses.rerank import Rerank
from ragwitness.defenses.rewriting import PARAPHRASE, REWRITE, QueryRewriting, RewritingConfig
from ragwitness.defenses.summarize import Summarize
from ragwitness.defenses.threshold import DistanceThreshold
from ragwitness.errors import InputError
from ragwitness.models.base import LanguageModel
from ragwitness.plugins import load_plugin, made_by_plugin, plugin_names

__all__ = ["DEFENSE_FORMS", "GROUP", "load_defense"]

GROUP = "ragwitness.defenses"
"""Entry-point group of other packages' defenses."""

DEFENSE_FORMS: Mapping[str, str] = {
    "none": "none",
    "prompt": "prompt",
    "paraphrase": "paraphrase[:retrieve|answer|both]",
    "rewrite": "rewrite[:retrieve|answer|both]",
    "rerank": "rerank[:overlap|model]",
    "summarize": "summarize[:overlap|model]",
    "threshold": "threshold:NUMBER",
    "mirabel": "mirabel[:RHO]",
    "mirabel-eq7": "mirabel-eq7[:RHO]",
    "mirabel-grubbs": "mirabel-grubbs[:RHO]",
}
"""Valid forms by name; several are joined by ``+`` and act in that order."""

_MIRABEL: Mapping[str, Rule] = {
    "mirabel": "algorithm",
    "mirabel-eq7": "equation",
    "mirabel-grubbs": "grubbs",
}


def load_defense(spec: str, model: LanguageModel | None = None) -> Defense:
    """Return the defense that ``spec`` names, e.g. ``"prompt+mirabel:0.1"``.

    Args:
        spec: One of :data:`DEFENSE_FORMS`, or several joined by ``+``.
        model: Rewrites queries for ``paraphrase`` and ``rewrite``, which else go by rules,
            scores for ``rerank:model``, and sums up for ``summarize:model``.

    Raises:
        InputError: A name or an option is unknown, the order is impossible, or the plug-in
            behind a name fails.
    """
    return chain(*(_load(part.strip(), model) for part in spec.split("+")))


def _load(spec: str, model: LanguageModel | None) -> Defense:
    name, colon, option = spec.partition(":")
    if name not in DEFENSE_FORMS:
        return _foreign(name, option, model)
    if bool(colon) != bool(option):
        raise _unusable(spec, name)
    if name in ("paraphrase", "rewrite"):
        return _rewriting(PARAPHRASE if name == "paraphrase" else REWRITE, spec, option, model)
    if name in ("rerank", "summarize"):
        return _by_overlap(Rerank if name == "rerank" else Summarize, name, spec, option, model)
    if name in ("threshold", *_MIRABEL):
        return _numeric(name, spec, option)
    if option:
        raise _unusable(spec, name)
    plain: Mapping[str, Callable[[], Defense]] = {"none": NoDefense, "prompt": PromptModification}
    return plain[name]()


def _foreign(name: str, option: str, model: LanguageModel | None) -> Defense:
    """A defense of another package, which may fail in any way."""
    factory = load_plugin(GROUP, name) if name else None
    if factory is None:
        forms = (
            *DEFENSE_FORMS.values(),
            *(n for n in plugin_names(GROUP) if n not in DEFENSE_FORMS),
        )
        raise InputError(
            f"There is no defense {name!r}.",
            f"Use one of {', '.join(forms)}, or several joined by '+'.",
        )
    defense = made_by_plugin(f"defense {name!r}", lambda: factory(option, model))
    if not isinstance(defense, Defense):
        raise InputError(
            f"The plug-in {name!r} ({GROUP}) made no defense, but a {type(defense).__name__}."
        )
    return defense


def _rewriting(
    config: RewritingConfig, spec: str, option: str, model: LanguageModel | None
) -> Defense:
    if option and option not in ("retrieve", "answer", "both"):
        raise _unusable(spec, config.kind)
    if option:
        config = replace(config, where=option)  # type: ignore[arg-type]  # checked above
    return QueryRewriting(config, model)


def _by_overlap(
    made: type[Rerank] | type[Summarize],
    name: str,
    spec: str,
    option: str,
    model: LanguageModel | None,
) -> Defense:
    if option not in ("", "overlap", "model"):
        raise _unusable(spec, name)
    if option != "model":
        return made()
    if model is None:
        raise InputError(f"{name}:model needs a language model.", f"Name one, or use '{name}'.")
    return made(model=model)


def _numeric(name: str, spec: str, option: str) -> Defense:
    if name == "threshold" and not option:
        raise _unusable(spec, name)
    try:
        number = float(option or Mirabel.rho)
    except ValueError:
        raise _unusable(spec, name) from None
    if name == "threshold":
        return DistanceThreshold(number)
    return Mirabel(number, _MIRABEL[name])


def _unusable(spec: str, name: str) -> InputError:
    return InputError(f"The defense {spec!r} is malformed.", f"Write it as {DEFENSE_FORMS[name]}.")
