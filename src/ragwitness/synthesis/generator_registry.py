"""The ways of making synthetic data by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragwitness.core.errors import InputError
from ragwitness.core.registry import Listing, Registry, of_checkout
from ragwitness.synthesis.agents import ROLES, MakingConfig, Roles
from ragwitness.synthesis.baselines import Keywords, Paraphrase, Redact
from ragwitness.synthesis.generator import AnyMethod
from ragwitness.synthesis.guard import GuardConfig
from ragwitness.synthesis.private.evolution import (
    Candidates,
    PrivateConfig,
    PrivateEvolution,
)
from ragwitness.synthesis.sage import Sage
from ragwitness.text.secrets import Secret


@dataclass(frozen=True, slots=True)
class Materials:
    """What a method may be made from."""

    config: MakingConfig
    secrets: Sequence[Secret]
    pii: str
    k: int
    private: tuple[PrivateConfig, Candidates] | None = None


@dataclass(frozen=True, slots=True)
class MethodListing(Listing):
    """A way of making synthetic data, made from :class:`Materials`.

    Attributes:
        evaluation: Only for evaluation: as published, without our conditions.
        copies: Copies text by design, so that the conditions on copying do not apply.
        private: Differentially private: no condition may look at a record.
    """

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
            "Add --epsilon 1, and --public FILE with texts that are not secret.",
        )
    return PrivateEvolution(*given.private, given.config)


def _published(name: str, summary: str) -> MethodListing:
    def make(given: Materials) -> AnyMethod:
        method: AnyMethod = of_checkout("research.synthetic.methods:METHODS")[name](given.config)
        return method

    return MethodListing(make, summary, evaluation=True)


# Of SAGE's tables alone: they are in a checkout.
_PUBLISHED = {
    "sage-published": "SAGE as published",
    "stage-1-published": "its stage 1 as published",
    "paraphrase-published": "extracts, as published",
    "paraphrase-privacy-published": "likewise, told to run no privacy risk",
    "paraphrase-checklist-published": "rewrites by the six checks, as published",
    "zerogen-published": "questions that records answer, shuffled, as its code is",
    "attrprompt-published": "texts from subtopics, blind, as its code is",
}

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
        "keywords": MethodListing(
            lambda m: Keywords(m.k), "words that many records share, no model"
        ),
        "private-evolution": MethodListing(
            _evolution, "texts that the records vote for, differentially private", private=True
        ),
        **{name: _published(name, summary) for name, summary in _PUBLISHED.items()},
    },
)
"""The methods by the name of ``--method``; those for evaluation are in a checkout alone."""


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
    make = METHODS.load(name)
    if METHODS[name].evaluation and not evaluation:
        offered = [key for key, one in METHODS.items() if not one.evaluation]
        raise InputError(
            f"{name} enforces no condition and is for evaluation alone.",
            f"Choose {', '.join(offered)}.",
        )
    method: AnyMethod = make(Materials(config or MakingConfig(), secrets, pii, k, private))
    return method


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method with settings of its own: ``NAME[:K][+ROLE=MODEL][+m=N]``.

    Attributes:
        name: Registered name.
        k: Records in which a keyword must stand.
        roles: Who plays which role, beside those of the run.
        m: Attributes of each part (SAGE §4.4); None for those of the domain.
    """

    name: str
    k: int = 10
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
            # The first m of a list; a list that is too short leaves them to be identified.
            enough = bool(domain.attributes) and all(len(a) >= self.m for a in domain.attributes)
            first = tuple(one[: self.m] for one in domain.attributes) if enough else ()
            domain = replace(domain, attributes=first, count=self.m)
        return replace(config, domain=domain, asking=replace(config.asking, roles=roles))


def parse_spec(spec: str) -> MethodSpec:
    """Read a method as it is named on a command line or in a table.

    Raises:
        InputError: A setting that no method takes.
    """
    named, *settings = spec.split("+")
    name, colon, value = named.partition(":")
    if colon and (name != "keywords" or not value.isdecimal()):
        raise InputError(
            f"There is no method {spec!r}.", "Only keywords takes a number: keywords:20."
        )
    found = MethodSpec(name, int(value) if colon else 10)
    for one in settings:
        key, equals, said = one.partition("=")
        if key in ROLES and said:
            found = replace(found, roles=(*found.roles, (key, said)))
        elif key == "m" and equals and said.isdecimal():
            found = replace(found, m=int(said))
        else:
            raise InputError(
                f"{spec}: a method has no setting {one!r}.",
                f"Write +ROLE=MODEL, the roles being {', '.join(ROLES)}, or +m=3.",
            )
    return found


def needs_model(method: AnyMethod) -> bool:
    """Whether the run's own model is asked, and not models of single roles or rules alone."""
    roles: tuple[str, ...] = getattr(method, "roles", ())
    config: MakingConfig | None = getattr(method, "config", None)
    if not roles or config is None:
        return method.asks
    return config.asking.needs_model(*roles)


def guard_config(name: str, config: GuardConfig) -> GuardConfig:
    """Return the conditions as they apply to a method.

    One that copies by design may copy. One that is differentially private keeps the conditions
    on form alone; give its guard no record and no secret either.
    """
    if name in METHODS and (METHODS[name].copies or METHODS[name].private):
        return replace(config, run=0, rouge=1.0, cosine=None)
    return config
