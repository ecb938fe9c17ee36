"""Runon (ours): does the target continue ten words of the document with words never sent to it?

A chat model that is asked which of two runs of words is right repeats one of them. Where a
retrieved passage holds the run, it *runs on* with the next words. The question ends at the run, so
only a passage, or a model that knows the text by heart, has these words. The choice between the
two runs is not read: models guess it. See ``docs/design/runon.md``.
"""

from __future__ import annotations

import functools
import hashlib
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ragwitness.core.bet import Bet
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
from ragwitness.membership.e_values import bets_on, next_words, with_gap
from ragwitness.membership.response_parsing.probabilities import (
    UNREAD,
    beyond,
    next_probability,
)
from ragwitness.membership.response_parsing.replies import (
    AnswerOutcome,
    read_answer,
    with_room,
)
from ragwitness.membership.windows import Elsewhere
from ragwitness.models.base import LanguageModel
from ragwitness.text.replies import plain_word, shape_of
from ragwitness.text.sample import load_sample
from ragwitness.text.words import (
    SENTENCE_END,
    STOP_WORDS,
    Word,
    as_read,
    core,
    is_unspaced,
    script_pattern,
    split_words,
    spoken_words,
)

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
        tail: Words of a run behind it; an answer that says these has repeated the run.
        following: Words behind the run that are looked for in the answer.
        enough: Evidence, in nats, at which the audit of a document stops. The score still shows
            by how much it was passed: a guess passes it by a little, a passage by far.
        max_tokens: Room for an answer: a phrase, the run, and the words behind it.
        top_logprobs: Alternatives asked for per token; 0 of a target that gives none.
        question: Wording of every other question; must hold ``{altered}`` and ``{true}``.
        sentence: Wording of the questions between; the same.
        natural: Further wordings, one of which every third question has; none by default.
        look: Questions after which a document is asked no more if nothing was said behind a run;
            0 asks them all.
        further: More questions where words were said behind a run. E-values gain by them: their
            bets may go on as long as one likes.
    """

    stored_name: ClassVar[str] = "RunonConfig"
    later: ClassVar[tuple[str, ...]] = ("natural", "look", "further")
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
    natural: tuple[str, ...] = ()
    look: int = 0
    further: int = 0

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        at_least(self, 1, "questions", "lead", "following", "max_tokens")
        at_least(self, 2, "tail")  # one word stands everywhere
        at_least(self, 0, "top_logprobs", "look", "further")
        if not self.enough > 0:
            raise InputError(f"enough must be above 0 nats, not {self.enough:g}.")
        for wording in (self.question, self.sentence, *self.natural):
            if "{altered}" not in wording or "{true}" not in wording:
                raise InputError("All questions must hold {altered} and {true}.")


# The words of an audit's documents: how rare each is, and which could replace it.


_Shape: TypeAlias = tuple[bool, int | str] | None


class Background:
    """Words of the documents of an audit.

    It is made from the documents in question and the known ones together and treats them alike.
    So a document outside stays exchangeable with the known-outside documents.

    Args:
        documents: Near copies as one.

    Attributes:
        digest: Hash of the documents; it enters the identity of the audit.
        shared: Neighbouring words that two documents or more have.
    """

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        documents = list(documents)
        texts = sorted({document.text for document in documents})
        self.shared = Elsewhere.among(documents, split=spoken_words)
        self.digest = hashlib.sha256("\x00".join(texts).encode()).hexdigest()[:16]
        self._documents = len(texts)
        self._holding: Counter[str] = Counter()
        self._alike: defaultdict[_Shape, set[str]] = defaultdict(set)
        for text in texts:
            rows = _stems(text)
            self._holding.update({plain for _, plain, _ in rows})
            for stem, _, shape in rows:
                self._alike[shape].add(stem)

    def information(self, key: str) -> float:
        """Return -log of the share of documents that hold a word, in nats; 0 for function words."""
        if key in STOP_WORDS:
            return 0.0
        # The text may be none of these documents, as in a pilot: it holds its words all the same.
        return math.log((self._documents + 2) / (max(1, self._holding[key]) + 1))

    def alternatives(self, shape: _Shape) -> list[str]:
        """Return the words of one form, sorted; none without a form."""
        return sorted(self._alike[shape]) if shape is not None else []


@functools.lru_cache(4096)  # sets of documents have texts in common, the package's among them
def _stems(text: str) -> list[tuple[str, str, _Shape]]:
    stems = {core(word.text) for word in spoken_words(as_read(text))}
    return [(stem, plain_word(stem), shape_of(stem)) for stem in stems]


# Places: runs of words of the document behind which rare words follow.

_ENDS = script_pattern(rf"[{SENTENCE_END}:;\uff1a\uff1b]")
_QUOTES = re.compile('["\u201c\u201d\u201e\u00ab\u00bb\u300c-\u300f{}]')
_WEIGHTS = (1.0, 0.5, 0.25)  # of the words behind a run: the first must be said for the next


@dataclass(frozen=True, slots=True)
class Place:
    """A run of words with one of them altered.

    Attributes:
        true: The run in the document.
        altered: The same with one word exchanged.
        tail: Its last words, behind the altered one, without case and punctuation.
        following: The words behind it, likewise; these are never sent.
        worth: Information of these, in nats each.
        shown: The words behind the run, unchanged.
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
        runs = {"altered": self.altered, "true": self.true}
        return re.sub(r"\{(altered|true)\}", lambda slot: runs[slot[1]], wording)


