"""The S-RAG audit of one document, as a generator without I/O (§4.2.2, §4.3)."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from ragwitness.membership.outcomes import named_trouble, opening_words
from ragwitness.membership.srag.alignment import Reading, read_probes
from ragwitness.membership.srag.config import SRagConfig
from ragwitness.membership.srag.features import counts, frequencies, log_odds, mean_log_odds
from ragwitness.membership.srag.reading import UNREAD, word_probability
from ragwitness.membership.srag.sampling import (
    all_alike,
    read_next_words,
    read_samples,
    samples_of,
)
from ragwitness.membership.srag.segment import Segmented, segment
from ragwitness.models import LanguageModel
from ragwitness.text.words import passages, split_words
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

__all__ = ["SRag"]

_ROOM = 16  # tokens beyond the proxy's count, for targets whose tokenizer counts more
_OPENING = 5  # words by which a repeated paragraph is recognised
_BEFORE = 4  # words shown before a deciding word


class SRag:
    """S-RAG: is a document in the database behind a RAG system?

    Args:
        proxy: Ranks words by difficulty; must not have seen the target's database.
        config: Mode and parameters.
    """

    learns = True

    def __init__(self, proxy: LanguageModel, config: SRagConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or SRagConfig()

    @property
    def requires(self) -> frozenset[Capability]:
        """Log-probabilities, or text where they are estimated from samples."""
        return frozenset({Capability.TEXT if self.config.sampled else Capability.TOP_LOGPROBS})

    @property
    def name(self) -> str:
        """Registered name with its mode."""
        n = self.config.sampled
        return f"s-rag ({self.config.mode}{f', {n} samples' if n else ''})"

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        config = self.config
        return {
            "probe words": f"hardest 1/{config.segment_factor} of the second half, "
            f"{'without' if config.skip_stop_words else 'with'} stop words",
            **(
                {"probabilities": f"shares of {config.sampled} samples, 95 % Clopper-Pearson"}
                if config.sampled
                else {"alternatives per token": str(config.top_logprobs)}
            ),
            "features": f"{config.features}, {config.intervals} intervals",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        parts = self._passages(document.text)
        if not parts:
            return Score(
                None, reason=f"no passage of {config.min_words} words or more that can be probed"
            )
        segments = [segment(part, self.proxy, config) for part in parts]
        segments = [part for part in segments if part.probes]
        if not segments:
            return Score(None, reason="no word of its second half is worth a query")
        batches = [self._queries(part) for part in segments]
        answers = yield [query for batch in batches for query in batch]
        if config.mode == "single":
            answers = yield from self._with_room_to_repeat(segments, batches, answers)
        alike = bool(config.sampled) and all_alike(answers, config.sampled)
        evidence: list[Evidence] = []
        readings: list[Reading] = []
        trouble: list[str] = []
        for part, batch in zip(segments, batches, strict=True):
            own, answers = answers[: len(batch)], answers[len(batch) :]
            found = self._read(part, own, trouble, alike=alike)
            if found is not None:
                readings.append(found)
                evidence += _evidence(part, found.probabilities)
        if not evidence:
            return Score(None, reason=trouble[0] if trouble else "no answer could be read")
        return self._score(evidence, readings, alike=alike)

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
        config = self.config
        if config.mode == "single":
            room = self.proxy.count_tokens(part.suffix) + _ROOM
            return self._asked(part.prefix, room)
        count = self.proxy.count_tokens
        return [
            query
            for p in part.probes
            for query in self._asked(
                part.before(p.word), max(config.word_tokens, count(p.word.text) + 1)
            )
        ]

    def _with_room_to_repeat(
        self,
        segments: Sequence[Segmented],
        batches: Sequence[Sequence[Query]],
        answers: Sequence[Answer],
    ) -> Generator[list[Query], list[Answer], list[Answer]]:
        """Ask again where a target says the first half once more and had no room to go on.

        "Output only the completed paragraph" can be read so; most targets just continue.
        """
        asked = [
            (part, query) for part, batch in zip(segments, batches, strict=True) for query in batch
        ]
        short = [i for i, (part, _) in enumerate(asked) if _cut_while_repeating(part, answers[i])]
        if not short:
            return list(answers)
        again = yield [
            replace(query, max_tokens=self.proxy.count_tokens(part.text) + _ROOM)
            for part, query in (asked[i] for i in short)
        ]
        longer = dict(zip(short, again, strict=True))
        return [longer.get(i, answer) for i, answer in enumerate(answers)]

    def _asked(self, prefix: str, max_tokens: int) -> list[Query]:
        """The query that a prefix makes, or its samples."""
        config = self.config
        query = Query(
            config.prompt.replace("{prefix}", prefix),
            max_tokens=max_tokens,
            top_logprobs=config.top_logprobs,
        )
        return samples_of(query, config.sampled) if config.sampled else [query]

    def _read(
        self, part: Segmented, answers: Sequence[Answer], trouble: list[str], *, alike: bool
    ) -> Reading | None:
        single, n = self.config.mode == "single", self.config.sampled
        starts = [part.half] if single else [probe.index for probe in part.probes]
        per_start = len(answers) // len(starts)
        problems = [
            named_trouble(
                answer, [word.text for word in part.words[starts[i // per_start] :]], logprobs=not n
            )
            for i, answer in enumerate(answers)
        ]
        trouble += [problem for problem in problems if problem]
        if sum(problem is not None for problem in problems) * 2 > len(problems):
            return None
        if n:
            usable = [
                [answers[i] for i in range(start, start + n) if problems[i] is None]
                for start in range(0, len(answers), n)
            ]
            if single:
                return read_samples(part, usable[0], alike=alike)
            return read_next_words(part, usable, alike=alike)
        if single:
            return read_probes(part, answers[0].tokens or ())
        return Reading(
            tuple(
                UNREAD if problem else word_probability(answer.tokens or (), probe.word.text)
                for problem, answer, probe in zip(problems, answers, part.probes, strict=True)
            )
        )

    def _score(
        self, evidence: Sequence[Evidence], readings: Sequence[Reading], *, alike: bool
    ) -> Score:
        m = self.config.intervals
        probabilities = [item.probability for item in evidence]
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
                "unread": float(sum(p == UNREAD for p in probabilities)),
                "censored": float(sum(self._censored(p) for p in probabilities)),
            }
            | (
                {"samples": float(self.config.sampled), "alike": float(alike)}
                if self.config.sampled
                else {}
            ),
        )

    def _censored(self, p: Interval) -> bool:
        """Whether only a bound is known: no list or, where all are intervals, no sample had it."""
        return p.low < p.high < 1.0 and not (self.config.sampled and p.low)


def _evidence(part: Segmented, probabilities: Sequence[Interval]) -> list[Evidence]:
    """Set each probability beside its word, the words before it and the proxy's."""
    found = []
    for probe, probability in zip(part.probes, probabilities, strict=True):
        start = part.words[max(0, probe.index - _BEFORE)].start
        before = part.text[start : probe.word.start].strip()
        found.append(Evidence(probe.word.text, before, probability, probe.baseline))
    return found


def _cut_while_repeating(part: Segmented, answer: Answer) -> bool:
    said = [word.text for word in split_words(answer.text)]
    opening = [word.text for word in part.words]
    same = opening_words(said, _OPENING) == opening_words(opening, _OPENING)
    return answer.finish_reason == "length" and same
