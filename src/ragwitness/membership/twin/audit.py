"""The twin audit of one document, as a generator without I/O (ours)."""

from __future__ import annotations

import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.membership.questions.rules import harvest
from ragwitness.membership.reading.answers import Outcome, read_answer
from ragwitness.membership.reading.continuation import echo
from ragwitness.membership.reading.probabilities import word_probability
from ragwitness.membership.twin.places import TwinConfig, TwinPlace, find_places
from ragwitness.models.base import LanguageModel
from ragwitness.text.words import split_words
from ragwitness.types import Answer, Capability, Document, Evidence, Interval, Probe, Query, Score

# Exact tests on ranks among alternatives, combined over places.
#
# Where a true value is exchangeable with its m alternatives its rank is uniform on 1..m+1, ties
# counted against it make it larger, and the sum over independent places is below T with at most
# the probability that the sum of independent uniform ranks is. That distribution is a convolution.


def rank_of(true: Interval, others: Sequence[Interval]) -> int:
    """Return the true value's rank, 1 being the highest, with every doubt against it.

    Args:
        true: The true value's evidence; known to lie in the interval.
        others: The alternatives'. One that may be as high counts as higher.
    """
    return 1 + sum(other.high >= true.low for other in others)


def rank_sum_distribution(alternatives: Sequence[int]) -> NDArray[np.float64]:
    """Return P(sum of ranks = n + j) for j = 0, 1, ..., n places with m_i alternatives each."""
    distribution = np.ones(1)
    for m in alternatives:
        distribution = np.convolve(distribution, np.full(m + 1, 1.0 / (m + 1)))
    return distribution


def rank_sum_p_value(ranks: Sequence[int], alternatives: Sequence[int]) -> float:
    """Return P(sum of independent uniform ranks <= the sum observed); exact, no simulation."""
    excess = sum(ranks) - len(ranks)
    return min(1.0, float(rank_sum_distribution(alternatives)[: excess + 1].sum()))


def standardised_rank_sum(ranks: Sequence[int], alternatives: Sequence[int]) -> float:
    """Return (E T - T) / sd T under the null; higher where the true values rank higher."""
    mean = sum((m + 2) / 2 for m in alternatives)
    variance = sum(((m + 1) ** 2 - 1) / 12 for m in alternatives)
    return (mean - sum(ranks)) / math.sqrt(variance)


def hits_p_value(hits: int, chances: Sequence[float]) -> float:
    """Return P(at least this many hits) for independent places (Poisson binomial), exact."""
    distribution = np.ones(1)
    for p in chances:
        distribution = np.convolve(distribution, [1.0 - p, p])
    return min(1.0, float(distribution[hits:].sum()))


def standardised_hits(hits: int, chances: Sequence[float]) -> float:
    """Return (hits - E) / sd under the null."""
    variance = sum(p * (1 - p) for p in chances)
    return (hits - sum(chances)) / math.sqrt(variance)


# What one answer says of a true value and its alternatives.

_OPENING = 4  # words by which a repeated paragraph is recognised
_WORDS = re.compile(r"[^\W_]+")
_LABEL = re.compile(r"^\W*(?:(?:option|answer)\W+)?\(?([A-Za-z])(?:[).:]|\s*$)", re.IGNORECASE)

Trouble: TypeAlias = Literal["failed", "refused", "empty", "no_logprobs", "repeated"]
"""Why an answer cannot be read."""


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """A place as the target sees it.

    Attributes:
        place: The place.
        true: Probability of the true value.
        others: Probabilities of the alternatives.
    """

    place: TwinPlace
    true: Interval
    others: tuple[Interval, ...]

    def adjusted(self) -> tuple[Interval, tuple[Interval, ...]]:
        """Return log p minus the proxy's log p, for the true value and the alternatives.

        True values are more fluent than what is put in their place. The proxy, which never saw
        the database, prefers them too; its preference is taken off. A value that the target
        does not list has no lower bound.
        """
        own = _minus(self.true, self.place.true_logprob)
        pairs = zip(self.others, self.place.logprobs, strict=True)
        return own, tuple(_minus(p, logprob) for p, logprob in pairs)

    def plain(self) -> tuple[Interval, tuple[Interval, ...]]:
        """Return the probabilities as they are."""
        return self.true, self.others


