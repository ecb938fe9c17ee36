"""S-RAG (ACL 2025): is a document in the database, from the probabilities of its next words.

The steps are the paper's: cut the document and choose the words worth a query (Alg. 1), ask with
audit intent (§4.2.2), turn the answers into features (§4.2.3), and score. The classifier over the
features is trained on a shadow system (:mod:`ragwitness.membership.shadow`, §4.2.1). Ours asks the
same question about few words, and ranks the score itself.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.bet import Bet
from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least, one_of
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
    log_odds,
    mean_log_odds,
    probability_at,
    word_probability,
)
from ragwitness.membership.response_parsing.replies import (
    AUDIT_PROMPT,
    NO_LOGPROBS,
    AnswerOutcome,
    AnswerReading,
    read_answer,
    read_continuation,
    with_room,
    words_before,
)
from ragwitness.membership.windows import Elsewhere
from ragwitness.models.base import LanguageModel, word_scores
from ragwitness.text.words import STOP_WORDS, Word, core, passages, split_words

# Parameters of S-RAG, the paper's beside ours.


@dataclass(frozen=True, slots=True)
class SRagConfig:
    """How a document is probed.

    Attributes:
        mode: ``"probing"`` asks about each of the hardest words, as the paper does, and learns
            the meaning of their probabilities from a shadow system. ``"few"`` asks about the few
            most telling words of the whole document (ours; its score is ranked unchanged).
        segment_factor: k of Alg. 1; the hardest 1/k of the suffix words are probed.
        intervals: m of Eq. 3.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
        missing: In probing mode, the probability of a word outside the target's list; the
            published code has .01, for refusals too.
        max_passage_words: Longer documents are audited passage by passage.
        min_words: Shorter documents are unscorable.
        sure: Log-odds, in nats, from which on ``"few"`` sends no further query: more than those of
            two certain words.
        guessed: Largest probability, under the proxy, of a word that ``"few"`` asks about.
        turns: Most queries of ``"few"`` about a document.
        word_tokens: Fewest tokens generated per probe; more where the proxy spells the word
            with more, and where the target repeats the question.
        prompt: Must hold ``{prefix}``.
    """

    stored_name: ClassVar[str] = "SRagConfig"
    later: ClassVar[tuple[str, ...]] = ("missing", "sure", "guessed", "turns")
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {"mode": "probing"},  # with Llama-3, which shows every probability; here 20
        "paper-gpt": {"mode": "probing", "top_logprobs": 5},  # with GPT-4o-mini
        "few": {},
    }
    asks: ClassVar[str] = "turns"
    stops_at: ClassVar[str] = "sure"

    mode: Literal["probing", "few"] = "few"
    segment_factor: int = 4
    intervals: int = 10
    top_logprobs: int = 20
    missing: float = 0.01
    max_passage_words: int = 200
    min_words: int = 8
    sure: float = 12.0
    guessed: float = 1e-4
    turns: int = 3
    word_tokens: int = 3
    prompt: str = AUDIT_PROMPT

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        one_of(self, "mode", "probing", "few")
        if not 0.0 <= self.missing <= 1.0:
            raise InputError(f"missing is a probability from 0 to 1, not {self.missing}.")
        at_least(self, 1, "segment_factor", "intervals", "top_logprobs", "word_tokens")
        at_least(self, 1, "min_words", "turns")
        if not (self.sure > 0 and 0 < self.guessed < 1):
            raise InputError(
                f"sure must be above 0, and guessed a probability between 0 and 1; not"
                f" {self.sure:g} and {self.guessed:g}.",
                "Leave both out for 12 and .0001.",
            )
        if self.max_passage_words < 2 * self.min_words:
            raise InputError(
                f"max_passage_words must be at least twice min_words ({self.min_words}),"
                f" not {self.max_passage_words}."
            )
        if "{prefix}" not in self.prompt:
            raise InputError("The audit prompt must hold {prefix}.")

    @property
    def learns(self) -> bool:
        """Whether a classifier is trained on a shadow system, as published."""
        return self.mode == "probing"


# Sentence segmentation: the words of the suffix that are worth a query (Alg. 1).
#
# The paper runs the proxy model once per suffix word. One teacher-forced pass over the whole text
# gives the same probabilities, so one pass is run here; ``benchmarks/segmentation.py`` holds the
# literal loop and compares both.


@dataclass(frozen=True, slots=True)
class ProbeWord:
    """A hard word of the suffix.

    Attributes:
        word: The word and its place in the passage.
        index: Its number among the words of the passage.
        baseline: Its probability under the proxy, given all words before it.
    """

    word: Word
    index: int
    baseline: float


@dataclass(frozen=True, slots=True)
class Segmented:
    """A passage and its probe words.

    Attributes:
        text: The passage.
        words: All its words.
        probes: Probe words of the second half, in reading order.
    """

    text: str
    words: tuple[Word, ...]
    probes: tuple[ProbeWord, ...]

    def before(self, word: Word) -> str:
        """The text before a word, as sent to the target."""
        return self.text[: word.start].rstrip()


def hardest(logprobs: NDArray[np.float64], allowed: NDArray[np.bool_], n: int) -> list[int]:
    """Return the ``n`` least probable allowed positions, in reading order (Alg. 1, line 12)."""
    candidates = np.flatnonzero(allowed)
    order = candidates[np.argsort(logprobs[candidates], kind="stable")]
    return sorted(order[:n].tolist())


_FEWEST = 3  # probes; the published code asks about all words of a shorter suffix


def segment(passage: str, proxy: LanguageModel, config: SRagConfig) -> Segmented:
    """Choose the probe words of a passage with one pass of the proxy model.

    Args:
        passage: At least two words.
        proxy: Language model that has not seen the target's database.
        config: ``segment_factor``; ``"few"`` chooses among all words but function words, which the
            proxy ranks as hard at the start of a sentence, where they tell nothing.
    """
    words = split_words(passage)
    half = len(words) // 2  # lines 3-4
    scores = {score.start: score.logprob for score in word_scores(proxy, passage)}
    logprobs = np.array([scores.get(word.start, 0.0) for word in words[half:]])  # lines 7-10
    count = len(logprobs) // config.segment_factor  # line 11
    if not config.learns or count < _FEWEST:
        count = len(logprobs)
    stems = [core(word.text).lower() for word in words[half:]]
    idle = frozenset() if config.learns else STOP_WORDS
    allowed = np.array([bool(stem) and stem not in idle for stem in stems])
    probes = (
        ProbeWord(words[half + i], half + i, float(np.exp(logprobs[i])))
        for i in hardest(logprobs, allowed, count)
    )
    return Segmented(passage, tuple(words), tuple(probes))


# From word probabilities to the features of the audit classifier (§4.2.3): how many of them fall in
# each of m intervals.


def counts(probabilities: Sequence[Interval], intervals: int = 10) -> NDArray[np.float64]:
    """Return F(s) of Eq. 5, shape (m,); p = 1 belongs to the last interval.

    A censored probability is spread evenly over the intervals it may lie in. Unread words are
    in none.
    """
    edges = np.linspace(0.0, 1.0, intervals + 1)
    total = np.zeros(intervals)
    for p in probabilities:
        if p == UNREAD:
            continue
        if p.high - p.low < 1e-12:
            total[min(int(intervals * p.low), intervals - 1)] += 1.0  # Eq. 4
        else:
            overlap = np.minimum(edges[1:], p.high) - np.maximum(edges[:-1], p.low)
            total += np.clip(overlap, 0.0, None) / (p.high - p.low)
    return total


_LUCK = 0.003  # probability that a related passage, or chance, may give an unexpected word


def said_odds(item: Evidence) -> float:
    """Return a word's evidence for the document, in nats.

    log p / p0, both kept above :data:`_LUCK`. A word outside the list has p = 0, so a hard word
    that was not said counts for nothing: a weak reader misses most of a member's.
    """
    p = 0.0 if item.probability == UNREAD else item.probability.low
    return math.log((p + _LUCK) / (item.baseline + _LUCK))


_OPENERS = " \n\t\"'\u201c\u201e\u2026.*_"  # before the first word of a continuation
_FORM = 8  # tokens in which a target shows whether it continues or first repeats the question
_ROOM = 16  # tokens beyond the proxy's count, for targets whose tokenizer counts more

_Words: TypeAlias = Sequence[tuple[Segmented, ProbeWord]]


class SRag:
    """S-RAG: is a document in the database behind a RAG system?

    Args:
        proxy: Ranks words by difficulty; must not have seen the target's database.
        config: Mode and parameters.
        elsewhere: Words that documents of the audit share; ``"few"`` asks about them last.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.srag.probe.SRag"
    requires = frozenset({Capability.TOP_LOGPROBS})

    def __init__(
        self,
        proxy: LanguageModel,
        config: SRagConfig | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.proxy = proxy
        self.config = config or SRagConfig()
        self.elsewhere = elsewhere

    def among(self, documents: Iterable[Document]) -> SRag:
        """Return the audit for documents of one set."""
        if self.learns:
            return self
        return SRag(self.proxy, self.config, Elsewhere.among(documents))

    @property
    def learns(self) -> bool:
        """Whether its scores are read by a classifier."""
        return self.config.learns

    @property
    def name(self) -> str:
        """Registered name with its mode."""
        return f"s-rag ({self.config.mode})"

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        config = self.config
        alternatives = {"alternatives per token": str(config.top_logprobs)}
        if config.mode == "few":
            return {
                "probe words": f"those of the second half up to a probability of"
                f" {config.guessed:g}, the easiest first, and last those that other documents have"
                " behind the same word",
                **alternatives,
                "features": "none: the score itself is ranked",
                "stops": f"at {config.sure:g} nats, or after {config.turns} words",
            }
        return {
            "probe words": f"hardest 1/{config.segment_factor} of the second half, with stop words",
            **alternatives,
            "features": f"counts, {config.intervals} intervals",
            "not shown": f"counts as {config.missing:g}",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        # 1. Passages that the proxy and a prompt can hold, each searched for hard words.
        texts = self._passages(document.text)
        if not texts:
            return Score(
                None, reason=f"no passage of {config.min_words} words or more that can be probed"
            )
        segments = [segment(text, self.proxy, config) for text in texts]
        words = [(passage, probe) for passage in segments for probe in passage.probes]
        if not words:
            return Score(None, reason="no word of its second half is worth a query")
        if config.mode == "few":
            return (yield from self._few(words))
        # 2. Queries with audit intent (§4.2.2), all at once.
        readings = yield from self._ask(words)
        # 3. The probability of each probe word; of a passage most of whose answers failed, none.
        evidence: list[Evidence] = []
        rest = iter(readings)
        for passage in segments:
            own_readings = list(islice(rest, len(passage.probes)))
            failed = sum(reading.outcome is AnswerOutcome.FAILED for reading in own_readings)
            if 2 * failed <= len(own_readings):
                pairs = zip(passage.probes, own_readings, strict=True)
                evidence += [self._evidence(passage, probe, reading) for probe, reading in pairs]
        # 4. Features (§4.2.3): a word outside the list has a fixed value.
        missing = Interval(config.missing, config.missing)
        intervals = [
            missing if p == UNREAD or _censored(p) else p
            for p in (item.probability for item in evidence)
        ]
        features = counts(intervals, config.intervals).tolist() if evidence else ()
        return replace(self._score(evidence, readings), features=tuple(features))

    def _few(self, words: _Words) -> Probe:
        """Ask about the words that tell most until their log-odds are sure (ours).

        Calibration documents are asked about by the same rule, so ranks of the score stay exact
        wherever it stops.
        """
        config, total = self.config, 0.0
        evidence: list[Evidence] = []
        readings: list[AnswerReading] = []

        # A word that cannot be guessed tells the same whether the proxy gives it 1e-4 or 1e-9. A
        # target that holds it says the first far more often, so the easiest of them come first.
        # A word that other documents have behind the same word comes last: a target that holds
        # those says it too.
        def turn(item: tuple[Segmented, ProbeWord]) -> tuple[bool, bool, float]:
            (passage, probe), elsewhere = item, self.elsewhere
            shared = elsewhere is not None and elsewhere.has(passage.words, probe.index)
            p0, easy = probe.baseline, probe.baseline > config.guessed
            return shared, easy, p0 if easy else -p0

        bets: list[Bet] = []
        sent: dict[str, int] = {}  # characters of each passage that questions have shown
        remaining = sorted(words, key=turn)[: config.turns]
        # Fewer than these cannot be sure, so they are asked about at once; then one by one.
        at_once = 1 + int(config.sure / math.log1p(1 / _LUCK))
        while remaining and total <= config.sure:
            batch, remaining, at_once = remaining[:at_once], remaining[at_once:], 1
            new_readings = yield from self._ask(batch)
            readings += new_readings
            for (passage, probe), reading in zip(batch, new_readings, strict=True):
                if reading.outcome is not AnswerOutcome.FAILED:
                    evidence.append(self._evidence(passage, probe, reading))
                    total += said_odds(evidence[-1])
                    # Words that an earlier question showed are no bet.
                    if probe.word.start >= sent.get(passage.text, 0):
                        bets += self._bets(passage, probe, reading)
                sent[passage.text] = max(probe.word.start, sent.get(passage.text, 0))
        score = replace(self._score(evidence, readings), bets=tuple(bets))
        if score.value is None:
            return score
        # Beyond the bound the sum says only that it was passed. The mean over all questions
        # separates the documents that stopped there.
        return replace(score, value=min(total, config.sure) + 1e-3 * score.value)

    def _passages(self, text: str) -> list[str]:
        """Cut a text so that the proxy, and a prompt around a passage, can hold each part."""
        size, room = self.config.max_passage_words, self.proxy.context_length // 3
        while True:
            texts = passages(text, size, self.config.min_words)
            fitting = [text for text in texts if self.proxy.count_tokens(text) <= room]
            if len(fitting) == len(texts) or size < 4 * self.config.min_words:
                return fitting
            size //= 2

    def _ask(self, words: _Words) -> Generator[list[Query], list[Answer], list[AnswerReading]]:
        """Ask about words, one query each, and read each answer from that word on."""
        config, count = self.config, self.proxy.count_tokens
        fewest = config.word_tokens if self.learns else max(_FORM, config.word_tokens)
        before = [passage.before(probe.word) for passage, probe in words]
        queries = [
            Query(
                config.prompt.replace("{prefix}", text),
                max_tokens=max(fewest, count(probe.word.text) + 1),
                top_logprobs=config.top_logprobs,
            )
            for text, (_, probe) in zip(before, words, strict=True)
        ]
        # A target may first repeat all of it, and gets room to continue then; not as published.
        sent = [config.prompt.partition("{prefix}")[0] + text for text in before]
        if self.learns:
            answers = yield queries
        else:
            room = [count(text) + _ROOM for text in sent]
            answers = yield from with_room(queries, sent, room)
        return [
            self._read(answer, text, passage.text[probe.word.start :])
            for answer, text, (passage, probe) in zip(answers, sent, words, strict=True)
        ]

    def _read(self, answer: Answer, before: str, expected: str) -> AnswerReading:
        """Read an answer from a word of the passage on."""
        if self.learns:
            reading = read_answer(answer, expected=expected)
            # As published, a target that says nothing has not shown the word: it is missing.
            if reading.outcome is AnswerOutcome.FAILED and not answer.error:
                return replace(reading, outcome=AnswerOutcome.DECLINED)
        else:
            reading = read_continuation(answer, before, expected)
        readable = reading.tokens or answer.tokens or "echo" in reading.removed
        if reading.outcome is AnswerOutcome.ANSWERED and not readable:
            return replace(reading, outcome=AnswerOutcome.FAILED, reason=NO_LOGPROBS)
        return reading

    def _bets(self, passage: Segmented, probe: ProbeWord, reading: AnswerReading) -> list[Bet]:
        """Return the bet that an answer begins with the words behind the prefix."""
        start = probe.word.start
        ahead = next_words(passage.text[start:])
        gap = with_gap(passage.text, start, start + sum(map(len, ahead)))
        question = self.config.prompt.replace("{prefix}", passage.before(probe.word))
        return bets_on(question, reading.text.lstrip(_OPENERS), (), ahead, gap)

    def _evidence(self, passage: Segmented, probe: ProbeWord, reading: AnswerReading) -> Evidence:
        """Compare the probability of a word with the proxy's; show the words before it."""
        word, p = probe.word.text, UNREAD
        if self.learns:
            if reading.outcome is AnswerOutcome.ANSWERED:
                p = probability_at(reading.tokens, word)
        elif reading.outcome is AnswerOutcome.DECLINED:
            p = Interval(0.0, 0.0)
        elif reading.tokens:
            p = word_probability(reading.tokens, word, passage.before(probe.word))
        before = words_before(passage.text, passage.words, probe.index)
        return Evidence(word, before, p, probe.baseline)

    def _score(self, evidence: Sequence[Evidence], readings: Iterable[AnswerReading]) -> Score:
        """The mean log-odds of the readable words, and counts of the others."""
        if not evidence:
            failed = (r.reason for r in readings if r.outcome is AnswerOutcome.FAILED)
            return Score(None, reason=next(failed))
        ordered = sorted(evidence, key=lambda item: -abs(log_odds(item.probability, item.baseline)))
        return Score(
            value=mean_log_odds(evidence),
            evidence=tuple(ordered),
            details={
                "probes": float(len(evidence)),
                "unread": float(sum(item.probability == UNREAD for item in evidence)),
                "censored": float(sum(_censored(item.probability) for item in evidence)),
            },
        )


def _censored(p: Interval) -> bool:
    """Whether only a bound is known."""
    return p.low < p.high < 1.0
