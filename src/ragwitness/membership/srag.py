"""S-RAG (ACL 2025): is a document in the database, from the probabilities of its next words.

The steps are the paper's: cut the document and choose the words worth a query (Alg. 1), ask with
audit intent (§4.2.2), turn the answers into features (§4.2.3), and score; the classifier over the
features is trained on a shadow system (:mod:`ragwitness.membership.shadow`, §4.2.1).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.kit.fields import at_least, one_of
from ragwitness.membership.reading.answers import (
    NO_LOGPROBS,
    AnswerOutcome,
    AnswerReading,
    read_answer,
    read_continuation,
    with_room,
)
from ragwitness.membership.reading.continuation import AUDIT_PROMPT, Aligned, align
from ragwitness.membership.reading.elsewhere import Elsewhere
from ragwitness.membership.reading.halves import words_before
from ragwitness.membership.reading.probabilities import (
    UNREAD,
    log_odds,
    mean_log_odds,
    probability_at,
    token_at,
    word_probability,
)
from ragwitness.models.base import LanguageModel
from ragwitness.models.words import word_scores
from ragwitness.text.words import STOP_WORDS, Word, core, passages, split_words
from ragwitness.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
    TokenLogprob,
)

if TYPE_CHECKING:
    from ragwitness.membership.shadow import AuditClassifier

# Parameters of S-RAG, the paper's beside ours.

_PAPER: dict[str, object] = {
    "mode": "probing",
    "features": "counts",
    "classifier": "paper",
    "skip_stop_words": False,
    "fewest": 0,
    "missing": 0.01,
}


@dataclass(frozen=True, slots=True)
class SRagConfig:
    """How a document is probed.

    Attributes:
        mode: ``"probing"`` sends one query per probe word, as the paper does;
            ``"single"`` sends one query per passage and reads every probe word from it;
            ``"few"`` asks about the few words of the whole document that tell most (ours; its
            score is ranked as it is).
        segment_factor: k of Alg. 1; the hardest 1/k of the suffix words are probed.
        intervals: m of Eq. 3.
        features: What the classifier reads: ``"counts"`` as published, or ``"frequencies"``, ours;
            ``"none"`` does without classifier and shadow system, and ranks the score itself.
        classifier: ``"best"`` of three families, ours; ``"paper"`` is AutoGluon where it is
            installed, else a random forest, and no score of ours breaks its ties.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
        skip_stop_words: Leave function words out of the probe words (ours; the proxy ranks
            some of them as hard at the start of a sentence, where they tell nothing).
        fewest: Least number of probe words, where floor(l/k) of Alg. 1 is fewer (ours).
        missing: What the probability of a word counts as that the target does not show; the
            published code has .01, for refusals too, and reads the word as the answer's first.
            None keeps what is known of it, an interval, reads it wherever the answer comes to it,
            and takes a refusal for probability 0 (ours).
        max_passage_words: Longer documents are audited passage by passage.
        min_words: Shorter documents are unscorable.
        sure: Log-odds, in nats, from which on ``"few"`` sends no further query: more than two
            words that were said for certain have.
        guessed: Largest probability, under the proxy, of a word that ``"few"`` asks about.
        turns: Most queries of ``"few"`` about a document.
        word_tokens: Fewest tokens generated per probe; more where the proxy spells the word
            with more, and where the target first says what it was sent.
        prompt: Must hold ``{prefix}``.
    """

    stored_name: ClassVar[str] = "SRagConfig"
    later: ClassVar[tuple[str, ...]] = (
        "classifier", "fewest", "missing", "sure", "guessed", "turns",
    )  # fmt: skip
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": _PAPER,  # with Llama-3, which shows every probability; here 20 for each token
        "paper-gpt": {**_PAPER, "top_logprobs": 5},  # with GPT-4o-mini
        "few": {"mode": "few"},
    }

    mode: Literal["probing", "single", "few"] = "single"
    segment_factor: int = 4
    intervals: int = 10
    features: Literal["frequencies", "counts", "none"] = "frequencies"
    classifier: Literal["best", "paper"] = "best"
    top_logprobs: int = 20
    skip_stop_words: bool = True
    fewest: int = 3
    missing: float | None = None
    max_passage_words: int = 200
    min_words: int = 8
    sure: float = 12.0
    guessed: float = 1e-4
    turns: int = 3
    word_tokens: int = 3
    prompt: str = AUDIT_PROMPT

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        one_of(self, "mode", "probing", "single", "few")
        one_of(self, "features", "frequencies", "counts", "none")
        one_of(self, "classifier", "best", "paper")
        at_least(self, 0, "fewest")
        if self.missing is not None and not 0.0 <= self.missing <= 1.0:
            raise InputError(f"missing is a probability from 0 to 1, not {self.missing}.")
        at_least(self, 1, "segment_factor", "intervals", "top_logprobs", "word_tokens", "min_words")
        at_least(self, 1, "turns")
        if not (self.sure > 0 and 0 < self.guessed < 1):
            raise InputError(
                f"A probe stops above sure, over 0, and asks about words of a probability up to"
                f" guessed, from 0 to 1; not {self.sure:g} and {self.guessed:g}.",
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
        """Whether a classifier is trained on a shadow system."""
        return self.features != "none" and self.mode != "few"


# Sentence segmentation: which words of the suffix are worth a query (Alg. 1).
#
# The paper runs the proxy model once per suffix word. The probabilities it collects are those of
# one teacher-forced pass over the whole text, so one pass is all that is run here;
# ``benchmarks/segmentation.py`` holds the literal loop and compares both.


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
    """A passage, cut in half.

    Attributes:
        text: The passage.
        words: All its words.
        half: Number of the first word of the suffix.
        probes: Probe words of the suffix, in reading order.
        surprisals: -log p of each suffix word under the proxy, in nats.
    """

    text: str
    words: tuple[Word, ...]
    half: int
    probes: tuple[ProbeWord, ...]
    surprisals: tuple[float, ...]

    def align(self, answer: Sequence[str]) -> Aligned:
        """Align the words of an answer with the passage."""
        return align(self.words, self.half, self.surprisals, answer)

    def starts(self, mode: str) -> list[int]:
        """Numbers of the words from which answers go on: the suffix's first, or each probe's."""
        return [self.half] if mode == "single" else [probe.index for probe in self.probes]

    def before(self, word: Word) -> str:
        """Everything before a word, as sent to the target."""
        return self.text[: word.start].rstrip()

    @property
    def suffix(self) -> str:
        """The second half."""
        return self.text[self.words[self.half].start :]

    @property
    def prefix(self) -> str:
        """The first half (Alg. 1, line 3)."""
        return self.before(self.words[self.half])


def hardest(logprobs: NDArray[np.float64], allowed: NDArray[np.bool_], n: int) -> list[int]:
    """Return the ``n`` least probable allowed positions, in reading order (Alg. 1, line 12)."""
    candidates = np.flatnonzero(allowed)
    order = candidates[np.argsort(logprobs[candidates], kind="stable")]
    return sorted(order[:n].tolist())


def segment(passage: str, proxy: LanguageModel, config: SRagConfig) -> Segmented:
    """Choose the probe words of a passage with one pass of the proxy model.

    Args:
        passage: At least two words.
        proxy: Language model that has not seen the target's database.
        config: ``segment_factor``, ``fewest`` and ``skip_stop_words``.
    """
    words = split_words(passage)
    scored = {score.start: score.logprob for score in word_scores(proxy, passage)}
    every = np.array([scored.get(word.start, 0.0) for word in words])
    half = _cut(words, every) if config.mode == "single" else len(words) // 2  # lines 3-4
    logprobs = every[half:]  # lines 7-10
    factor = 1 if config.mode == "few" else config.segment_factor
    wanted = max(config.fewest, len(logprobs) // factor)  # line 11
    stems = [core(word.text).lower() for word in words[half:]]
    idle = STOP_WORDS if config.skip_stop_words else frozenset()
    allowed = np.array([bool(stem) and stem not in idle for stem in stems])
    probes = tuple(
        ProbeWord(words[half + i], half + i, float(np.exp(logprobs[i])))
        for i in hardest(logprobs, allowed, wanted)
    )
    return Segmented(passage, tuple(words), half, probes, tuple((-logprobs).tolist()))


def _cut(words: Sequence[Word], logprobs: NDArray[np.float64]) -> int:
    """Return where to cut near the middle: behind the two hardest words there.

    A model that copies finds its place by the last words it was given; behind "of the" many
    places fit. One answer has no second chance, so single-answer mode chooses.
    """
    middle, reach = len(words) // 2, len(words) // 8
    plain = np.array([not core(word.text) for word in words])
    hardness = np.where(plain, 0.0, -logprobs)
    places = range(max(2, middle - reach), middle + reach + 1)
    return max(places, key=lambda i: (hardness[i - 1] + hardness[i - 2], -abs(i - middle)))


# What answers say of the probe words: in single-answer mode every word is read from one
# completion, in probing mode each word from the answer to its own query.


@dataclass(frozen=True, slots=True)
class PassageReading:
    """What one answer says of a passage.

    Attributes:
        probabilities: Of each probe word, UNREAD where the answer never got there.
        recovered: Share of the suffix's surprisal under the proxy that lies in words the answer
            has right and in place: 1 for a verbatim continuation, near 0 where only function
            words agree.
        run: Most suffix words right in a row.
        log_odds: Sum over every suffix word that the answer came to, probe word or not, of
            log p / p0 against the proxy. The word where the answer departs is among them: a
            member's true word is often the second choice there.
    """

    probabilities: tuple[Interval, ...]
    recovered: float = 0.0
    run: int = 0
    log_odds: float = 0.0


def read_probes(segmented: Segmented, tokens: Sequence[TokenLogprob]) -> PassageReading:
    """Read every probe word, and how much of the suffix was said, from one answer.

    Args:
        segmented: The passage and its probe words.
        tokens: Generated tokens with alternatives.
    """
    text = "".join(token.token for token in tokens)
    answer = split_words(text)
    aligned = segmented.align([word.text for word in answer])
    read = {
        index: probability_at(
            tokens[token_at(tokens, answer[place].start) :], segmented.words[index].text
        )
        for index, place in aligned.places.items()
    }
    return PassageReading(
        probabilities=tuple(read.get(probe.index, UNREAD) for probe in segmented.probes),
        recovered=aligned.recovered,
        run=aligned.run,
        log_odds=gain(segmented, read),
    )


def gain(segmented: Segmented, read: Mapping[int, Interval]) -> float:
    """Return the sum of log p / p0 over the suffix words that were read, by word number."""
    expected = segmented.surprisals
    return sum(log_odds(p, math.exp(-expected[i - segmented.half])) for i, p in read.items())


# From word probabilities to what the audit classifier reads (§4.2.3).
#
# ``counts`` are the paper's features: how many probabilities fall in each of m intervals. Counts
# grow with the length of the document, which the classifier then learns; ``frequencies`` divide
# by the number of words and add what counts cannot hold: the share of unread words, the mean
# log-odds against the proxy, and in single-answer mode how much of the suffix the answer said.


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


def frequencies(evidence: Sequence[Evidence], intervals: int = 10) -> NDArray[np.float64]:
    """Return shares per interval, share of unread words, mean log-odds, shape (m + 2,)."""
    probabilities = [item.probability for item in evidence]
    n = len(probabilities)
    unread = sum(p == UNREAD for p in probabilities) / n
    return np.array([*(counts(probabilities, intervals) / n), unread, mean_log_odds(evidence)])


_LUCK = 0.003  # what a related passage, or chance, may give a word that the proxy does not expect


def said_odds(item: Evidence) -> float:
    """Return how far a word's probability speaks for the document being there, in nats.

    log p / p0, both kept above :data:`_LUCK`; a word that is not shown has p = 0, so that a hard
    word that was not said counts for nothing: a weak reader misses most of a member's.
    """
    p = 0.0 if item.probability == UNREAD else item.probability.low
    return math.log((p + _LUCK) / (item.baseline + _LUCK))


_FORM = 8  # tokens in which a target shows whether it goes on or first says what it was sent
_ROOM = 16  # tokens beyond the proxy's count, for targets whose tokenizer counts more


class SRag:
    """S-RAG: is a document in the database behind a RAG system?

    Args:
        proxy: Ranks words by difficulty; must not have seen the target's database.
        config: Mode and parameters.
        elsewhere: What the documents of the audit share, which ``"few"`` asks about last.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.srag.probe.SRag"

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
        """Return the audit as it is for one document of a set, all of whose texts are known."""
        if self.config.mode != "few":
            return self
        return SRag(self.proxy, self.config, Elsewhere.among(documents))

    @property
    def learns(self) -> bool:
        """Whether its scores are read by a classifier."""
        return self.config.learns

    def train(
        self, features: Sequence[Sequence[float]], members: Sequence[bool], *, automl: bool = False
    ) -> AuditClassifier:
        """Train f_audit (§4.2.3): AutoGluon as published, or the best of three families."""
        from ragwitness.membership.shadow import train_as_published, train_audit_classifier

        if self.config.classifier == "paper":
            return train_as_published(features, members)
        return train_audit_classifier(features, members, automl=automl)

    @property
    def requires(self) -> frozenset[Capability]:
        """Log-probabilities of the words that it asks for."""
        return frozenset({Capability.TOP_LOGPROBS})

    @property
    def name(self) -> str:
        """Registered name with its mode."""
        return f"s-rag ({self.config.mode})"

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        config = self.config
        return {
            "probe words": (
                f"those of the second half up to a probability of {config.guessed:g}, the easiest "
                "first, and last those that other documents have behind the same word"
                if config.mode == "few"
                else f"hardest 1/{config.segment_factor} of the second half, "
                f"{'without' if config.skip_stop_words else 'with'} stop words"
            ),
            "alternatives per token": str(config.top_logprobs),
            "features": f"{config.features}, {config.intervals} intervals"
            if config.learns
            else "none: the score itself is ranked",
            **({} if config.missing is None else {"not shown": f"counts as {config.missing:g}"}),
            **(
                {"stops": f"at {config.sure:g} nats, or after {config.turns} words"}
                if config.mode == "few"
                else {}
            ),
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        # 1. Passages that the proxy and a prompt can hold, each cut and searched for hard words.
        parts = self._passages(document.text)
        if not parts:
            return Score(
                None, reason=f"no passage of {config.min_words} words or more that can be probed"
            )
        segments = [segment(part, self.proxy, config) for part in parts]
        segments = [part for part in segments if part.probes]
        if not segments:
            return Score(None, reason="no word of its second half is worth a query")
        if config.mode == "few":
            return (yield from self._few(segments))
        # 2. Queries with audit intent (§4.2.2).
        batches = [self._queries(part) for part in segments]
        answers = yield from self._asked(segments, batches)
        # 3. Probabilities of the probe words, each beside the proxy's.
        evidence: list[Evidence] = []
        readings: list[PassageReading] = []
        trouble: list[str] = []
        for part, batch in zip(segments, batches, strict=True):
            own, answers = answers[: len(batch)], answers[len(batch) :]
            found = self._read(part, own, trouble)
            if found is not None:
                readings.append(found)
                evidence += _evidence(part, found.probabilities)
        if not evidence:
            return Score(None, reason=trouble[0] if trouble else "no answer could be read")
        return self._score(evidence, readings)

    def _few(self, segments: Sequence[Segmented]) -> Probe:
        """Ask about the words that tell most until their log-odds are sure (ours).

        Calibration documents are asked about by the same rule, so ranks of the score stay exact
        wherever it stops.
        """
        config, total = self.config, 0.0
        evidence: list[Evidence] = []
        trouble: list[str] = []
        # A word that nobody guesses tells the same whether the proxy gives it 1e-4 or 1e-9, and
        # a target that holds it says the first far more often: the easiest of them come first.
        # One that other documents of the set have behind the same word is said by whoever holds
        # those: it comes last.
        words = [replace(part, probes=(probe,)) for part in segments for probe in part.probes]

        def turn(one: Segmented) -> tuple[bool, bool, float]:
            p0, shared = one.probes[0].baseline, self.elsewhere
            said = shared is not None and shared.has(one.words, one.probes[0].index)
            return (said, p0 > config.guessed, p0 if p0 > config.guessed else -p0)

        left = sorted(words, key=turn)[: config.turns]
        # Fewer than these cannot be sure, so they are asked about at once; then one by one.
        at_once = 1 + int(config.sure / math.log1p(1 / _LUCK))
        while left and total <= config.sure:
            now, left, at_once = left[:at_once], left[at_once:], 1
            batches = [self._queries(one) for one in now]
            answers = yield from self._asked(now, batches)
            for one, batch in zip(now, batches, strict=True):
                own, answers = answers[: len(batch)], answers[len(batch) :]
                found = self._read(one, own, trouble)
                if found is not None:
                    evidence += _evidence(one, found.probabilities)
                    total += said_odds(evidence[-1])
        if not evidence:
            return Score(None, reason=trouble[0] if trouble else "no answer could be read")
        score = self._score(evidence, ())
        # Beyond the bound the sum says only that it was passed. The mean over what was asked tells
        # those apart that stopped there.
        return replace(score, value=min(total, config.sure) + 1e-3 * (score.value or 0.0))

    def _passages(self, text: str) -> list[str]:
        """Cut a text so that the proxy, and a prompt around a passage, can hold each part."""
        most, room = self.config.max_passage_words, self.proxy.context_length // 3
        while True:
            parts = passages(text, most, self.config.min_words)
            fitting = [part for part in parts if self.proxy.count_tokens(part) <= room]
            if len(fitting) == len(parts) or most < 4 * self.config.min_words:
                return fitting
            most //= 2

    def _queries(self, part: Segmented) -> list[Query]:
        """One query for each place where the answer begins."""
        config, count = self.config, self.proxy.count_tokens
        fewest = config.word_tokens if config.missing is not None else _FORM
        room = {
            start: count(part.suffix) + _ROOM
            if config.mode == "single"
            else max(fewest, config.word_tokens, count(part.words[start].text) + 1)
            for start in part.starts(config.mode)
        }
        return [
            Query(
                config.prompt.replace("{prefix}", part.before(part.words[start])),
                max_tokens=most,
                top_logprobs=config.top_logprobs,
            )
            for start, most in room.items()
        ]

    def _sent(self, part: Segmented, start: int) -> str:
        """What is sent up to a word of the passage; a target may say all of it again."""
        return self.config.prompt.partition("{prefix}")[0] + part.before(part.words[start])

    def _asked(
        self, segments: Sequence[Segmented], batches: Sequence[Sequence[Query]]
    ) -> Generator[list[Query], list[Answer], list[Answer]]:
        """Ask; a target that first says what it was sent has room to go on, but as published."""
        queries = [query for batch in batches for query in batch]
        if self.config.missing is not None:
            return (yield queries)
        before = [
            self._sent(part, start) for part in segments for start in part.starts(self.config.mode)
        ]
        room = [self.proxy.count_tokens(text) + _ROOM for text in before]
        return (yield from with_room(queries, before, room))

    def _read(
        self, part: Segmented, answers: Sequence[Answer], trouble: list[str]
    ) -> PassageReading | None:
        """Read the probe words; None where most answers failed."""
        starts = part.starts(self.config.mode)
        placed = zip(answers, starts, strict=True)
        readings = [self._what(part, answer, start) for answer, start in placed]
        failed = [one.reason or "" for one in readings if one.outcome is AnswerOutcome.FAILED]
        trouble += failed
        if len(failed) * 2 > len(readings):
            return None
        if self.config.mode == "single" and readings[0].outcome is AnswerOutcome.ANSWERED:
            return read_probes(part, readings[0].tokens)
        if self.config.mode == "single":
            readings *= len(part.probes)
        return PassageReading(
            tuple(
                self._said(part, reading, probe)
                for reading, probe in zip(readings, part.probes, strict=True)
            )
        )

    def _what(self, part: Segmented, answer: Answer, start: int) -> AnswerReading:
        """What an answer says from a word of the passage on."""
        before, expected = self._sent(part, start), part.text[part.words[start].start :]
        published = self.config.missing is not None
        found = read_answer(answer, expected=expected)
        if found.outcome is AnswerOutcome.ANSWERED and not published:
            gone_on = read_continuation(answer, before, expected)
            # In single-answer mode every word is aligned, so that nothing is taken off.
            single = self.config.mode == "single" and gone_on.outcome is AnswerOutcome.ANSWERED
            found = found if single else gone_on
        # As published, a target that says nothing has not shown the word: it counts as missing.
        if published and found.outcome is AnswerOutcome.FAILED and not answer.error:
            return replace(found, outcome=AnswerOutcome.DECLINED)
        if not (found.tokens or found.outcome is not AnswerOutcome.ANSWERED):
            said = bool(answer.tokens) or "echo" in found.removed
            return (
                found if said else replace(found, outcome=AnswerOutcome.FAILED, reason=NO_LOGPROBS)
            )
        return found

    def _said(self, part: Segmented, reading: AnswerReading, probe: ProbeWord) -> Interval:
        """The probability of a probe word in the answer to its own query."""
        if self.config.missing is not None:
            declined = reading.outcome is not AnswerOutcome.ANSWERED
            return UNREAD if declined else probability_at(reading.tokens, probe.word.text)
        if reading.outcome is AnswerOutcome.DECLINED:
            return Interval(0.0, 0.0)
        if reading.outcome is AnswerOutcome.FAILED or not reading.tokens:
            return UNREAD
        return word_probability(reading.tokens, probe.word.text, part.before(probe.word))

    def _score(self, evidence: Sequence[Evidence], readings: Sequence[PassageReading]) -> Score:
        m = self.config.intervals
        probabilities = [self._counted(item.probability) for item in evidence]
        # Features (§4.2.3): the paper's counts, or ours with what counts cannot hold.
        published = self.config.features == "counts"
        features = counts(probabilities, m) if published else frequencies(evidence, m)
        value = mean_log_odds(evidence)
        if self.config.mode == "single":
            # Where the answer leaves the document says more than the words before it.
            value = float(np.mean([reading.recovered for reading in readings]))
            run = max(reading.run for reading in readings)
            gain = float(np.mean([reading.log_odds for reading in readings]))
            if not published:
                more = [value, math.log1p(run), math.copysign(math.log1p(abs(gain)), gain)]
                features = np.append(features, more)
        ordered = sorted(evidence, key=lambda item: -abs(log_odds(item.probability, item.baseline)))
        return Score(
            value=value,
            features=tuple(features.tolist()),
            evidence=tuple(ordered),
            details={
                "probes": float(len(evidence)),
                "unread": float(sum(item.probability == UNREAD for item in evidence)),
                "censored": float(sum(self._censored(item.probability) for item in evidence)),
            },
        )

    def _counted(self, p: Interval) -> Interval:
        """A probability as the features count it: what is not shown may have a value."""
        missing = self.config.missing
        hidden = missing is not None and (p == UNREAD or self._censored(p))
        return Interval(missing, missing) if hidden and missing is not None else p

    def _censored(self, p: Interval) -> bool:
        """Whether only a bound is known."""
        return p.low < p.high < 1.0


def _evidence(part: Segmented, probabilities: Sequence[Interval]) -> list[Evidence]:
    """Set each probability beside its word, the words before it and the proxy's."""
    found = []
    for probe, probability in zip(part.probes, probabilities, strict=True):
        before = words_before(part.text, part.words, probe.index)
        found.append(Evidence(probe.word.text, before, probability, probe.baseline))
    return found
