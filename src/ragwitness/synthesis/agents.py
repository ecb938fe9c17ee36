"""Questions to a language model, asked again if an answer is unusable; its roles and domains."""

from __future__ import annotations

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Query, Target
from ragwitness.rag.lab import open_model
from ragwitness.synthesis.generator import Fate, Steps, StoppedError
from ragwitness.synthesis.response_parsing import PROTOCOL, UnreadError
from ragwitness.targets.transport import TransportOptions
from ragwitness.text.replies import after_thought, declines
from ragwitness.text.words import same_language, unquoted

_ABREAST = 32  # generators that are followed at the same time

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked.

    Attributes:
        max_tokens: Limit of an answer; the published code's 256 truncates many texts.
        temperature: Sampling temperature; 0.6 as published.
        attempts: How often a question is asked while its answers cannot be used.
        seed: Seed of the first attempt; each further attempt adds one and is a new question.
        published: Accept truncated answers, other languages and other forms, as the published code
            does. For evaluation only.
        roles: The models of the roles that the run's model does not play.

    Raises:
        InputError: A number is out of range.
    """

    stored_name: ClassVar[str] = "Asking"
    later: ClassVar[tuple[str, ...]] = ("roles",)

    max_tokens: int = 1024
    temperature: float = 0.6
    attempts: int = 2
    seed: int = 0
    published: bool = False
    roles: Roles = ()

    def __post_init__(self) -> None:
        """Reject numbers out of range."""
        if self.max_tokens < 1 or self.attempts < 1 or self.temperature < 0:
            raise InputError(
                "max_tokens and attempts must be at least 1, temperature at least 0, not"
                f" {self.max_tokens}, {self.attempts} and {self.temperature:g}.",
                "Leave out --answer-tokens, --attempts or --temperature for the default.",
            )

    def needs_model(self, *roles: str) -> bool:
        """Whether one of these roles is played by the run's model."""
        return not set(roles) <= {role for role, _ in self.roles}

    def query(self, prompt: str, role: str, seed: int) -> Query:
        """Return a question to the model of a role."""
        address = dict(self.roles).get(role)
        if address is None:
            return Query(prompt, self.max_tokens, self.temperature, seed=seed)
        return RoleQuery(prompt, self.max_tokens, self.temperature, seed=seed, model=address)


def ask(
    prompt: str,
    read: Callable[[str], T | None],
    how: Asking,
    *,
    role: str,
    like: str | None = None,
    turn: int = 0,
) -> Steps[T]:
    """Ask until an answer can be used.

    Args:
        prompt: The question.
        read: Returns the content of an answer. Where the answer does not keep to its form, it
            returns None or raises ``UnreadError`` with the missing part.
        how: Settings.
        role: The role that is asked.
        like: A text whose language the answer must be in; None for any.
        turn: Number of the round, so that a repeated question is asked anew.

    Raises:
        StoppedError: No attempt gave a usable answer; the reason begins with the role.
    """
    fault = StoppedError(Fate.MALFORMED, "")
    for attempt in range(how.attempts):
        # Another seed makes it another question, for response store and provider alike.
        seed = how.seed + turn * how.attempts + attempt
        (answer,) = yield [how.query(prompt, role, seed)]
        answer = replace(answer, text=after_thought(answer.text)[0] or "")
        if (unusable := _fault(answer, prompt, like, how.published)) is not None:
            fault = unusable
            if fault.fate is Fate.FAILED:
                break
            continue
        # The answer is complete: its form decides.
        reason = "the model did not keep to the form"
        try:
            if (content := read(answer.text)) is not None:
                return content
        except UnreadError as error:
            reason = f"{reason}: {error}"
        fault = StoppedError(Fate.MALFORMED, reason)
        if declines(answer.text):
            fault = StoppedError(Fate.REFUSED, "the model refused")
    raise StoppedError(fault.fate, f"{role}: {fault.reason}")


def together(parts: Iterable[Steps[T]]) -> Steps[list[T | StoppedError]]:
    """Follow several generators side by side; an error replaces the result of its generator."""
    generators, results = list(parts), list[T | StoppedError]()
    for first in range(0, len(generators), _ABREAST):
        results += yield from _abreast(generators[first : first + _ABREAST])
    return results