def find_places(text: str, config: RunonConfig, background: Background) -> list[Place]:
    """Choose the runs that a document is asked about: apart from each other, the best first.

    A run ends within a phrase, since a quotation stops at a comma. The words behind it are rare
    and not in the question, and no other document of the audit continues in the same way.

    Args:
        text: The document.
        config: Lengths and number.
        background: Of the audit's documents.
    """
    text = as_read(text)
    words = spoken_words(text)
    keys = [plain_word(core(word.text)) for word in words]
    counts = Counter(keys)
    length = config.lead + 1 + config.tail
    templates = " ".join((config.question, config.sentence, *config.natural))
    wording = {plain_word(w.text) for w in split_words(templates)}
    ends = [bool(_ENDS.search(word.text.rpartition(core(word.text))[2])) for word in words]

    @functools.cache  # a text with every word of a form would try them all at every place
    def replacements(shape: _Shape) -> list[str]:
        return [w for w in background.alternatives(shape) if not counts[plain_word(w)]]

    def worth(start: int, *altered: str) -> tuple[float, ...]:
        """Information of the words behind a run, in nats; 0 for words of the question."""
        sent = {*wording, *keys[start : start + length], *altered}
        ahead = keys[start + length : start + length + config.following]
        return tuple(0.0 if key in sent else background.information(key) for key in ahead)

    def place(start: int) -> Place | None:
        """Alter the run; None where no word of it can be exchanged."""
        end, middle = start + length, start + config.lead
        true = _plain(text[words[start].start : words[end - 1].end])
        draw = random.Random(true)
        # The word behind the lead, or one near it that occurs once in the document.
        for n in sorted(range(start + 1, end - config.tail), key=lambda i: (middle - i, i)):
            stem = core(words[n].text)
            if counts[keys[n]] > 1 or not (candidates := replacements(shape_of(stem))):
                continue
            # As rare as the true word, as far as there are such.
            rarity = background.information(keys[n])
            near = sorted(
                candidates, key=lambda w: abs(background.information(plain_word(w)) - rarity)
            )
            replacement = draw.choice(near[:10])
            before = text[words[start].start : words[n].start]
            behind = text[words[n].end : words[end - 1].end]
            altered = before + words[n].text.replace(stem, replacement, 1) + behind
            last = words[min(end + config.following, len(words)) - 1]
            return Place(
                true,
                _plain(altered),
                tuple(keys[end - config.tail : end]),
                tuple(keys[end : end + config.following]),
                worth(start, plain_word(replacement)),
                _plain(text[words[end].start : last.end]),
            )
        return None

    # 1. Every run behind which enough words follow, by their information.
    rated: list[tuple[bool, float, int]] = []
    for start in range(len(words) - length - 1):
        end = start + length
        if not _usable(text, words, start, end) or background.shared.has(words, end):
            continue
        value = sum(w * nats for w, nats in zip(_WEIGHTS, worth(start), strict=False))
        if value > 0.0:
            rated.append((any(ends[start : end + 1]), -value, start))
    # 2. The best that do not overlap; runs within one sentence before those across two.
    chosen: list[Place] = []
    taken: set[int] = set()
    for _, _, start in sorted(rated):
        reach = range(start, start + length + config.following)
        if len(chosen) == config.questions + config.further:
            break
        if taken.isdisjoint(reach) and (run := place(start)):
            chosen.append(run)
            taken.update(reach)
    return chosen


