"""Runon (ours): does the target go on past ten words of the document with words never sent to it?

A chat model that is asked which of two runs of words is right says one of them again, and where a
retrieved passage holds the run it *runs on* with the words that follow there. The question ends at
the run, so nothing but a passage, or a model that knows the text by heart, has these words. Which
of the two runs is chosen is not read: models guess it. See ``docs/design/runon.md``.
"""

from __future__ import annotations

import functools
import hashlib
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least
from ragwitness.core.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
)
from ragwitness.membership.methods.response_parsing.probabilities import (
    UNREAD,
    beyond,
    next_probability,
)
from ragwitness.membership.methods.response_parsing.replies import (
    AnswerOutcome,
    read_answer,
    with_room,
)
from ragwitness.membership.windows import Elsewhere
from ragwitness.models.base import LanguageModel
from ragwitness.text.replies import plain_word
from ragwitness.text.sample import load_sample
from ragwitness.text.words import STOP_WORDS, Word, core, split_words

# Parameters.

QUESTION = "Which is right, \u201c\u2026{altered} \u2026\u201d or \u201c\u2026{true} \u2026\u201d?"
SENTENCE = (
    'Which of these stands in the text: "{altered} \u2026" or "{true} \u2026"?'
    " Give the whole sentence."
)
"""The two questions, the true run last: larger models run on after the first, the smallest after
the second. Other wordings and orders were tried (docs/design/runon.md)."""


@dataclass(frozen=True, slots=True)
class RunonConfig:
    """How a document is asked about.

    Attributes:
        questions: Most questions about a document. Where it has fewer places than that, each is
            asked about in both wordings.
        lead: Words of a run before the altered one.
        tail: Words of a run behind it; an answer has said the run again where it says these.
        following: Words behind the run that are looked for in the answer.
        enough: Evidence, in nats, from which on no further question is asked. The score still says
            by how much it was passed: a guess passes it by a little, a passage by far.
        max_tokens: Room for an answer: a phrase, the run, and the words behind it.
        top_logprobs: Alternatives asked for per token; 0 of a target that gives none.
        question: Wording of every other question; must hold ``{altered}`` and ``{true}``.
        sentence: Wording of the questions between; the same.
    """

    stored_name: ClassVar[str] = "RunonConfig"
    logprobs_optional: ClassVar[bool] = True
    asks: ClassVar[str] = "questions"
    stops_at: ClassVar[str] = "enough"

    questions: int = 6
    lead: int = 6
    tail: int = 3
    following: int = 4
    enough: float = 8.0
    max_tokens: int = 64
    top_logprobs: int = 20
    question: str = QUESTION
    sentence: str = SENTENCE

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        at_least(self, 1, "questions", "lead", "following", "max_tokens")
        at_least(self, 2, "tail")  # one word stands everywhere
        at_least(self, 0, "top_logprobs")
        if not self.enough > 0:
            raise InputError(f"enough must be above 0 nats, not {self.enough:g}.")
        for wording in (self.question, self.sentence):
            if "{altered}" not in wording or "{true}" not in wording:
                raise InputError("Both questions must hold {altered} and {true}.")


# What the documents of an audit tell of each other: how rare a word is, and what could stand
# in its place.


class Background:
    """Words of the documents of an audit.

    It is made from the documents in question and the known ones together and treats them alike, so
    whoever is outside stays exchangeable with the known-outside documents.

    Args:
        documents: Near copies as one.

    Attributes:
        digest: Hash of the documents; it enters the identity of the audit.
        shared: Neighbouring words that two documents or more have.
    """

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        documents = list(documents)
        texts = sorted({document.text for document in documents})
        self.shared = Elsewhere.among(documents)
        self.digest = hashlib.sha256("\x00".join(texts).encode()).hexdigest()[:16]
        self._documents = len(texts)
        self._holding: Counter[str] = Counter()
        self._alike: defaultdict[tuple[bool, int | str], set[str]] = defaultdict(set)
        for text in texts:
            stems = [stem for word in split_words(text) if (stem := core(word.text))]
            self._holding.update({plain_word(stem) for stem in stems})
            for stem in stems:
                if (shape := _shape(stem)) is not None:
                    self._alike[shape].add(stem)

    def information(self, key: str) -> float:
        """Return -log of the share of documents that hold a word, in nats; 0 for function words."""
        if key in STOP_WORDS:
            return 0.0
        # A text that is none of them, as a pilot's may be, holds its words all the same.
        return math.log((self._documents + 2) / (max(1, self._holding[key]) + 1))

    def alternatives(self, shape: tuple[bool, int | str] | None) -> list[str]:
        """Return the words of one form, sorted; none without a form."""
        return sorted(self._alike[shape]) if shape is not None else []