def _minus(p: Interval, logprob: float) -> Interval:
    low = math.log(p.low) - logprob if p.low > 0 else -math.inf
    high = math.log(p.high) - logprob if p.high > 0 else -math.inf
    return Interval(low, high)


def place_trouble(answer: Answer, place: TwinPlace, *, logprobs: bool) -> Trouble | None:
    """Name why an answer cannot be read, or None.

    The true value plays no part in it: what is left out must not depend on which value is true.
    """
    if answer.error:
        return "failed"
    reading = read_answer(answer)
    if reading.outcome is Outcome.DECLINED:
        return "refused"
    if reading.outcome is Outcome.FAILED:
        return "empty"
    if logprobs and not answer.tokens:
        return "no_logprobs"
    said = [word.text for word in split_words(reading.text)]
    passage = [word.text for word in split_words(place.prefix)][:_OPENING]
    if logprobs and (echo(place.prefix, said)[0] or said[1:] == passage[1 : len(said)] != []):
        return "repeated"
    return None


def read_place(place: TwinPlace, answer: Answer) -> PlaceReading:
    """Read the probability of the true value and of each alternative from one answer.

    Values the target does not list are bounded, not guessed.
    """
    tokens = answer.tokens or ()
    return PlaceReading(
        place,
        word_probability(tokens, place.value.text),
        tuple(word_probability(tokens, other) for other in place.alternatives),
    )


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """Return the number of the option an answer names; None where it is none or several.

    An answer that begins with one option has chosen it, whatever follows. The words of an
    option count before its letter, since a word may begin like a label.
    """
    said = _key(text)
    keys = [_key(option) for option in options]
    first = [i for i, key in enumerate(keys) if key.strip() and said.startswith(key)]
    if len(first) == 1:
        return first[0]
    named = [i for i, key in enumerate(keys) if key.strip() and key in said]
    if named:
        return named[0] if len(named) == 1 else None
    label = _LABEL.match(text)
    index = ord(label.group(1).upper()) - ord("A") if label else len(options)
    return index if index < len(options) else None


def _key(text: str) -> str:
    """The words of a text with spaces around each, so that none is found inside another."""
    return f" {' '.join(_WORDS.findall(text.casefold()))} "


_BEFORE = 4  # words shown before a deciding value
_FLOOR = 1e-6  # least probability that the gain tells apart
_NEARLY_SURE = 1 - 1e-9
_TROUBLES = ("failed", "refused", "empty", "no_logprobs", "repeated")


@dataclass(frozen=True, slots=True)
class _Choice:
    """A place with its options in the order they are listed."""

    place: TwinPlace
    options: tuple[str, ...]
    true: int


