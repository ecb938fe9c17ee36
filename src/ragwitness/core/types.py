"""Values that travel from a document to a verdict. All frozen; none does I/O.

The way a document travels::

    Document -> audit.probe -> Query -> target.ask -> Answer -> Score -> calibration -> Verdict
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from ragwitness.core.bet import Bet

ANSWER_SECONDS = 120.0
"""Seconds to wait for an answer, whichever verb asks: an agent may take two minutes."""


class Capability(enum.StrEnum):
    """An ability of a target; an audit declares those that it requires."""

    TEXT = "text"
    """Answers with text."""
    TOP_LOGPROBS = "top_logprobs"
    """Returns log-probabilities of the generated tokens and their alternatives."""
    PROMPT_LOGPROBS = "prompt_logprobs"
    """Returns log-probabilities of the tokens of the prompt (``echo``)."""
    CONTEXTS = "contexts"
    """Returns the retrieved passages."""


class Role(enum.StrEnum):
    """Speaker of a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text whose use is in question.

    Attributes:
        id: Unique within its collection.
        text: The text, as the target's database may hold it.
        member: Whether it is in the database, where the truth is known (evaluation only;
            no audit reads it).
        group: Author, template or source that it shares with others; documents of one group have
            one vote in calibration. None where each counts by itself.
    """

    stored_name: ClassVar[str] = "Document"

    id: str
    text: str
    member: bool | None = None
    group: str | None = field(default=None, repr=False)  # decides no answer, so names no run folder


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file, or a row of one, that was given and could not be used.

    Attributes:
        file: Its name as it was given, e.g. ``letters/novel.docx``.
        why: The reason, in one line.
        line: Where the row or paragraph begins; 0 where it is the whole file.
    """

    file: str
    why: str
    line: int = 0

    @property
    def name(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file


Reading: TypeAlias = tuple[LeftOut | str, ...]
"""The outcome of reading documents: entries that were left out, and remarks on the rest."""


def left_out_of(reading: Reading) -> tuple[LeftOut, ...]:
    """Return the files and rows that could not be used."""
    return tuple(entry for entry in reading if isinstance(entry, LeftOut))


def notes_of(reading: Reading) -> tuple[str, ...]:
    """Return the sentences on files that were read."""
    return tuple(entry for entry in reading if isinstance(entry, str))


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token at one position with its alternatives.

    Attributes:
        token: The token's text, leading space included.
        logprob: Natural logarithm of its probability.
        top: The most probable tokens at this position with their log-probabilities,
            most probable first; may or may not hold ``token`` itself.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a target.

    Attributes:
        prompt: The user's text; the target retrieves with it and answers it.
        max_tokens: Upper limit of generated tokens.
        temperature: 0 is greedy.
        top_logprobs: Alternatives wanted per generated token; 0 asks for no
            log-probabilities at all.
        seed: Sampling seed, where ``temperature > 0``.
    """

    prompt: str
    max_tokens: int = 256
    temperature: float = 0.0
    top_logprobs: int = 0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to one :class:`Query`.

    Attributes:
        text: The generated text.
        tokens: Generated tokens with log-probabilities; None where the target gave none.
        finish_reason: ``"stop"``, ``"length"`` or whatever the target says.
        prompt_tokens: Tokens read, as counted by the target; None where unknown.
        completion_tokens: Tokens generated; None where unknown.
        contexts: Retrieved passages, only from targets with ``Capability.CONTEXTS``.
        error: Why there is no answer, in one line; None for a real answer.
        channels: Name and text of everything else that the reply shows: thoughts, tools, sources,
            other fields.
    """

    text: str
    tokens: tuple[TokenLogprob, ...] | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    contexts: tuple[str, ...] | None = None
    error: str | None = None
    channels: tuple[tuple[str, str], ...] = ()


SILENT: dict[str | None, str] = {
    "length": "its tokens were spent before it said anything, as a hidden thought does",
    "tool_calls": "it called a tool instead of answering",
    "content_filter": "a content filter withheld the answer",
}
"""Why an answer has no text, by the reason for which it ended."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number known to lie in ``[low, high]``; a point where both are equal."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """One word that the score rests on.

    Attributes:
        word: The true word of the document.
        before: The few words that precede it.
        probability: The target's value; an interval where its list of alternatives ends before
        this word.
        baseline: Probability under the proxy model that never saw the target's database; NaN
            where it was not asked, as the score does not need it.
    """

    word: str
    before: str
    probability: Interval
    baseline: float


@dataclass(frozen=True, slots=True)
class Score:
    """Evidence of membership or leakage: higher means more.

    Attributes:
        value: None where the document cannot be scored.
        features: Inputs of a trained classifier; empty where there is none.
        evidence: The words behind the value, most telling first.
        reason: Why the document cannot be scored; None where it can.
        details: Method-specific numbers for the report.
        bets: Bets on words that were never sent, in the order of the answers.
    """

    value: float | None
    features: tuple[float, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reason: str | None = None
    details: Mapping[str, float] = field(default_factory=dict)
    bets: tuple[Bet, ...] = ()


class Decision(enum.StrEnum):
    """A verdict's word."""

    IN = "in"
    OUT = "out"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one document.

    Attributes:
        document: The document's id.
        decision: In, out or inconclusive.
        p_value: Probability of a score at least this high were the document outside
            (conformal, before correction); None where unscorable.
        score: Evidence of membership; None where unscorable.
        queries: Queries spent on the document.
        q_value: ``p_value`` adjusted for the number of documents asked about.
        p_out: Probability of a score at most this low were the document inside.
        classifier: Membership probability by the audit classifier.
        evidence: Words that decided, most telling first.
        reason: Why it is unscorable or inconclusive, in one line.
        member: The truth, where known.
        windows: Windows that were asked about; 0 where the whole document was, or as much of it as
            the method reads.
        share: Share of the document's characters in these windows.
        e_value: Wealth of bets on words that were never sent (``membership.e_values``); None where
            no reference model was asked.
        e_level: The least level at which closed e-BH calls the document in.
        by: What the verdict rests on: ``"ranks"``, ``"odds"``, both with ``" and "``, or nothing.
    """

    document: str
    decision: Decision
    p_value: float | None
    score: float | None
    queries: int
    q_value: float | None = None
    p_out: float | None = None
    classifier: float | None = None
    evidence: tuple[Evidence, ...] = ()
    reason: str | None = None
    member: bool | None = None
    windows: int = 0
    share: float = 1.0
    e_value: float | None = None
    e_level: float | None = None
    by: str | None = None


Probe: TypeAlias = Generator[list[Query], list[Answer], Score]
"""Batches of queries out, their answers in (same order), the score as return value."""


@runtime_checkable
class Target(Protocol):
    """The system under audit."""

    @property
    def name(self) -> str:
        """Stable identity: the same name means the same system (it keys stored answers)."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The claims of the target; ``doctor`` probes them."""

    async def ask(self, query: Query) -> Answer:
        """Send one query.

        Raises:
            TargetUnreachableError: No usable connection after all retries.
            TargetResponseError: The reply does not follow the protocol.
        """

    async def close(self) -> None:
        """Release connections."""


@runtime_checkable
class Audit(Protocol):
    """A membership or leakage audit without I/O."""

    @property
    def name(self) -> str:
        """Registered name, e.g. ``"s-rag"``."""

    @property
    def requires(self) -> frozenset[Capability]:
        """The capabilities that the target must have."""

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document."""


READING = "+reading.6"
"""Version of the rules by which answers are read, as keys of scores hold it: scores of different
rules do not mix."""


class Shown:
    """A value that a notebook shows as HTML.

    Attributes:
        renderer: Makes the HTML. It is set by :mod:`ragwitness`; without it a value is shown as
        text.
    """

    __slots__ = ()
    renderer: ClassVar[Callable[[object], str] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Shown.renderer is None else Shown.renderer(self)
