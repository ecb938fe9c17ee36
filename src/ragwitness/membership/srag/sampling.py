"""Word probabilities where a target gives none: the share of n sampled answers that say the word.

Each sample is a query of its own, with its own seed, so that caps, journal and resuming see every
one. What comes back is an exact interval, never a point: a word that none of n samples said may
still have a probability of up to 3.7 / n. See ``docs/design/sampling.md``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragwitness.membership.srag.alignment import Reading, align, gain, same_word
from ragwitness.membership.srag.reading import UNREAD
from ragwitness.membership.srag.segment import Segmented
from ragwitness.stats.intervals import proportion_interval
from ragwitness.text.words import core, split_words
from ragwitness.types import Answer, Interval, Query

__all__ = ["Tally", "all_alike", "read_next_words", "read_samples", "samples_of"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a word was said where it should stand.

    Attributes:
        hits: Samples that said it.
        trials: Samples that came to its place.
    """

    hits: int
    trials: int

    def interval(self, *, alike: bool = False) -> Interval:
        """Return the 95 % Clopper-Pearson interval of the word's probability.

        Args:
            alike: All samples were the same answer: they count as one, since nothing shows that
                they were drawn and not repeated.
        """
        hits, trials = (self.hits, self.trials) if not alike else _as_one(self)
        return Interval(*proportion_interval(hits, trials)) if trials else UNREAD


def samples_of(query: Query, n: int) -> list[Query]:
    """Return a query n times, to be answered at temperature 1 without log-probabilities.

    The seeds follow from prompt and number: other documents draw other numbers, and asking again
    is the same question.
    """
    return [
        replace(query, temperature=1.0, top_logprobs=0, seed=_seed(query.prompt, number))
        for number in range(n)
    ]


def all_alike(answers: Sequence[Answer], n: int) -> bool:
    """Whether no prompt got two different answers, n answers standing for each prompt.

    A target that is sure does that, and so does one that never samples or keeps its answers.
    """
    prompts = [answers[start : start + n] for start in range(0, len(answers), n)]
    return all(len({a.text for a in group if not a.error}) <= 1 for group in prompts)


def read_samples(
    segmented: Segmented, answers: Iterable[Answer], *, alike: bool = False
) -> Reading:
    """Read every suffix word from whole completions of a passage (single-answer mode).

    A sample is a trial for a word where it came to the word's place; which samples do so depends on
    the words before it, as in one answer that is read with its log-probabilities.

    Args:
        segmented: The passage and its probe words.
        answers: Samples that hold text.
        alike: As for :meth:`Tally.interval`.
    """
    hits: Counter[int] = Counter()
    trials: Counter[int] = Counter()
    recovered, runs = [], []
    for answer in answers:
        words = _whole_words(answer)
        aligned = align(segmented, words)
        recovered.append(aligned.recovered)
        runs.append(aligned.run)
        trials.update(list(aligned.places))  # a mapping would add its values
        hits.update(
            index
            for index, place in aligned.places.items()
            if same_word(words[place], segmented.words[index].text)
        )
    read = {i: Tally(hits[i], trials[i]).interval(alike=alike) for i in sorted(trials)}
    count = max(1, len(runs))
    return Reading(
        probabilities=tuple(read.get(probe.index, UNREAD) for probe in segmented.probes),
        recovered=sum(recovered) / count,
        run=round(sum(runs) / count),
        log_odds=gain(segmented, read),
    )


def read_next_words(
    segmented: Segmented, answers: Sequence[Sequence[Answer]], *, alike: bool = False
) -> Reading:
    """Read each probe word from the first words of its own samples (probing mode).

    Args:
        segmented: The passage and its probe words.
        answers: Samples that hold text, per probe word.
        alike: As for :meth:`Tally.interval`.
    """
    tallies = [
        _tally(probe.word.text, samples)
        for probe, samples in zip(segmented.probes, answers, strict=True)
    ]
    return Reading(tuple(tally.interval(alike=alike) for tally in tallies))


def _tally(word: str, samples: Iterable[Answer]) -> Tally:
    said = [first for sample in samples if (first := _first_word(sample, word)) is not None]
    return Tally(sum(same_word(first, word) for first in said), len(said))


def _first_word(answer: Answer, wanted: str) -> str | None:
    """The first word said; None where the end of the answer may have cut the wanted one."""
    words = [stem for word in split_words(answer.text) if (stem := core(word.text))]
    if not words:
        return ""
    cut = len(words) == 1 and answer.finish_reason == "length"
    return None if cut and core(wanted).casefold().startswith(words[0].casefold()) else words[0]


def _whole_words(answer: Answer) -> list[str]:
    """The words of an answer, without one that its end may have cut."""
    words = [word.text for word in split_words(answer.text)]
    whole = answer.finish_reason != "length" or answer.text[-1:].isspace()
    return words if whole else words[:-1]


def _as_one(tally: Tally) -> tuple[int, int]:
    return min(tally.hits, 1), min(tally.trials, 1)


def _seed(prompt: str, number: int) -> int:
    """31 bits: some servers take no more."""
    digest = hashlib.sha256(f"{number}\0{prompt}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1