class Twin:
    """Does the target prefer the document's true values to twins that differ in one value?

    In each of a few places the true value is ranked among alternatives of its kind by the
    probability that the target gives them. A target that never saw the document ranks the true
    value anywhere, so that the ranks give a p-value without a single known-outside document.

    That holds as far as the alternatives are exchangeable with the true value, which they are
    only nearly: people write true values, and those fit better than what is put in their place.
    Three things narrow the gap: alternatives are about as probable as the true value under the
    proxy; the proxy's own preference is taken off the target's; doubtful ranks count against
    membership. What the proxy does not know remains, such as a database of documents on the
    same subject that say the same value, or, where the target's model is much the better one,
    that a packaged word or an invented name makes no sense there. So hand over other texts of
    the same kind as ``background``, and hold ``p_exact`` against known-outside documents before
    relying on it, or calibrate the score with them, as with any other audit.

    Args:
        proxy: Must not have seen the target's database.
        config: Parameters.
        background: Texts of the document's kind, not in the database, whose names and words
            serve as alternatives; the packaged corpus where there are none.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.twin.probe.Twin"

    def __init__(
        self,
        proxy: LanguageModel,
        config: TwinConfig | None = None,
        *,
        background: Iterable[str] = (),
    ) -> None:
        self.proxy = proxy
        self.config = config or TwinConfig()
        found = harvest(background)
        self.background = found if any(found.values()) else None

    @property
    def name(self) -> str:
        """Registered name, with the access where it is text."""
        return "twin" if self.config.access == "logprobs" else "twin (text)"

    @property
    def requires(self) -> frozenset[Capability]:
        """Log-probabilities, or text alone."""
        logprobs = self.config.access == "logprobs"
        return frozenset({Capability.TOP_LOGPROBS if logprobs else Capability.TEXT})

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        config = self.config
        return {
            "places": f"at most {config.places}, with {config.alternatives} alternatives each",
            "alternatives": f"within {config.band:g} nats of the true value under the proxy",
            "drawn from": "the packaged corpus" if self.background is None else "texts given",
            "read from": "log-probabilities" if config.access == "logprobs" else "a choice",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        rng = random.Random(f"{config.seed}/{document.id}")
        places = find_places(document.text, self.proxy, config, rng, self.background)
        if len(places) < config.fewest_places:
            return Score(
                None,
                reason=f"{len(places)} of its values can be exchanged for others;"
                f" {config.fewest_places} are needed",
                details={"places": float(len(places))},
            )
        if config.access == "text":
            choices = [_shuffled(place, rng) for place in places]
            answers = yield [self._choice_query(choice) for choice in choices]
            return self._from_choices(choices, answers)
        answers = yield [self._query(place) for place in places]
        return self._from_ranks(places, answers)

    def _query(self, place: TwinPlace) -> Query:
        values = (place.value.text, *place.alternatives)
        return Query(
            self.config.prompt.replace("{prefix}", place.prefix),
            max_tokens=2 + max(self.proxy.count_tokens(value) for value in values),
            top_logprobs=self.config.top_logprobs,
        )

    def _choice_query(self, choice: _Choice) -> Query:
        lines = [f"{chr(ord('A') + i)}) {option}" for i, option in enumerate(choice.options)]
        # The options go in first: the document may itself say "{options}".
        asked = self.config.choice_prompt.replace("{options}", "\n".join(lines), 1)
        longest = max(self.proxy.count_tokens(option) for option in choice.options)
        return Query(asked.replace("{prefix}", choice.place.prefix, 1), max_tokens=longest + 6)

    def _from_ranks(self, places: Sequence[TwinPlace], answers: Sequence[Answer]) -> Score:
        troubles: Counter[str] = Counter()
        readings: list[PlaceReading] = []
        for place, answer in zip(places, answers, strict=True):
            trouble = place_trouble(answer, place, logprobs=True)
            if trouble is None:
                readings.append(read_place(place, answer))
            else:
                troubles[trouble] += 1
        details = _counts(len(places), troubles)
        if self._too_few(len(readings), len(places)):
            return _unscorable(len(places), troubles, details)
        # Rank of the true value among its alternatives, with the proxy's preference taken off.
        sizes = [len(reading.others) for reading in readings]
        ranks = [rank_of(*reading.adjusted()) for reading in readings]
        plain = [rank_of(*reading.plain()) for reading in readings]
        p_exact = rank_sum_p_value(ranks, sizes)
        order = sorted(range(len(readings)), key=lambda i: ranks[i] / (sizes[i] + 1))
        return Score(
            value=standardised_rank_sum(ranks, sizes),
            evidence=tuple(_evidence(readings[i].place, readings[i].true) for i in order),
            details={
                **details,
                "alternatives": float(sum(sizes)),
                "censored": float(sum(not reading.true.low > 0 for reading in readings)),
                "first": float(sum(rank == 1 for rank in ranks)),
                "p_exact": p_exact,
                "score/evidence": _evidence_of(p_exact),
                "score/unadjusted": standardised_rank_sum(plain, sizes),
                "score/gain": sum(_gain(reading) for reading in readings) / len(readings),
            },
        )

    def _from_choices(self, choices: Sequence[_Choice], answers: Sequence[Answer]) -> Score:
        troubles: Counter[str] = Counter()
        read: list[tuple[TwinPlace, bool]] = []
        no_choice = 0
        for choice, answer in zip(choices, answers, strict=True):
            trouble = place_trouble(answer, choice.place, logprobs=False)
            if trouble is not None:
                troubles[trouble] += 1
                continue
            # Prose that names no option, or several, is an answer, and not the true value.
            picked = chosen_option(answer.text, choice.options)
            no_choice += picked is None
            read.append((choice.place, picked == choice.true))
        details = _counts(len(choices), troubles)
        if self._too_few(len(read), len(choices)):
            return _unscorable(len(choices), troubles, details)
        hits = sum(hit for _, hit in read)
        # A target that knows nothing picks the true value with chance 1 / (m + 1).
        chances = [1 / (len(place.alternatives) + 1) for place, _ in read]
        pairs = zip(read, chances, strict=True)
        preferred = [max(chance, _share(place)) for (place, _), chance in pairs]
        p_exact = hits_p_value(hits, chances)
        ordered = sorted(read, key=lambda pair: not pair[1])
        return Score(
            value=standardised_hits(hits, chances),
            evidence=tuple(_evidence(p, Interval(float(hit), float(hit))) for p, hit in ordered),
            details={
                **details,
                "alternatives": float(sum(len(place.alternatives) for place, _ in read)),
                "first": float(hits),
                "no_choice": float(no_choice),
                "p_exact": p_exact,
                "score/evidence": _evidence_of(p_exact),
                "score/adjusted": standardised_hits(hits, preferred),
            },
        )

    def _too_few(self, readable: int, asked: int) -> bool:
        return readable < self.config.fewest_places or 2 * readable < asked


def _shuffled(place: TwinPlace, rng: random.Random) -> _Choice:
    options = [place.value.text, *place.alternatives]
    rng.shuffle(options)
    return _Choice(place, tuple(options), options.index(place.value.text))


def _counts(places: int, troubles: Counter[str]) -> dict[str, float]:
    return {"places": float(places), **{name: float(troubles[name]) for name in _TROUBLES}}


def _unscorable(places: int, troubles: Counter[str], details: dict[str, float]) -> Score:
    name, count = troubles.most_common(1)[0]
    said = name.replace("_", " ").replace("no logprobs", "without log-probabilities")
    return Score(None, reason=f"{count} of {places} answers were {said}", details=details)


def _share(place: TwinPlace) -> float:
    """The proxy's own probability of choosing the true value among the options."""
    top = max(place.true_logprob, *place.logprobs)
    weights = [math.exp(logprob - top) for logprob in place.logprobs]
    true = math.exp(place.true_logprob - top)
    return min(_NEARLY_SURE, true / (true + sum(weights)))


def _evidence_of(p: float) -> float:
    """-log10 p, for the least float where p underflows; never -0."""
    return abs(math.log10(max(p, sys.float_info.min)))


def _gain(reading: PlaceReading) -> float:
    """Log-odds of the true value against the mean alternative, upper bounds throughout.

    A member's true value is not censored, so that a bound costs little; it breaks the ties of
    ranks.
    """
    own = math.log(max(reading.true.high, _FLOOR)) - reading.place.true_logprob
    others = [
        math.log(max(p.high, _FLOOR)) - logprob
        for p, logprob in zip(reading.others, reading.place.logprobs, strict=True)
    ]
    return own - sum(others) / len(others)


def _evidence(place: TwinPlace, probability: Interval) -> Evidence:
    before = " ".join(word.text for word in split_words(place.prefix)[-_BEFORE:])
    return Evidence(place.value.text, before, probability, math.exp(place.true_logprob))