def _shape(stem: str) -> tuple[bool, int | str] | None:
    """What a word and one put in its place have in common; None where none could be put there."""
    if stem.isdigit():
        return False, len(stem)
    if not stem.isalpha() or plain_word(stem) in STOP_WORDS:
        return None
    # A single sign of an unspaced script has no ending; short words are grammar.
    if len(stem) == 1:
        return (False, "") if not stem.isascii() else None
    return (stem[0].isupper(), stem[-2:].lower()) if len(stem) > 3 else None


# Places: runs of words of the document behind which rare words follow.

_ENDS = re.compile(r"[.?!:;\u3002\uff01\uff1f]")
_CLOSED = re.compile(r"\W$")
_QUOTES = re.compile('["\u201c\u201d\u00ab\u00bb{}]')
_WEIGHTS = (1.0, 0.5, 0.25)  # of the words behind a run: the first must be said for the next


@dataclass(frozen=True, slots=True)
class Place:
    """A run of words with one of them altered.

    Attributes:
        true: The run as it stands in the document.
        altered: The same with one word exchanged.
        tail: Its last words, behind the altered one, without case and punctuation.
        following: The words behind it, likewise; these are never sent.
        worth: Information of these, in nats each.
        shown: The words behind the run as they stand.
    """

    true: str
    altered: str
    tail: tuple[str, ...]
    following: tuple[str, ...]
    worth: tuple[float, ...]
    shown: str

    def question(self, wording: str) -> str:
        """Return the question about it."""
        # One pass: the document may itself say "{true}".
        parts = {"altered": self.altered, "true": self.true}
        return re.sub(r"\{(altered|true)\}", lambda m: parts[m[1]], wording)


def find_places(text: str, config: RunonConfig, background: Background) -> list[Place]:
    """Choose the runs that a document is asked about: apart from each other, the best first.

    A run ends within a phrase, since a quotation stops at a comma; the words behind it are rare
    and stand nowhere in the question; and no other document of the audit goes on in the same way.

    Args:
        text: The document.
        config: Lengths and number.
        background: Of the audit's documents.
    """
    words = [word for word in split_words(text) if core(word.text)]
    keys = [plain_word(core(word.text)) for word in words]
    length = config.lead + 1 + config.tail
    counts = Counter(keys)
    wording = {plain_word(w.text) for w in split_words(f"{config.question} {config.sentence}")}
    ends = [bool(_ENDS.search(word.text.rpartition(core(word.text))[2])) for word in words]

    @functools.cache  # a text with every word of a form would try them all at every place
    def others(shape: tuple[bool, int | str] | None) -> list[str]:
        return [w for w in background.alternatives(shape) if not counts[plain_word(w)]]

    rated: list[tuple[bool, float, int]] = []
    # 1. Every run behind which enough words follow, by what these tell.
    for start in range(len(words) - length - 1):
        end = start + length
        ahead = keys[end : end + config.following]
        if not _usable(text, words, start, end) or background.shared.has(words, end):
            continue
        worth = _worth(ahead, {*wording, *keys[start:end]}, background)
        value = sum(w * nats for w, nats in zip(_WEIGHTS, worth, strict=False))
        across = any(ends[start : end + 1])
        if value > 0.0:
            rated.append((across, -value, start))
    # 2. The best that do not overlap; runs within one sentence before those across two.
    chosen: list[Place] = []
    taken: set[int] = set()
    for _, _, start in sorted(rated):
        reach = range(start, start + length + config.following)
        if len(chosen) == config.questions:
            break
        if taken.isdisjoint(reach) and (
            place := _place(text, words, keys, counts, start, config, background, wording, others)
        ):
            chosen.append(place)
            taken.update(reach)
    return chosen


