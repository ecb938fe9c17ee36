"""The twin audit of one document, as a generator without I/O (ours)."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragwitness.membership.questions.values import harvest
from ragwitness.membership.twin.config import TwinConfig
from ragwitness.membership.twin.places import Place, find_places
from ragwitness.membership.twin.ranks import (
    hits_p_value,
    rank_of,
    rank_sum_p_value,
    standardised_hits,
    standardised_rank_sum,
)
from ragwitness.membership.twin.reading import (
    PlaceReading,
    chosen_option,
    read_place,
    trouble_with,
)
from ragwitness.models import LanguageModel
from ragwitness.text.words import split_words
from ragwitness.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
)

__all__ = ["Twin"]

_BEFORE = 4  # words shown before a deciding value
_FLOOR = 1e-6  # least probability that the gain tells apart
_NEARLY_SURE = 1 - 1e-9
_TROUBLES = ("failed", "refused", "empty", "no_logprobs", "repeated")


@dataclass(frozen=True, slots=True)
class _Choice:
    """A place with its options in the order they are listed."""

    place: Place
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

    def _query(self, place: Place) -> Query:
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

    def _from_ranks(self, places: Sequence[Place], answers: Sequence[Answer]) -> Score:
        troubles: Counter[str] = Counter()
        readings: list[PlaceReading] = []
        for place, answer in zip(places, answers, strict=True):
            trouble = trouble_with(answer, place, logprobs=True)
            if trouble is None:
                readings.append(read_place(place, answer))
            else:
                troubles[trouble] += 1
        details = _counts(len(places), troubles)
        if self._too_few(len(readings), len(places)):
            return _unscorable(len(places), troubles, details)
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
        read: list[tuple[Place, bool]] = []
        no_choice = 0
        for choice, answer in zip(choices, answers, strict=True):
            trouble = trouble_with(answer, choice.place, logprobs=False)
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


def _shuffled(place: Place, rng: random.Random) -> _Choice:
    options = [place.value.text, *place.alternatives]
    rng.shuffle(options)
    return _Choice(place, tuple(options), options.index(place.value.text))


def _counts(places: int, troubles: Counter[str]) -> dict[str, float]:
    return {"places": float(places), **{name: float(troubles[name]) for name in _TROUBLES}}


def _unscorable(places: int, troubles: Counter[str], details: dict[str, float]) -> Score:
    name, count = troubles.most_common(1)[0]
    said = name.replace("_", " ").replace("no logprobs", "without log-probabilities")
    return Score(None, reason=f"{count} of {places} answers were {said}", details=details)


def _share(place: Place) -> float:
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


def _evidence(place: Place, probability: Interval) -> Evidence:
    before = " ".join(word.text for word in split_words(place.prefix)[-_BEFORE:])
    return Evidence(place.value.text, before, probability, math.exp(place.true_logprob))