def _usable(text: str, words: Sequence[Word], start: int, end: int) -> bool:
    """Whether a run ends within a phrase, holds no quotation marks and is one paragraph."""
    run = text[words[start].start : words[end].end]
    last, behind = words[end - 1], words[end]
    between = text[last.end : behind.start]
    # A sign between them, or a blank where a script has none within a phrase, ends the phrase.
    within = last.text.endswith(core(last.text)) and not between.strip()
    phrase = within and not (between and is_unspaced(last.text) and is_unspaced(behind.text))
    return phrase and not _QUOTES.search(run) and "\n\n" not in run


def _plain(text: str) -> str:
    return " ".join(text.split())


# One answer: the words behind the run.


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """The answer about one place.

    Attributes:
        place: The place.
        outcome: Whether it was answered, declined, or failed.
        again: Whether the answer repeats the run's last words.
        words: Number of the document's words behind the run in the answer.
        probability: Of the first of them behind the repeated run; unknown without
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
        """Information of the words said behind the run, in nats.

        Without any, that of the first word times its probability there: an answer that closes the
        quotation at the run's end had the word as its second choice.
        """
        if self.words:
            return sum(self.place.worth[: self.words])
        return self.probability.low * self.place.worth[0]


def read_place(place: Place, answer: Answer) -> PlaceReading:
    """Read one answer."""
    reading = read_answer(answer)
    failed = reading.outcome is AnswerOutcome.FAILED
    words = None if failed else beyond(reading.text, place.tail, place.following)
    # An answer that continues the document is no decline, even if it says "I cannot find a reason".
    if words is None or (reading.reason and not words):
        return PlaceReading(place, reading.outcome, reason=reading.reason)
    probability = next_probability(reading.tokens, place.tail, place.following[0])
    return PlaceReading(place, AnswerOutcome.ANSWERED, True, words, probability)


def bets_on_place(place: Place, question: str, answer: Answer, document: str) -> list[Bet]:
    """Return the bets that an answer goes on with the document's words behind a run."""
    text = _plain(document)
    start = text.find(place.true)
    if start < 0:  # a run of a text that was cut elsewhere
        return []
    behind = start + len(place.true)
    ahead = next_words(text[behind:], len(place.following))
    gap = with_gap(text, behind, behind + sum(map(len, ahead)))
    return bets_on(question, read_answer(answer).text, place.tail, ahead, gap)


# The audit of one document.

_SHOWN = 4  # words before the deciding ones