def _worth(ahead: Sequence[str], sent: Set[str], background: Background) -> tuple[float, ...]:
    """Information of the words behind a run, in nats; a word that the question holds has none."""
    return tuple(0.0 if key in sent else background.information(key) for key in ahead)


def _usable(text: str, words: Sequence[Word], start: int, end: int) -> bool:
    """Whether a run ends within a phrase, holds no quotation marks and is one paragraph."""
    run = text[words[start].start : words[end].end]
    return not (_CLOSED.search(words[end - 1].text) or _QUOTES.search(run) or "\n\n" in run)


def _place(
    text: str,
    words: Sequence[Word],
    keys: Sequence[str],
    counts: Counter[str],
    start: int,
    config: RunonConfig,
    background: Background,
    wording: Set[str],
    others: Callable[[tuple[bool, int | str] | None], list[str]],
) -> Place | None:
    """Make the altered run; None where no word of it can be exchanged."""
    end = start + config.lead + 1 + config.tail
    true = _plain(text[words[start].start : words[end - 1].end])
    draw = random.Random(true)
    # The word behind the lead, or one near it that stands once in the document.
    middle = start + config.lead
    for at in sorted(range(start + 1, end - config.tail), key=lambda i: (middle - i, i)):
        stem = core(words[at].text)
        if counts[keys[at]] > 1 or not (found := others(_shape(stem))):
            continue
        # As rare as the true word, as far as there are such.
        rarity = background.information(keys[at])
        near = sorted(found, key=lambda w: abs(background.information(plain_word(w)) - rarity))
        other = draw.choice(near[:10])
        before = text[words[start].start : words[at].start]
        changed = words[at].text.replace(stem, other, 1)
        altered = before + changed + text[words[at].end : words[end - 1].end]
        ahead = tuple(keys[end : end + config.following])
        sent = {*wording, *keys[start:end], plain_word(other)}
        last = words[min(end + config.following, len(words)) - 1]
        return Place(
            true,
            _plain(altered),
            tuple(keys[end - config.tail : end]),
            ahead,
            _worth(ahead, sent, background),
            _plain(text[words[end].start : last.end]),
        )
    return None


def _plain(text: str) -> str:
    return " ".join(text.split())


# What one answer says behind the run.


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """A place as the target sees it.

    Attributes:
        place: The place.
        outcome: Whether it was answered, declined, or failed.
        again: Whether the answer says the run's last words again.
        words: Words behind the run that it went on with.
        probability: Of the first of them where the run had been said; unknown without
            log-probabilities.
        reason: Why it was declined or failed.
    """

    place: Place
    outcome: AnswerOutcome
    again: bool = False
    words: int = 0
    probability: Interval = UNREAD
    reason: str | None = None

    @property
    def evidence(self) -> float:
        """Information of what was said behind the run, in nats.

        Where nothing was, that of the first word times its probability there: a quotation that is
        closed at the run's end had the word as its second choice.
        """
        if self.words:
            return sum(self.place.worth[: self.words])
        return self.probability.low * self.place.worth[0]


def read_place(place: Place, answer: Answer) -> PlaceReading:
    """Read one answer."""
    read = read_answer(answer)
    failed = read.outcome is AnswerOutcome.FAILED
    found = None if failed else beyond(read.text, place.tail, place.following)
    # What goes on with the document declines nothing, though it says "I cannot find any reason".
    if found is None or (read.reason and not found):
        return PlaceReading(place, read.outcome, reason=read.reason)
    probability = next_probability(read.tokens, place.tail, place.following[0])
    return PlaceReading(place, AnswerOutcome.ANSWERED, True, found, probability)


# The audit of one document.

_SHOWN = 4  # words before those that decided