def _abreast(generators: list[Steps[T]]) -> Steps[list[T | StoppedError]]:
    results: dict[int, T | StoppedError] = {}
    answers: dict[int, list[Answer] | None] = dict.fromkeys(range(len(generators)))
    while answers:
        queries: dict[int, list[Query]] = {}
        # One step of every unfinished generator, then one batch of all their queries.
        for n, replies in answers.items():
            try:
                queries[n] = generators[n].send(replies)  # type: ignore[arg-type]  # None starts it
            except StopIteration as stop:
                results[n] = stop.value
            except StoppedError as stop:
                results[n] = stop
        batch = [query for step in queries.values() for query in step]
        replies_in_order = iter((yield batch) if batch else ())
        answers = {n: [next(replies_in_order) for _ in step] for n, step in queries.items()}
    return [results[n] for n in range(len(generators))]


def shown(text: str) -> str:
    """Return a text for a prompt, without protocol words: they would act as instructions."""
    return f"<<<\n{PROTOCOL.sub('[…]', text)}\n>>>"


def _fault(answer: Answer, prompt: str, like: str | None, published: bool) -> StoppedError | None:
    if answer.error is not None:  # some servers repeat the prompt, and in it the record
        return StoppedError(Fate.FAILED, unquoted(answer.error, prompt))
    if answer.finish_reason == "content_filter":
        return StoppedError(Fate.REFUSED, "the model's provider filtered the answer")
    if answer.finish_reason == "length" and not published:
        return StoppedError(Fate.TRUNCATED, "the answer was cut off at the token limit")
    if not answer.text.strip():
        return StoppedError(Fate.MALFORMED, "the model answered with nothing")
    if not published and prompt.strip() in answer.text:
        return StoppedError(Fate.MALFORMED, "the model repeated what it was asked")
    if like is not None and not published and not same_language(like, answer.text):
        return StoppedError(Fate.LANGUAGE, "the model answered in another language")
    return None


# The kind of the records: attributes, form of the output, further checks (A.10).


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of records.

    Attributes:
        name: Name shown to people.
        records: Kind of a record, as in "Here is {records}".
        parts: Speakers or sections that have attributes of their own; empty for the whole record.
        attributes: Attributes of each part, in the order of ``parts``. If empty, the model
            identifies them from a few records.
        count: Number of attributes to identify in each part.
        form: Required form of the new text.
        labels: Words that must open a line of the new text, once each and in this order.
        checks: Checks of the privacy agent in addition to the six of the paper.
    """

    stored_name: ClassVar[str] = "Domain"

    name: str
    records: str = "a record"
    parts: tuple[str, ...] = ()
    attributes: tuple[tuple[str, ...], ...] = ()
    count: int = 5
    form: str = "one text of the same kind, in the same language"
    labels: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check attributes and their number.

        Raises:
            InputError: Attributes do not fit the parts, or there are none to identify.
        """
        if self.attributes and len(self.attributes) != max(1, len(self.parts)):
            raise InputError(
                f"Domain {self.name}: {len(self.attributes)} lists of attributes for"
                f" {max(1, len(self.parts))} parts.",
                "Give one list per part, or none.",
            )
        if not 1 <= self.count <= 20:
            raise InputError(f"Domain {self.name}: count must be 1 to 20, not {self.count}.")


# The attributes are those of Tables 11 and 12, in our words.
DOMAINS = {
    "auto": Domain("auto"),
    "medical": Domain(
        "medical",
        records="a conversation of a patient with a doctor",
        parts=("Patient", "Doctor"),
        attributes=(
            ("symptoms", "medical history", "worries", "recent events", "what is asked"),
            ("assessment", "reassurance", "treatment", "next steps", "advice for prevention"),
        ),
        form=(
            "one question of a patient and one reply of a doctor, as they might be written for"
            " real, and no further turn; begin the question with 'Patient:' and the reply with"
            " 'Doctor:'"
        ),
        labels=("Patient:", "Doctor:"),
        checks=("Ages, dates, places and family circumstances that the advice does not need.",),
    ),
    "wiki": Domain(
        "wiki",
        records="a passage of an encyclopedia",
        attributes=(("topic", "what is told of the topic", "facts, figures and events"),),
        count=3,
        form="one passage as it might stand in an encyclopedia",
        checks=("Addresses, telephone numbers and links, whoever they belong to.",),
    ),
}
"""Domains that come with the package; ``auto`` identifies attributes from the corpus."""


