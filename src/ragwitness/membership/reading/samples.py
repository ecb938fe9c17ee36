"""Word probabilities where a target gives none: the share of n sampled answers that say the word.

Each sample is a query of its own, with its own seed, so that caps, journal and resuming see every
one. What comes back is an exact interval, never a point: a word that none of n samples said may
still have a probability of up to 3.7 / n. See ``docs/design/sampling.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragwitness.crypto.hashing import sampling_seed
from ragwitness.membership.reading.answers import Outcome, read_answer, read_continuation
from ragwitness.membership.reading.continuation import said_at, same_word
from ragwitness.membership.reading.probabilities import UNREAD
from ragwitness.stats.intervals import proportion_interval
from ragwitness.text.words import core, split_words
from ragwitness.types import Answer, Interval, Query


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
        hits, trials = (min(n, 1) if alike else n for n in (self.hits, self.trials))
        return Interval(*proportion_interval(hits, trials)) if trials else UNREAD


def samples_of(query: Query, n: int) -> list[Query]:
    """Return a query n times, to be answered at temperature 1 without log-probabilities.

    The seeds follow from prompt and number: other documents draw other numbers, and asking again
    is the same question.
    """
    return [
        replace(query, temperature=1.0, top_logprobs=0, seed=sampling_seed(query.prompt, number))
        for number in range(n)
    ]


def all_alike(answers: Sequence[Answer], n: int) -> bool:
    """Whether no prompt got two different answers, n answers standing for each prompt.

    A target that is sure does that, and so does one that never samples or keeps its answers.
    """
    # Answers come prompt by prompt, n each, as samples_of asks for them.
    prompts = [answers[start : start + n] for start in range(0, len(answers), n)]
    return all(len({a.text for a in group if not a.error}) <= 1 for group in prompts)


def tally_next_words(samples: Iterable[Answer], word: str, before: str) -> Tally:
    """Count how many samples go on with a word."""
    # A sample that never came to the word is not a trial: it would count as a miss.
    said = [hit for sample in samples if (hit := _says(sample, word, before)) is not None]
    return Tally(sum(said), len(said))


def _says(answer: Answer, wanted: str, before: str) -> bool | None:
    """Whether the word is said; None where the end of the answer may have cut it."""
    reading = read_continuation(answer, before, wanted)
    if reading.outcome is Outcome.FAILED:
        return None
    words = [word for word in split_words(reading.text) if core(word.text)]
    # Cut short by the length limit, it may have been the beginning of the wanted word.
    if len(words) == 1 and answer.finish_reason == "length":
        cut = core(words[0].text).casefold()
        return None if core(wanted).casefold().startswith(cut) else False
    return any(
        same_word(words[n].text, wanted) for n in said_at(words, wanted, before)[: len(words)]
    )


def whole_words(answer: Answer, before: str) -> list[str] | None:
    """The words of an answer, without one that its end may have cut; None where it failed."""
    if read_continuation(answer, before).outcome is Outcome.FAILED:
        return None
    text = read_answer(answer).text
    words = [word.text for word in split_words(text)]
    whole = answer.finish_reason != "length" or answer.text[-1:].isspace()
    return words if whole else words[:-1]
