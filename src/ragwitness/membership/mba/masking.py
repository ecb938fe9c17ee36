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
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragwitness.membership.mba.config import MbaConfig
from ragwitness.membership.mba.fragments import Unit, token_units, word_units
from ragwitness.membership.mba.integrate import Masked, integrate
from ragwitness.membership.mba.llm import llm_choice
from ragwitness.membership.mba.spelling import Speller, corrections
from ragwitness.models import LanguageModel
from ragwitness.text.words import STOP_WORDS, split_words

__all__ = ["cut", "hardest_per_part", "is_stop_word", "mask_document"]

_MARKUP = re.compile(r"<[^<>]*>:?")
_CLITIC = re.compile(r"(n't|'(s|m|re|ve|ll|d))$")
_ALSO_STOPPED = STOP_WORDS | set("etc e.g i.e vs ca wo sha ai let".split())


def mask_document(
    text: str,
    proxy: LanguageModel,
    config: MbaConfig,
    speller: Speller | None,
    rng: random.Random,
) -> Masked:
    """Mask a document (Alg. 4).

    Args:
        text: The document.
        proxy: Language model that has not seen the target's database.
        config: Source, number and rules of the masks.
        speller: None corrects nothing.
        rng: Used by ``source="random"`` alone.

    Raises:
        ModelError: The proxy failed.
    """
    text = cut(text, config.max_chars, proxy)
    if not text:
        return Masked("", "", ())
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
    chosen, fallback = hardest_per_part(text, ranked, config), 0
    if config.source == "llm":
        chosen, fallback = llm_choice(text, ranked, chosen, proxy, config)
    answers = {
        index: (found[index], math.exp(min(0.0, unit.logprob))) for index, unit in meant.items()
    }
    return integrate(text, chosen, answers, fallback)


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


def hardest_per_part(text: str, units: Sequence[Unit], config: MbaConfig) -> list[Unit]:
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
    chosen: list[Unit] = []
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


def _alone(unit: Unit, seen: Mapping[str, int], config: MbaConfig) -> bool:
    """A word that stands elsewhere too answers its own mask."""
    return not config.unique_words or seen[unit.text.casefold()] == 1


def _eligible(text: str, unit: Unit, chosen: Sequence[Unit], config: MbaConfig) -> bool:
    if is_stop_word(unit.text) or _in_markup(text, unit):  # lines 11-12
        return False
    return not (config.avoid_adjacent and any(_neighbours(unit, other) for other in chosen))


def _neighbours(one: Unit, other: Unit) -> bool:
    """Whether two masks would stand side by side (lines 13-14), or in one word."""
    return abs(one.index - other.index) <= 1


def _in_markup(text: str, unit: Unit) -> bool:
    """Whether the word is a tag, e.g. ``<human>:``."""
    start, end = unit.start, unit.end
    return bool(_MARKUP.match(text, max(0, start - 1), end + 2))


def _random(units: Sequence[Unit], config: MbaConfig, rng: random.Random) -> list[Unit]:
    """Random words, stop words among them (Table 2, Random)."""
    allowed = [unit for unit in units if unit.index >= config.skip_words]
    return rng.sample(allowed, min(config.masks, len(allowed)))


def _score_corrected(
    text: str, units: Sequence[Unit], found: Mapping[int, str], proxy: LanguageModel
) -> dict[int, Unit]:
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
