"""Options that synthesis and comparison share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ragwitness.core.options import Opt, PathRole
from ragwitness.synthesis.agents import Asking, MakingConfig

RolePlayers = Annotated[
    Sequence[str] | None,
    Opt(
        "--role",
        metavar="ROLE=MODEL",
        help="Another model, or rules, for one role of SAGE: extractor, generator, judge or"
        " rewriter. May be repeated.",
    ),
]


Contacts = Annotated[
    bool, Opt("--contacts", help="Count the contact details in the corpus as secrets too.")
]


@dataclass(frozen=True, kw_only=True)
class Making:
    """Who makes what stands in for private records, if a model does.

    Attributes:
        model: The chat model of methods that ask one: URL#MODEL, openai/MODEL, gguf:FILE, hf:NAME,
            or any target; reader is the embedded reader, and rules no model at all. It is shown the
            records (the private methods do not show them).
        domain: The kind of the records: auto, medical, wiki or a .toml file.
        rounds: The most versions of a record that are judged.
    """

    model: Annotated[str | None, PathRole.ADDRESS] = None
    domain: Annotated[str, PathRole.ADDRESS] = "auto"
    rounds: int = 3

    def making(self, asking: Asking) -> MakingConfig:
        """Return the configuration of methods that ask a model.

        Raises:
            InputError: There is no such domain.
        """
        from ragwitness.synthesis.agents import MakingConfig, load_domain

        return MakingConfig(domain=load_domain(self.domain), asking=asking, rounds=self.rounds)