class Runon:
    """Does the target run on past the document's words with those that follow?

    Args:
        proxy: Not asked; every audit is given one.
        config: Places, room and wording.
        elsewhere: Words of the audit's documents.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.runon.Runon"
    name = "runon"
    requires = frozenset({Capability.TEXT})

    def __init__(
        self,
        proxy: LanguageModel,
        config: RunonConfig | None = None,
        elsewhere: Background | None = None,
    ) -> None:
        self.proxy = proxy
        self.config = config or RunonConfig()
        self.elsewhere = elsewhere

    def among(self, documents: Iterable[Document]) -> Runon:
        """Return the audit for documents of one set, which say how rare a word is."""
        return Runon(self.proxy, self.config, Background(documents))

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        config = self.config
        length = config.lead + 1 + config.tail
        return {
            "questions": f"at most {config.questions}, each with {length} words and one altered",
            "read": f"up to {config.following} words said behind them",
            "stops at": f"{config.enough:g} nats",
        }

    def _asked(self, document: Document) -> list[tuple[Place, Query]]:
        """Return every question that may be asked about a document, in order."""
        config = self.config
        # A document alone still tells which of its words are function words.
        background = self.elsewhere or Background([document, *load_sample()])
        places = find_places(document.text, config, background)
        # Once through all places with the wordings in turn, then again with the other one.
        wordings = (config.question, config.sentence)
        turns = [
            (place, place.question(wordings[(number + turn) % 2]))
            for turn in range(2)
            for number, place in enumerate(places)
        ]
        return [
            (place, Query(text, config.max_tokens, top_logprobs=config.top_logprobs))
            for place, text in turns[: config.questions]
        ]

    def questions(self, document: Document) -> list[Query]:
        """Return every question that may be asked; none depends on an answer."""
        return [query for _, query in self._asked(document)]

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        asked = self._asked(document)
        if not asked:
            length = self.config.lead + 1 + self.config.tail
            return Score(
                None,
                reason=f"no {length} words in a row that it shares with no other document, with"
                " one that can be exchanged and a rare word behind them",
                details={"places": 0.0},
            )
        # One question after the other, until the evidence is strong.
        readings: list[PlaceReading] = []
        for place, query in asked:
            (answer,) = yield from with_room([query], [""], [0])
            readings.append(read_place(place, answer))
            if _total(readings) >= self.config.enough:
                break
        return self._score(readings, len({place.true for place, _ in asked}))

    def _score(self, readings: Sequence[PlaceReading], places: int) -> Score:
        read = [one for one in readings if one.outcome is not AnswerOutcome.FAILED]
        declined = sum(one.outcome is AnswerOutcome.DECLINED for one in read)
        again = sum(one.again for one in read)
        ran_on = sum(one.words > 0 for one in read)
        details = {
            "places": float(places),
            "asked": float(len(readings)),
            "answered": float(len(read) - declined),
            "declined": float(declined),
            "said again": float(again),
            "ran on": float(ran_on),
        }
        # Who lacks the words declines, or talks about something else: both are answers. Whether a
        # target that holds them says them again is for the pilot to find out.
        if 2 * len(read) < len(readings):
            return Score(None, reason=readings[-1].reason or "no answer", details=details)
        return Score(_total(read), evidence=tuple(_evidence(read)), details=details)


def _total(readings: Sequence[PlaceReading]) -> float:
    """Evidence of all places, in nats; asked about twice, a place counts as where it told more."""
    best: dict[str, float] = {}
    for one in readings:
        best[one.place.true] = max(one.evidence, best.get(one.place.true, 0.0))
    return sum(best.values())


def _evidence(readings: Iterable[PlaceReading]) -> Iterator[Evidence]:
    """The words that were said behind a run, then those that might have been."""
    for one in sorted(readings, key=lambda one: -one.evidence):
        if one.again:
            before = " ".join(one.place.true.split()[-_SHOWN:])
            said = " ".join(one.place.shown.split()[: max(1, one.words)])
            sure = Interval(1.0, 1.0) if one.words else one.probability
            yield Evidence(said, before, sure, math.nan)
