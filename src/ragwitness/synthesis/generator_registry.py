"""The methods of synthetic data by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ragwitness.core.errors import InputError
from ragwitness.core.registry import Listing, Registry, of_checkout
from ragwitness.synthesis.agents import ROLES, MakingConfig, Roles
from ragwitness.synthesis.baselines import Paraphrase, Redact
from ragwitness.synthesis.generator import Method
from ragwitness.synthesis.guard import GuardConfig
from ragwitness.synthesis.private.evolution import Candidates, PrivateConfig, PrivateEvolution
from ragwitness.synthesis.sage import Sage
from ragwitness.text.secrets import Secret

AnyMethod: TypeAlias = Method | PrivateEvolution


@dataclass(frozen=True, slots=True)
class Materials:
    """The settings from which a method is made."""

    config: MakingConfig
    secrets: Sequence[Secret]
    pii: str
    private: tuple[PrivateConfig, Candidates] | None = None


@dataclass(frozen=True, slots=True)
class MethodListing(Listing):
    """A method of synthetic data, made from :class:`Materials`.

    Attributes:
        evaluation: Only for evaluation: as published, without our conditions.
        copies: Copies text by design, so that the conditions on copying do not apply.
        private: Differentially private: no condition may look at a record.
    """

    evaluation: bool = False
    copies: bool = False
    private: bool = False


def _sage(materials: Materials) -> AnyMethod:
    if not materials.config.rounds:
        raise InputError("sage judges each text at least once.", "Take stage-1, or --rounds 1.")
    return Sage(materials.config)


def _evolution(materials: Materials) -> AnyMethod:
    if materials.private is None:
        raise InputError(
            "private-evolution needs a privacy budget.",
            "Add --epsilon 1, and --public FILE with texts that are not secret.",
        )
    return PrivateEvolution(*materials.private, materials.config)


def _published(name: str) -> MethodListing:
    def make(materials: Materials) -> AnyMethod:
        methods = of_checkout("research.synthetic.methods:METHODS")
        method: AnyMethod = methods[name](materials.config)
        return method

    return MethodListing(make, "as published", evaluation=True)


# Methods of SAGE's tables alone: they are in a checkout.
_PUBLISHED = (
    "sage-published", "stage-1-published", "paraphrase-published", "paraphrase-privacy-published",
    "paraphrase-checklist-published", "zerogen-published", "attrprompt-published",
)  # fmt: skip

METHODS = Registry(
    "method",
    {
        "sage": MethodListing(
            _sage, "attributes, a new text, a privacy agent and a rewriting agent"
        ),
        "stage-1": MethodListing(
            lambda m: Sage(replace(m.config, rounds=0)), "attributes and a new text, no agents"
        ),
        "paraphrase": MethodListing(
            lambda m: Paraphrase("plain", m.config), "the record in other words"
        ),
        "paraphrase-privacy": MethodListing(
            lambda m: Paraphrase("privacy", m.config), "likewise, told to run no privacy risk"
        ),
        "paraphrase-checklist": MethodListing(
            lambda m: Paraphrase("checklist", m.config), "likewise, with SAGE's six checks"
        ),
        "redact": MethodListing(
            lambda m: Redact(m.secrets, m.pii),
            "<KIND> for contacts and secrets, no model",
            copies=True,
        ),
        "private-evolution": MethodListing(
            _evolution, "texts that the records vote for, differentially private", private=True
        ),
        **{name: _published(name) for name in _PUBLISHED},
    },
)
"""The methods by the name of ``--method``; those for evaluation are in a checkout alone."""


def build_method(
    name: str,
    config: MakingConfig | None = None,
    secrets: Sequence[Secret] = (),
    *,
    pii: str = "auto",
    evaluation: bool = False,
    private: tuple[PrivateConfig, Candidates] | None = None,
) -> AnyMethod:
    """Return a method by name.

    Args:
        name: One of :data:`METHODS`.
        config: Settings of those that ask a model.
        secrets: Known secrets, for ``redact``.
        pii: Finder of contact details, for ``redact``.
        evaluation: Allow methods that enforce none of our conditions.
        private: Budget and candidates, for ``private-evolution``.

    Raises:
        InputError: Unknown name, a method for evaluation alone, or a missing setting.
    """
    make = METHODS.load(name)
    if METHODS[name].evaluation and not evaluation:
        offered = [key for key, listing in METHODS.items() if not listing.evaluation]
        raise InputError(
            f"{name} enforces no condition and is for evaluation alone.",
            f"Choose {', '.join(offered)}.",
        )
    method: AnyMethod = make(Materials(config or MakingConfig(), secrets, pii, private))
    return method


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method with its settings: ``NAME[+ROLE=MODEL][+m=N]``.

    Attributes:
        name: Registered name.
        roles: Models of single roles, in addition to those of the run.
        m: Attributes of each part (SAGE §4.4); None for those of the domain.
    """

    name: str
    roles: Roles = ()
    m: int | None = None

    def config(self, config: MakingConfig) -> MakingConfig:
        """Return the run's settings with those of the method.

        Raises:
            InputError: m is out of range.
        """
        roles = tuple(sorted({**dict(config.asking.roles), **dict(self.roles)}.items()))
        domain = config.domain
        if self.m is not None:
            # The first m attributes of each part; if there are fewer, all are to be identified.
            enough = bool(domain.attributes) and all(len(a) >= self.m for a in domain.attributes)
            first = tuple(names[: self.m] for names in domain.attributes) if enough else ()
            domain = replace(domain, attributes=first, count=self.m)
        return replace(config, domain=domain, asking=replace(config.asking, roles=roles))


def parse_spec(spec: str) -> MethodSpec:
    """Read a method as it is named on a command line or in a table.

    Raises:
        InputError: A setting that no method takes.
    """
    name, *settings = spec.split("+")
    parsed = MethodSpec(name)
    for setting in settings:
        key, _, value = setting.partition("=")
        if key in ROLES and value:
            parsed = replace(parsed, roles=(*parsed.roles, (key, value)))
        elif key == "m" and value.isdecimal():
            parsed = replace(parsed, m=int(value))
        else:
            raise InputError(
                f"{spec}: a method has no setting {setting!r}.",
                f"Write +ROLE=MODEL, the roles being {', '.join(ROLES)}, or +m=3.",
            )
    return parsed


def needs_model(method: AnyMethod) -> bool:
    """Whether the run's own model is asked, and not only models of single roles."""
    roles: tuple[str, ...] = getattr(method, "roles", ())
    config: MakingConfig | None = getattr(method, "config", None)
    if not roles or config is None:
        return method.asks
    return config.asking.needs_model(*roles)


def guard_config(name: str, config: GuardConfig) -> GuardConfig:
    """Return the conditions as they apply to a method.

    A method that copies by design may copy. A differentially private method keeps the conditions
    on form alone; its guard must get neither records nor secrets.
    """
    if name in METHODS and (METHODS[name].copies or METHODS[name].private):
        return replace(config, run=0, rouge=1.0, cosine=None)
    return config
