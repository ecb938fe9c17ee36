"""Which words are masked (§4.3.3, Alg. 3 and 4), and the ablations of Table 2.

The paper runs the proxy once per word and ranks the whole vocabulary each time. Those ranks are
the ones of a single teacher-forced pass over the text, so one pass is all that is run here, and
one more where words are misspelt; ``benchmarks/mask_ranks.py`` holds the literal loop and
compares both. Read to the letter, line 34 hands the proxy a prefix in which earlier masks already
stand; the prose hands it "the subtexts before", which is what a single pass can see.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from ragwitness.core.errors import ModelError
from ragwitness.core.types import Message, Role
from ragwitness.membership.methods.mba.response_parsing import read_answers
from ragwitness.membership.methods.mba.settings import MbaConfig
from ragwitness.membership.methods.mba.spelling import (
    MaskUnit,
    Speller,
    corrections,
    token_units,
    word_units,
)
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.text.words import STOP_WORDS, core, split_words

# The masked text and its answers (§4.3.4).

MASK_LABEL = re.compile(r"\[\s*mask[\s_\-#]*\d*\s*\]", re.IGNORECASE)
"""A mask as it stands in a text."""

_BEFORE = 4  # words shown before a masked word


@dataclass(frozen=True, slots=True)
class Mask:
    """One masked word.

    Attributes:
        number: i of ``[Mask_i]``, from 1 in reading order.
        unit: The word and its scores under the proxy.
        answers: What counts as right: the word, and its correction where it is misspelt.
        probability: Of the word under the proxy, or of its correction where that is higher.
        before: The few words that precede it.
    """

    number: int
    unit: MaskUnit
    answers: tuple[str, ...]
    probability: float
    before: str


@dataclass(frozen=True, slots=True)
class Masked:
    """A document with its masks.

    Attributes:
        original: The text that was masked, cut at ``max_chars``.
        text: The same with ``[Mask_1]`` to ``[Mask_n]``.
        masks: In reading order.
        told: With ``source="llm"``, by name: masks that the proxy chose in its place
            (``fallback``), what it chose that can be no mask (``llm_astray``), whether it chose
            nothing at all (``llm_silent``).
    """

    original: str
    text: str
    masks: tuple[Mask, ...]
    told: Mapping[str, int] = field(default_factory=dict)


def integrate(
    text: str,
    chosen: Sequence[MaskUnit],
    meant: dict[int, tuple[str, float]],
    told: Mapping[str, int] | None = None,
) -> Masked:
    """Put numbered masks in place of words (Alg. 4, lines 27-36).

    Punctuation at a word's ends stays in the text. The published pseudocode appends the word as
    an answer of its own after it was appended with its correction (line 32): a slip.

    Args:
        text: The document.
        chosen: The words to mask, in any order.
        meant: Correction and its probability, by the number of the misspelt word.
        told: Carried into the result.
    """
    words = split_words(text)
    masks, pieces, position = [], [], 0
    for number, unit in enumerate(sorted(chosen, key=lambda unit: unit.start), start=1):
        pieces += [text[position : unit.start], f"[Mask_{number}]"]
        position = unit.end
        start = words[max(0, unit.index - _BEFORE)].start
        correction, probability = meant.get(unit.index, (None, 0.0))
        masks.append(
            Mask(
                number,
                unit,
                (unit.text,) if correction is None else (unit.text, correction),
                max(probability, math.exp(min(0.0, unit.logprob))),
                text[start : unit.start].strip(),
            )
        )
    return Masked(text, "".join([*pieces, text[position:]]), tuple(masks), told or {})


# Masks that a language model chooses by writing the masked text (Table 2, LLM-based).

_MASKED = "\0"  # no word of a document
_LABEL_TOKENS = 8


def llm_choice(
    text: str,
    units: Sequence[MaskUnit],
    spare: Sequence[MaskUnit],
    model: LanguageModel,
    config: MbaConfig,
) -> tuple[list[MaskUnit], dict[str, int]]:
    """Return the words to mask, and what became of the model's choice by name.

    A model answers with the masked text, or with the words it would mask, in any form in which a
    target may answer. A mask counts where the words around it are the document's and it stands
    for one word; a listed word counts where it first stands in the document. The others, and those
    the model never named, fall back to the proxy's choice, one by one.

    Args:
        text: The document.
        units: Its words.
        spare: What the proxy would mask.
        model: Writes the masked text.
        config: Number of masks and the prompt.

    Returns:
        The words, and the counts of :class:`Masked`.
    """
    places = {unit.index: unit for unit in units}
    written = _written(text, model, config)
    found = list(aligned_words(text, written))
    asked = max(len(MASK_LABEL.findall(written)), len(found))
    if not found:
        listed = read_answers(written, config.masks).values()
        first = {_key(unit.text): unit.index for unit in reversed(units)}
        found = [first[key] for one in listed if (key := _key(one.word)) in first]
        asked = max(asked, len(listed))
    chosen: list[MaskUnit] = []
    for index in found:
        unit = places.get(index)
        if unit is not None and index >= config.skip_words and _clear(unit, chosen, config):
            chosen.append(unit)
    astray, chosen = asked - len(chosen), chosen[: config.masks]
    own = len(chosen)
    for unit in sorted(spare, key=lambda unit: -unit.rank):
        if len(chosen) < config.masks and _clear(unit, chosen, config):
            chosen.append(unit)
    return chosen, {
        "fallback": len(chosen) - own,
        "llm_astray": astray,
        "llm_silent": int(not asked),
    }


def aligned_words(text: str, masked: str) -> Iterator[int]:
    """Yield the number of each word that a mask stands for, where the two texts align.

    Args:
        text: The document.
        masked: What the model wrote.
    """
    ours = [_key(word.text) for word in split_words(text)]
    theirs = [
        _MASKED if MASK_LABEL.search(word.text) else _key(word.text)
        for word in split_words(MASK_LABEL.sub("[Mask]", masked))
    ]
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, low, high, first, last in matcher.get_opcodes():
        # Only where as many words went as came can a mask be laid upon its word.
        if kind == "replace" and high - low == last - first:
            yield from (low + i for i in range(high - low) if theirs[first + i] == _MASKED)


def _written(text: str, model: LanguageModel, config: MbaConfig) -> str:
    asked = config.mask_prompt.replace("{masks}", str(config.masks)).replace("{document}", text)
    room = model.count_tokens(text) + _LABEL_TOKENS * config.masks
    prompt = ChatPrompt((Message(Role.USER, asked),))
    try:
        return model.generate([prompt], max_tokens=room)[0].text
    except ModelError:
        return ""  # it does not fit: every mask falls back, and is counted


def _clear(unit: MaskUnit, chosen: Sequence[MaskUnit], config: MbaConfig) -> bool:
    reach = 1 if config.avoid_adjacent else 0
    return all(abs(unit.index - other.index) > reach for other in chosen)


def _key(word: str) -> str:
    return (core(word) or word).casefold()


_MARKUP = re.compile(r"<[^<>]*>:?")
_CLITIC = re.compile(r"(n't|'(s|m|re|ve|ll|d))$")
_ALSO_STOPPED = STOP_WORDS | set(
    # With these, every whole word of NLTK's list, which the re-implementation takes.
    "myself ours ourselves yours yourself yourselves himself herself theirs themselves against"
    " etc e.g i.e vs ca wo sha ai let".split()
)


def mask_document(
    text: str,
    proxy: LanguageModel,
    config: MbaConfig,
    speller: Speller | None,
    rng: random.Random,
    model: LanguageModel | None = None,
) -> Masked:
    """Mask a document (Alg. 4).

    Args:
        text: The document.
        proxy: Language model that has not seen the target's database.
        config: Source, number and rules of the masks.
        speller: None corrects nothing.
        rng: Used by ``source="random"`` alone.
        model: Chooses with ``source="llm"``; None has the proxy do it.

    Raises:
        ModelError: The proxy failed.
    """
    text = cut(text, config.max_chars, proxy)
    if not text:
        return Masked("", "", ())
    # One teacher-forced pass gives every rank and probability (Alg. 3, lines 5-13).
    scores = proxy.score([text])[0]
    if config.source == "proxy-only":
        return integrate(text, hardest_per_part(text, token_units(text, scores), config), {})
    units = word_units(text, scores)
    if config.source == "random":
        return integrate(text, _random(units, config, rng), {})
    found = corrections(text, units, speller)  # line 1
    meant = _score_corrected(text, units, found, proxy)
    # Alg. 3, lines 1-4: a misspelt word counts with the rank of its correction.
    ranked = [replace(u, rank=meant[u.index].rank) if u.index in meant else u for u in units]
    chosen = hardest_per_part(text, ranked, config)
    told: Mapping[str, int] = {}
    if config.source == "llm":
        chosen, told = llm_choice(text, ranked, chosen, model or proxy, config)
    answers = {
        index: (found[index], math.exp(min(0.0, unit.logprob))) for index, unit in meant.items()
    }
    return integrate(text, chosen, answers, told)


def cut(text: str, max_chars: int, proxy: LanguageModel) -> str:
    """Return the longest opening of whole words within ``max_chars`` that the proxy can read."""
    words = split_words(text)
    limit = max_chars
    while True:
        fitting = [word for word in words if word.end <= limit]
        opening = text[: fitting[-1].end] if fitting else ""
        tokens = proxy.count_tokens(opening) if opening else 0
        if tokens <= proxy.context_length:
            return opening
        limit = min(len(opening) - 1, int(len(opening) * proxy.context_length / tokens))


def hardest_per_part(text: str, units: Sequence[MaskUnit], config: MbaConfig) -> list[MaskUnit]:
    """Return the word of the largest rank in each of M parts of equal length (lines 2, 26).

    Parts are counted in words, after those that are never masked. A part without an eligible word
    has no mask. The published loop never looks at a part's first word (lines 8 and 20); this one
    does.

    Args:
        text: The document.
        units: Words, or tokens of them, in reading order.
        config: Number and rules of the masks.
    """
    total = len(split_words(text)) - config.skip_words
    seen = Counter(unit.text.casefold() for unit in units)
    chosen: list[MaskUnit] = []
    # Alg. 4, lines 2-26: M parts of equal length, the hardest word of each.
    for part in range(config.masks):
        low = config.skip_words + part * total // config.masks
        high = config.skip_words + (part + 1) * total // config.masks
        allowed = [
            unit
            for unit in units
            if low <= unit.index < high and _eligible(text, unit, chosen, config)
        ]
        if allowed:
            chosen.append(max(allowed, key=lambda unit: (_alone(unit, seen, config), unit.rank)))
    return chosen


def is_stop_word(word: str) -> bool:
    """Whether a word is a function word, a contraction of one, or an abbreviation such as etc."""
    plain = word.casefold().replace("\u2019", "'")
    return plain in _ALSO_STOPPED or _CLITIC.sub("", plain) in _ALSO_STOPPED


def _alone(unit: MaskUnit, seen: Mapping[str, int], config: MbaConfig) -> bool:
    """A word that stands elsewhere too answers its own mask."""
    return not config.unique_words or seen[unit.text.casefold()] == 1


def _eligible(text: str, unit: MaskUnit, chosen: Sequence[MaskUnit], config: MbaConfig) -> bool:
    if is_stop_word(unit.text) or _in_markup(text, unit):  # lines 11-12
        return False
    # No two masks side by side (lines 13-14), or in one word.
    beside = any(abs(unit.index - other.index) <= 1 for other in chosen)
    return not (config.avoid_adjacent and beside)


def _in_markup(text: str, unit: MaskUnit) -> bool:
    """Whether the word is a tag, e.g. ``<human>:``."""
    start, end = unit.start, unit.end
    return bool(_MARKUP.match(text, max(0, start - 1), end + 2))


def _random(units: Sequence[MaskUnit], config: MbaConfig, rng: random.Random) -> list[MaskUnit]:
    """Random words, stop words among them (Table 2, Random)."""
    allowed = [unit for unit in units if unit.index >= config.skip_words]
    return rng.sample(allowed, min(config.masks, len(allowed)))


def _score_corrected(
    text: str, units: Sequence[MaskUnit], found: Mapping[int, str], proxy: LanguageModel
) -> dict[int, MaskUnit]:
    """Score the corrections in one more pass: the text with all of them in place.

    The paper scores each after the text as it stands; here the misspelt words before it are
    corrected too, which makes one pass of many.
    """
    if not found:
        return {}
    pieces, position = [], 0
    for unit in units:
        if unit.index in found:
            pieces += [text[position : unit.start], found[unit.index]]
            position = unit.end
    corrected = "".join([*pieces, text[position:]])
    if proxy.count_tokens(corrected) > proxy.context_length:
        return {}
    scored = word_units(corrected, proxy.score([corrected])[0])
    return {unit.index: unit for unit in scored if unit.index in found}
