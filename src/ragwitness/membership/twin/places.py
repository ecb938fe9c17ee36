"""Which values of a document are asked about, and what could stand there instead."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from ragwitness.errors import InputError
from ragwitness.kit.fields import at_least, one_of
from ragwitness.membership.questions.rules import (
    Kind,
    Rarity,
    Value,
    number_like,
    packaged_values,
    rarest,
)
from ragwitness.membership.reading.continuation import AUDIT_PROMPT
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.text.words import Word, core, split_words
from ragwitness.types import Message, Role

# Parameters of the twin audit.

CHOICE_PROMPT = """\
Complete the paragraph based on the [context]. Exactly one of these comes next:
{options}
Answer with that option alone.

{prefix}"""
"""What is asked of a target that shows no log-probabilities."""

_MOST_OPTIONS = 26
_FIELDS = (
    "places",
    "alternatives",
    "fewest_places",
    "fewest_alternatives",
    "pool",
    "max_prefix_words",
    "top_logprobs",
)


@dataclass(frozen=True, slots=True)
class TwinConfig:
    """How a document is compared with its twins.

    Attributes:
        places: Most places asked about, one query each.
        alternatives: m, most alternatives per place.
        access: ``"logprobs"`` ranks the true value by probability, ``"text"`` asks to choose.
        fewest_places: Documents with fewer readable places are unscorable.
        fewest_alternatives: Places with fewer are left out.
        band: Most nats by which an alternative may be more or less probable than the true
            value, in the same place, under the proxy.
        pool: Candidates that the alternatives of a place are chosen from.
        skip_words: Opening words that are never asked about.
        max_prefix_words: Words of the document sent before the value.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
        prompt: Asks for the continuation; must hold ``{prefix}``. S-RAG's.
        choice_prompt: Asks to choose; must hold ``{prefix}`` and ``{options}``.
        seed: Of the choice of alternatives and of their order, with the document's id.
    """

    stored_name: ClassVar[str] = "TwinConfig"

    places: int = 8
    alternatives: int = 9
    access: Literal["logprobs", "text"] = "logprobs"
    fewest_places: int = 2
    fewest_alternatives: int = 3
    band: float = 3.0
    pool: int = 32
    skip_words: int = 5
    max_prefix_words: int = 120
    top_logprobs: int = 20
    prompt: str = AUDIT_PROMPT
    choice_prompt: str = CHOICE_PROMPT
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        at_least(self, 1, *_FIELDS)
        if self.fewest_places > self.places:
            raise InputError(
                f"fewest_places must be at most places ({self.places}), not {self.fewest_places}."
            )
        if self.fewest_alternatives > self.alternatives:
            raise InputError(
                f"fewest_alternatives must be at most alternatives ({self.alternatives}),"
                f" not {self.fewest_alternatives}."
            )
        one_of(self, "access", "logprobs", "text")
        if self.access == "text" and self.alternatives > _MOST_OPTIONS - 1:
            raise InputError(
                f"alternatives must be at most {_MOST_OPTIONS - 1} where they are listed by letter,"
                f" not {self.alternatives}."
            )
        at_least(self, 0, "skip_words")
        if not self.band > 0:
            raise InputError(f"band must be above 0, not {self.band}.")
        if "{prefix}" not in self.prompt:
            raise InputError("prompt must hold {prefix}.")
        if "{prefix}" not in self.choice_prompt or "{options}" not in self.choice_prompt:
            raise InputError("choice_prompt must hold {prefix} and {options}.")


Background: TypeAlias = Mapping[Kind, Sequence[str]]
"""Values that alternatives are drawn from, by kind."""

_TWO_DIGITS = 90  # numbers of one or two digits are few; drawing more often finds no more
_LIKE_LENGTH = 2
_WINDOW = 60  # words the proxy reads before a value
_TASK = "Continue the text."


@dataclass(frozen=True, slots=True)
class TwinPlace:
    """A true value with its twins.

    Attributes:
        prefix: What is sent before the value, verbatim.
        value: The true value.
        alternatives: Values of the same kind that the proxy finds about as probable here.
        true_logprob: log p of the true value under the proxy, in nats.
        logprobs: The same for each alternative.
    """

    prefix: str
    value: Value
    alternatives: tuple[str, ...]
    true_logprob: float
    logprobs: tuple[float, ...]


def find_places(
    text: str,
    proxy: LanguageModel,
    config: TwinConfig,
    rng: random.Random,
    background: Background | None = None,
) -> list[TwinPlace]:
    """Choose places and their alternatives; at most ``config.places``, in reading order.

    Rarer values come first, since a target without the document has less chance to know them.
    A value that was said before is left out: the query itself would say it again.

    Args:
        text: The document.
        proxy: Must not have seen the target's database.
        config: How many, how alike.
        rng: Draws the candidates.
        background: Values of other texts by kind; the packaged corpus's where None.
    """
    pool = background or {kind: packaged_values(kind) for kind in get_args(Kind)}
    words = split_words(text)
    # 1. Values that are rare, were not said before, and do not stand side by side.
    rarity = Rarity(proxy, text)
    fresh = _fresh(words, rarity.values, config.skip_words)
    chosen: list[TwinPlace] = []
    # rarest() gives reading order; its whole list sorted again gives the order of trial.
    trial = sorted(rarest(rarity, fresh, len(fresh)), key=lambda v: -rarity.of(v.text))
    taken: set[int] = set()
    for value in trial:
        if len(chosen) == config.places:
            break
        if taken & {value.index - 1, value.index, value.index + 1}:
            continue
        place = _place(text, words, value, rarity.values, proxy, config, rng, pool)
        if place is not None:
            chosen.append(place)
            taken.add(value.index)
    return sorted(chosen, key=lambda place: place.value.index)


def _fresh(words: Sequence[Word], values: Sequence[Value], skip: int) -> list[Value]:
    """Return values that are not among the first words and were not said before."""
    first: dict[str, int] = {}
    for index, word in enumerate(words):
        first.setdefault(core(word.text).casefold(), index)
    return [
        value
        for value in values
        if value.index >= skip and first.get(value.text.casefold()) == value.index
    ]


def _place(
    text: str,
    words: Sequence[Word],
    value: Value,
    values: Sequence[Value],
    proxy: LanguageModel,
    config: TwinConfig,
    rng: random.Random,
    pool: Background,
) -> TwinPlace | None:
    start = words[max(0, value.index - config.max_prefix_words)].start
    prefix = text[start : value.start]
    said = {core(word.text).casefold() for word in words[: value.index]}
    # 2. Candidates of the same kind and form.
    candidates = _candidates(value, values, said, pool[value.kind], config.pool, rng)
    if len(candidates) < config.fewest_alternatives:
        return None
    window = words[max(0, value.index - _WINDOW)].start
    # 3. The proxy rates them in place; those about as probable as the true value stay.
    logprobs = _in_place(text[window : value.start], [value.text, *candidates], proxy)
    if logprobs is None:
        return None
    true, others = logprobs[0], logprobs[1:]
    pairs = [
        (candidate, logprob)
        for candidate, logprob in zip(candidates, others, strict=True)
        if abs(logprob - true) <= config.band
    ]
    # Nearest under the proxy first; the candidates' random order breaks ties.
    pairs.sort(key=lambda pair: abs(pair[1] - true))
    pairs = pairs[: config.alternatives]
    if len(pairs) < config.fewest_alternatives:
        return None
    return TwinPlace(
        prefix.rstrip(), value, tuple(a for a, _ in pairs), true, tuple(p for _, p in pairs)
    )


def _candidates(
    value: Value,
    values: Sequence[Value],
    said: set[str],
    background: Sequence[str],
    n: int,
    rng: random.Random,
) -> list[str]:
    """Draw values of the same kind that the prefix does not say, each once.

    Half of them, where it has so many, are the document's own: they fit its subject.
    """
    if value.kind == "number":
        drawn = [number_like(value.text, rng) for _ in range(max(4 * n, _TWO_DIGITS))]
    else:
        own = [v.text for v in values if v.kind == value.kind]
        others = [
            word
            for word in background
            if abs(len(word) - len(value.text)) <= _LIKE_LENGTH
            and word.isascii() == value.text.isascii()
        ]
        rng.shuffle(own)
        drawn = own[: n // 2] + rng.sample(others, min(n, len(others))) + own[n // 2 :]
    seen = {value.text.casefold(), *said}
    found: list[str] = []
    for candidate in drawn:
        if candidate.casefold() not in seen and len(found) < n:
            seen.add(candidate.casefold())
            found.append(candidate)
    return found


def _in_place(before: str, candidates: Sequence[str], proxy: LanguageModel) -> list[float] | None:
    """Return log p of each candidate behind the same words; None where the proxy cannot read.

    The words before are handed over as already said, so that a model with a prefix cache reads
    them once.
    """
    room = proxy.context_length // 2
    while before and proxy.count_tokens(before) > room:
        words = split_words(before)
        before = before[words[len(words) // 2].start :] if len(words) > 1 else ""
    said = before.rstrip()
    texts = [before[len(said) :] + candidate for candidate in candidates]
    if max(map(proxy.count_tokens, texts)) > room // 2:
        return None
    prompt = ChatPrompt((Message(Role.USER, _TASK),), said)
    scores = proxy.score(texts, after=[prompt] * len(texts))
    return [float(score.logprobs.sum()) for score in scores]