class Runon:
    """Does the target continue the document's words with the next ones?

    Args:
        proxy: Not asked; every audit is given one.
        config: Places, room and wording.
        elsewhere: Words of the audit's documents.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.runon.Runon"
    name = "runon"
    stands_alone: ClassVar[bool] = True
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
        """Return the audit for documents of one set, which define how rare a word is."""
        return Runon(self.proxy, self.config, Background(documents))

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        config = self.config
        length = config.lead + 1 + config.tail
        return {
            "questions": f"at most {config.questions}, each with {length} words and one altered"
            + f"; {config.further} more where words were said behind one" * bool(config.further),
            "read": f"up to {config.following} words said behind them",
            "stops at": f"{config.enough:g} nats",
        }

    def _turns(self, document: Document) -> list[tuple[Place, Query]]:
        """Return every question that may be asked about a document, in order."""
        config = self.config
        # A document alone still tells which of its words are function words.
        background = self.elsewhere or Background([document, *load_sample()])
        runs = find_places(document.text, config, background)
        # Once through all places with the wordings in turn, then again with another one. Which
        # sentence of several is asked, the place decides.
        wordings = [(config.question,), (config.sentence,), *filter(None, (config.natural,))]
        turns = [
            (run, run.question(random.Random(run.true).choice(wordings[number % len(wordings)])))
            for turn in range(len(wordings))
            for number, run in enumerate(runs, turn)
        ]
        return [
            (run, Query(text, config.max_tokens, top_logprobs=config.top_logprobs))
            for run, text in turns[: config.questions + config.further]
        ]

    def questions(self, document: Document) -> list[Query]:
        """Return every question that may be asked; none depends on an answer."""
        return [query for _, query in self._turns(document)]

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        turns = self._turns(document)
        if not turns:
            length = self.config.lead + 1 + self.config.tail
            return Score(
                None,
                reason=f"no {length} words in a row that it shares with no other document, with"
                " one that can be exchanged and a rare word behind them",
                details={"places": 0.0},
            )
        # One question after the other, until the evidence is strong. A place at which the target
        # went on is not bet on again: its next answer would say the same.
        readings: list[PlaceReading] = []
        bets: list[Bet] = []
        won: set[str] = set()
        for place, query in turns:
            if place.true in won and len(readings) >= self.config.questions:
                continue
            (answer,) = yield from with_room([query], [""], [0])
            readings.append(read_place(place, answer))
            if place.true not in won:
                opened = bets_on_place(place, query.prompt, answer, document.text)
                bets += opened
                if any(bet.words for bet in opened):
                    won.add(place.true)
            ends = len(readings) in (self.config.look, self.config.questions)
            silent = ends and not any(r.words for r in readings)
            if silent or _total(readings) >= self.config.enough:
                break
        readable = [r for r in readings if r.outcome is not AnswerOutcome.FAILED]
        declined = sum(r.outcome is AnswerOutcome.DECLINED for r in readable)
        details = {
            "places": float(len({place.true for place, _ in turns})),
            "asked": float(len(readings)),
            "answered": float(len(readable) - declined),
            "declined": float(declined),
            "said again": float(sum(r.again for r in readable)),
            "ran on": float(sum(r.words > 0 for r in readable)),
        }
        # A target without the words declines, or changes the subject: both are answers. The pilot
        # checks whether a target that has them repeats them.
        if 2 * len(readable) < len(readings):
            reason = readings[-1].reason or "no answer"
            return Score(None, reason=reason, details=details, bets=tuple(bets))
        evidence = tuple(_evidence(readable))
        return Score(_total(readable), evidence=evidence, details=details, bets=tuple(bets))


def _total(readings: Sequence[PlaceReading]) -> float:
    """Evidence of all places, in nats; the better answer counts where there are two."""
    best: dict[str, float] = {}
    for reading in readings:
        run = reading.place.true
        best[run] = max(reading.evidence, best.get(run, 0.0))
    return sum(best.values())


def _evidence(readings: Iterable[PlaceReading]) -> Iterator[Evidence]:
    """The words that were said behind a run, then those that might have been."""
    for reading in sorted(readings, key=lambda r: -r.evidence):
        if reading.again:
            before = " ".join(reading.place.true.split()[-_SHOWN:])
            words = " ".join(reading.place.shown.split()[: max(1, reading.words)])
            p = Interval(1.0, 1.0) if reading.words else reading.probability
            yield Evidence(words, before, p, math.nan)