def load_domain(name: str) -> Domain:
    """Return a domain.

    Args:
        name: One of :data:`DOMAINS`, or a TOML file with its fields.

    Raises:
        InputError: Neither, or the file cannot be used.
    """
    if name in DOMAINS:
        return DOMAINS[name]
    path = Path(name)
    if path.suffix != ".toml":
        raise InputError(
            f"There is no domain {name!r}.", f"Choose {', '.join(DOMAINS)}, or a .toml file."
        )
    try:
        fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}.") from error
    except (ValueError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{name} is not TOML: {error}.") from error
    names = Domain.__dataclass_fields__
    if unknown := sorted(set(fields) - set(names)):
        raise InputError(
            f"{name}: there is no field {unknown[0]!r}.", f"There are: {', '.join(names)}."
        )
    try:
        return TypeAdapter(Domain).validate_python({"name": path.stem, **fields})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{name}: {where}: {first['msg']}.", "See docs/synthesize.md.") from None


# Parameters of every method that asks a model.


@dataclass(frozen=True, slots=True)
class MakingConfig:
    """How a text is made.

    Attributes:
        domain: The kind of the records.
        asking: How the model is asked.
        rounds: Most versions of a text. SAGE judges each and rewrites all but the last; with 0, it
            is stage 1 alone, and our conditions decide. Other methods make a new version where
            one breaks a condition.
        shots: Number of records from which the attributes are identified, as published 5.
        longest: Most characters of a record.

    Raises:
        InputError: A number is out of range.
    """

    stored_name: ClassVar[str] = "MakingConfig"

    domain: Domain = DOMAINS["auto"]
    asking: Asking = field(default_factory=Asking)
    rounds: int = 3
    shots: int = 5
    longest: int = 20_000

    def __post_init__(self) -> None:
        """Reject a negative number of rounds."""
        if self.rounds < 0:
            raise InputError(
                f"rounds must be at least 0, not {self.rounds}.", "The default is --rounds 3."
            )

    def describe(self) -> dict[str, str]:
        """Return every setting as label and value."""
        how = self.asking
        return {
            "domain": self.domain.name,
            "rounds": str(self.rounds),
            "answers": f"{how.max_tokens} tokens, temperature {how.temperature:g},"
            f" {how.attempts} attempts, seed {how.seed}",
            "longest record": f"{self.longest:,} characters",
            **dict(how.roles),
        }


class RoleMethod(ABC):
    """A method that asks models in roles.

    Args:
        config: Settings.
    """

    asks = True

    def __init__(self, config: MakingConfig | None = None) -> None:
        self.config = config or MakingConfig()

    @property
    @abstractmethod
    def name(self) -> str:
        """Registered name."""

    @property
    @abstractmethod
    def roles(self) -> tuple[str, ...]:
        """The roles that are asked."""

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {"method": self.name, **self.config.describe()}


# The roles of SAGE: the paper has a model for each stage (§3.1, §4.1). A role is played by the
# model of the run, or by another.

EXTRACTOR, GENERATOR, JUDGE, REWRITER = "extractor", "generator", "judge", "rewriter"
ROLES = (EXTRACTOR, GENERATOR, JUDGE, REWRITER)
"""Names and extracts attributes; writes the text; judges its privacy; rewrites it."""

Roles = tuple[tuple[str, str], ...]
"""Role and address of each model other than the run's, sorted by role."""


@dataclass(frozen=True, slots=True)
class RoleQuery(Query):
    """A question to a model other than the run's.

    Attributes:
        model: Address of that model.
    """

    model: str = ""


def roles_of(model: str | None, addresses: Mapping[str, str | None]) -> Roles:
    """Return the roles that are played by models other than the run's.

    Args:
        model: Address of the run's model.
        addresses: Addresses by role; None leaves a role to the run's model.

    Raises:
        InputError: There is no such role.
    """
    if unknown := sorted(set(addresses) - set(ROLES)):
        raise InputError(f"There is no role {unknown[0]!r}.", f"There are {', '.join(ROLES)}.")
    pairs = ((role, addresses.get(role)) for role in ROLES)
    return tuple((role, address) for role, address in pairs if address and address != model)


class ByRole:
    """Several models behind one target: each query goes to its own.

    Args:
        usual: The run's model; None where every role has another.
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
        if isinstance(query, RoleQuery):
            plain = Query(query.prompt, query.max_tokens, query.temperature, seed=query.seed)
            return await self._others[query.model].ask(plain)
        if self._usual is None:
            raise InputError("A role has no model.", "Name one for all roles with --model.")
        return await self._usual.ask(query)

    async def close(self) -> None:
        """Close every model."""
        for target in (self._usual, *self._others.values()):
            if target is not None:
                await target.close()


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
    usual = None if model is None else await open_model(model, options)
    addresses = sorted({address for _, address in roles})
    others = {address: await open_model(address, options) for address in addresses}
    if usual is None and not others:
        raise InputError("There is no chat model.", "Name one with --model.")
    return usual if usual is not None and not others else ByRole(usual, others)
