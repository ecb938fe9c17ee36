"""The roles of SAGE, and which model plays each: the paper has one for each stage (§3.1, §4.1).

A role is played by the model of the run, by a model of its own, or by rules. The rules stand in
where no chat model is at hand. They are no language model, and whatever they make says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Query, Target
from ragwitness.rag.lab import open_model
from ragwitness.targets.transport import TransportOptions

EXTRACTOR, GENERATOR, JUDGE, REWRITER = "extractor", "generator", "judge", "rewriter"
ROLES = (EXTRACTOR, GENERATOR, JUDGE, REWRITER)
"""Names attributes and what a record says of them; writes; judges privacy; rewrites."""

RULES = "rules"
"""The address of the rules, in the place of a model's."""

Roles = tuple[tuple[str, str], ...]
"""The address of each role that is not played by the run's model, sorted by role."""


@dataclass(frozen=True, slots=True)
class RoleQuery(Query):
    """A question to a model other than the run's.

    Attributes:
        model: Address of that model.
    """

    model: str = ""


def roles_of(model: str | None, given: Mapping[str, str | None]) -> tuple[str | None, Roles]:
    """Return the run's model, None where the rules are that, and who plays the other roles.

    Args:
        model: Address of the run's model.
        given: Addresses by role; None leaves a role to the run's model.

    Raises:
        InputError: There is no such role.
    """
    if unknown := sorted(set(given) - set(ROLES)):
        raise InputError(f"There is no role {unknown[0]!r}.", f"There are {', '.join(ROLES)}.")
    usual = RULES if model == RULES else None
    named = {role: given.get(role) or usual for role in ROLES}
    played = tuple((role, one) for role, one in named.items() if one and one != model)
    if usual is not None:
        played = tuple((role, one) for role, one in named.items() if one)
    return (None if usual else model), played


def described(roles: Roles) -> dict[str, str]:
    """Return who plays each role, as label and value; empty where the run's model plays all."""
    return {
        role: f"{RULES} (no language model)" if address == RULES else address
        for role, address in roles
    }


class ByRole:
    """Several models behind one target: each query goes to its own.

    Args:
        usual: The run's model; None where every role has one of its own.
        others: The other models, by address.
    """

    def __init__(self, usual: Target | None, others: Mapping[str, Target]) -> None:
        self._usual, self._others = usual, others

    @property
    def name(self) -> str:
        """The run's model: queries to another carry its address, and so do their keys."""
        return self._usual.name if self._usual else ""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of the run's model."""
        return self._usual.capabilities if self._usual else frozenset()

    async def ask(self, query: Query) -> Answer:
        """Ask the model that the query names, else the run's.

        Raises:
            InputError: A role has no model.
        """
        address = query.model if isinstance(query, RoleQuery) else None
        target = self._usual if address is None else self._others[address]
        if target is None:
            raise InputError("A role has no model.", "Name one for all roles with --model.")
        plain = query
        if address is not None:
            plain = Query(
                query.prompt, query.max_tokens, query.temperature, query.top_logprobs, query.seed
            )
        return await target.ask(plain)

    async def close(self) -> None:
        """Close every model."""
        for target in (self._usual, *self._others.values()):
            if target is not None:
                await target.close()


def others_of(roles: Sequence[tuple[str, str]]) -> list[str]:
    """Return the addresses of the models that are to be opened beside the run's."""
    return sorted({address for _, address in roles if address != RULES})


async def open_chat(
    model: str | None, roles: Roles = (), options: TransportOptions | None = None
) -> Target:
    """Open the chat model of a run, and those of single roles beside it.

    Args:
        model: Its address; None for none.
        roles: Addresses by role.
        options: How models are reached.

    Returns:
        One target for all of them.

    Raises:
        InputError: An address cannot be used, or there is none.
        TargetError: A model does not answer.
    """
    from ragwitness.synthesis.roles import ByRole, others_of

    usual = None if model is None else await open_model(model, options)
    others = {address: await open_model(address, options) for address in others_of(roles)}
    if usual is None and not others:
        raise InputError("There is no chat model.", "Name one with --model.")
    return usual if usual is not None and not others else ByRole(usual, others)
