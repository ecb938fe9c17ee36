"""MBA's parameters, the paper's beside ours, and its masks (§4.3.3, Alg. 3 and 4; Table 2).

The paper runs the proxy once per word and ranks the whole vocabulary each time. A single
teacher-forced pass over the text gives the same ranks, so one pass is run here, and a second where
words are misspelt. ``benchmarks/mask_ranks.py`` holds the literal loop and compares both. By the
pseudocode, line 34 gives the proxy a prefix that already holds earlier masks; by the prose, it is
"the subtexts before". A single pass sees the latter.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least, one_of, ordered
from ragwitness.membership.methods.mba.spelling import (
    MaskUnit,
    Speller,
    corrections,
    token_units,
    word_units,
)
from ragwitness.models.base import LanguageModel
from ragwitness.text.words import STOP_WORDS, split_words

MASK_PROMPT = (
    "Predict the answers of the masks in the given texts:\n\n{masked_document}\n\n"
    "You should strictly follow the contexts to answer, and provide your answers in the"
    ' specified format: "[Mask_i]: answer_i\n" for each mask.'
)
"""Fig. 6 without its slot for retrieved documents: the target adds its own."""

PUBLISHED_PROMPT = (
    "Predict the answers of the masks in the given texts:\n\n{masked_document}\n\n"
    "You should strictly follow the contexts below to answer, and provide your answers in the"
    ' specified format: "[Mask_i]: answer_i\n" for each mask:'
)
"""Fig. 6 word for word, up to where the retrieved documents follow."""

PUBLISHED_GAMMA = 0.5
"""§5.7.2: around 0.5 "is generally a good choice"; a target may guess more than that."""


_REMOVED_PROMPT = (
    "Choose {masks} single words in the text below that nobody could guess without having read"
    " it: names, numbers, technical terms, unusual words. Write the text out again word for word"
    " with the chosen words replaced by [Mask_1] to [Mask_{masks}] in reading order. Change"
    " nothing else and add nothing.\n\n{document}"
)  # of an option that was removed; keys of stored scores hold it


@dataclass(frozen=True, slots=True)
class MbaConfig:
    """How a document is masked, asked about and scored.

    Attributes:
        masks: M of Alg. 4. A text with fewer parts that hold a word worth a mask gets fewer.
        source: ``"proxy"`` is the paper's method; ``"proxy-only"`` masks the hardest *tokens*
            (MBA_PLM of Table 2: no fragmented words, no spelling). ``"random"`` masks random
            words, stop words among them.
        spelling: ``"symspell"`` (symspellpy, English), ``"none"`` (MBA w/o SC of Table 2), or
            ``"hf:NAME_OR_FOLDER"``, a sequence-to-sequence corrector; the paper's is
            ``hf:oliverguhr/spelling-correction-english-base``.
        skip_words: First words that are never masked (from the authors, by way of a
            re-implementation; not in the paper).
        unique_words: Prefer words that occur once in the text: a second, unmasked occurrence
            answers the mask (ours). False is the paper.
        avoid_adjacent: No two masks on neighbouring words (§4.3.3).
        max_chars: The text is cut at the last whole word within this many characters, as the
            re-implementation does; one query per document, whatever its length.
        min_masks: A document with fewer masks is unscorable.
        refusals: ``"lowest"`` (ours): an answer that declines has filled no mask, and one from
            which no answer can be read has no score; ``"read"``: either has filled none, as
            published.
        gamma: Decision at hits > gamma * M (§4.4), reported as ``gamma_member``; None leaves
            the decision to a calibration on documents outside.
        hit_probability: Of a right answer where the document is in context (weighted score).
        floor: Least probability of a right answer where it is not (weighted score).
        answer_tokens: Tokens per mask beyond those of the word itself.
        prompt: The user's question; must hold ``{masked_document}``.
        seed: Of ``source="random"``, together with the document's id.
    """

    stored_name: ClassVar[str] = "MbaConfig"
    later: ClassVar[tuple[str, ...]] = ("refusals",)
    removed: ClassVar[Mapping[str, tuple[str, object]]] = {
        "answer_tokens": ("top_logprobs", 0),
        "seed": ("mask_prompt", _REMOVED_PROMPT),
    }
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {
            "masks": 10,
            "skip_words": 5,
            "unique_words": False,
            "max_chars": 2048,
            "gamma": PUBLISHED_GAMMA,
            "refusals": "read",
            "prompt": PUBLISHED_PROMPT,
        }
    }

    masks: int = 10
    source: Literal["proxy", "proxy-only", "random"] = "proxy"
    spelling: str = "symspell"
    skip_words: int = 5
    unique_words: bool = True
    avoid_adjacent: bool = True
    max_chars: int = 2048
    min_masks: int = 3
    refusals: Literal["lowest", "read"] = "lowest"
    gamma: float | None = None
    hit_probability: float = 0.9
    floor: float = 0.05
    answer_tokens: int = 16
    prompt: str = MASK_PROMPT
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        one_of(self, "source", "proxy", "proxy-only", "random")
        one_of(self, "refusals", "lowest", "read")
        if not re.fullmatch("symspell|none|hf:.+", self.spelling):
            raise InputError(
                f"spelling must be 'symspell', 'none' or 'hf:NAME', not {self.spelling!r}."
            )
        at_least(self, 1, "masks", "max_chars", "min_masks", "answer_tokens")
        at_least(self, 0, "skip_words")
        ordered(self, "min_masks", "masks")
        if self.gamma is not None and not 0.0 < self.gamma <= 1.0:
            raise InputError(f"gamma must lie in (0, 1], not {self.gamma}.")
        if not 0.0 < self.floor < self.hit_probability < 1.0:
            raise InputError(
                "floor and hit_probability must rise within (0, 1), unlike"
                f" {self.floor} and {self.hit_probability}."
            )
        if "{masked_document}" not in self.prompt:
            raise InputError("The prompt must hold {masked_document}.")


# The masked text and its answers (§4.3.4).

MASK_LABEL = re.compile(r"\[\s*mask[\s_\-#]*\d*\s*\]", re.IGNORECASE)
"""A mask within a text."""

_BEFORE = 4  # words shown before a masked word


@dataclass(frozen=True, slots=True)
class Mask:
    """One masked word.

    Attributes:
        number: i of ``[Mask_i]``, from 1 in reading order.
        unit: The word and its scores under the proxy.
        answers: Right answers: the word, and its correction where it is misspelt.
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
    """

    original: str
    text: str
    masks: tuple[Mask, ...]


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
    # One teacher-forced pass gives every rank and probability (Alg. 3, lines 5-13).
    scores = proxy.score([text])[0]
    # The ablations of Table 2 correct nothing.
    if config.source == "proxy-only":
        return integrate(text, hardest_per_part(text, token_units(text, scores), config), {})
    units = word_units(text, scores)
    if config.source == "random":
        allowed = [unit for unit in units if unit.index >= config.skip_words]
        return integrate(text, rng.sample(allowed, min(config.masks, len(allowed))), {})
    corrected = _score_corrected(text, units, corrections(text, units, speller), proxy)  # line 1
    # Alg. 3, lines 1-4: a misspelt word counts with the rank of its correction.
    ranked = [replace(u, rank=corrected.get(u.index, u).rank) for u in units]
    return integrate(text, hardest_per_part(text, ranked, config), corrected)


def integrate(text: str, chosen: Sequence[MaskUnit], corrected: Mapping[int, MaskUnit]) -> Masked:
    """Put numbered masks in place of words (Alg. 4, lines 27-36).

    Punctuation at a word's ends stays in the text. The published pseudocode appends the word as
    an answer of its own after it was appended with its correction (line 32): a slip.

    Args:
        text: The document.
        chosen: The words to mask, in any order.
        corrected: Scored corrections, by the number of the misspelt word.
    """
    words = split_words(text)
    masks, pieces, position = [], [], 0
    for number, unit in enumerate(sorted(chosen, key=lambda unit: unit.start), start=1):
        pieces += [text[position : unit.start], f"[Mask_{number}]"]
        position = unit.end
        start = words[max(0, unit.index - _BEFORE)].start
        # The word itself and its correction are both right; the likelier one counts.
        right = [unit, *filter(None, [corrected.get(unit.index)])]
        probability = max(math.exp(min(0.0, answer.logprob)) for answer in right)
        answers = tuple(answer.text for answer in right)
        masks.append(Mask(number, unit, answers, probability, text[start : unit.start].strip()))
    return Masked(text, "".join([*pieces, text[position:]]), tuple(masks))


def cut(text: str, max_chars: int, proxy: LanguageModel) -> str:
    """Return the longest opening of whole words within ``max_chars`` that the proxy can read."""
    words = split_words(text)
    limit = max_chars
    while True:
        opening = text[: max((word.end for word in words if word.end <= limit), default=0)]
        tokens = proxy.count_tokens(opening) if opening else 0
        if tokens <= proxy.context_length:
            return opening
        limit = min(len(opening) - 1, int(len(opening) * proxy.context_length / tokens))


_MARKUP = re.compile(r"<[^<>]*>:?")
_CLITIC = re.compile(r"(n't|'(s|m|re|ve|ll|d))$")
_ALSO_STOPPED = STOP_WORDS | set(
    # With these, every whole word of NLTK's list, which the re-implementation takes.
    "myself ours ourselves yours yourself yourselves himself herself theirs themselves against"
    " etc e.g i.e vs ca wo sha ai let".split()
)


def hardest_per_part(text: str, units: Sequence[MaskUnit], config: MbaConfig) -> list[MaskUnit]:
    """Return the word of the largest rank in each of M parts of equal length (lines 2, 26).

    Parts are counted in words, after those that are never masked. A part without an eligible word
    has no mask. The published loop skips the first word of a part (lines 8 and 20); this one
    does not.

    Args:
        text: The document.
        units: Words, or tokens of them, in reading order.
        config: Number and rules of the masks.
    """
    total = len(split_words(text)) - config.skip_words
    counts = Counter(unit.text.casefold() for unit in units)

    def hardness(unit: MaskUnit) -> tuple[bool, int]:
        # A word that occurs a second time answers its own mask.
        return not config.unique_words or counts[unit.text.casefold()] == 1, unit.rank

    # Lines 11-12: neither stop words nor tags such as ``<human>:``.
    eligible = [
        unit
        for unit in units
        if not is_stop_word(unit.text)
        and not _MARKUP.match(text, max(0, unit.start - 1), unit.end + 2)
    ]
    chosen: list[MaskUnit] = []
    # Lines 2-26: M parts of equal length, the hardest word of each.
    for part_number in range(config.masks):
        low = config.skip_words + part_number * total // config.masks
        high = config.skip_words + (part_number + 1) * total // config.masks
        # No two masks side by side (lines 13-14), or in one word.
        if config.avoid_adjacent and chosen:
            low = max(low, chosen[-1].index + 2)
        allowed = [unit for unit in eligible if low <= unit.index < high]
        if allowed:
            chosen.append(max(allowed, key=hardness))
    return chosen


def is_stop_word(word: str) -> bool:
    """Whether a word is a function word, a contraction of one, or an abbreviation such as etc."""
    plain = word.casefold().replace("\u2019", "'")
    return plain in _ALSO_STOPPED or _CLITIC.sub("", plain) in _ALSO_STOPPED


def _score_corrected(
    text: str, units: Sequence[MaskUnit], corrected_words: Mapping[int, str], proxy: LanguageModel
) -> dict[int, MaskUnit]:
    """Score the corrections in one more pass: the text with all of them in place.

    The paper scores each after the text as it stands; here the misspelt words before it are
    corrected too, which makes one pass of many.
    """
    # The text with every correction in place.
    if not corrected_words:
        return {}
    pieces, position = [], 0
    for unit in units:
        if unit.index in corrected_words:
            pieces += [text[position : unit.start], corrected_words[unit.index]]
            position = unit.end
    corrected = "".join([*pieces, text[position:]])
    if proxy.count_tokens(corrected) > proxy.context_length:
        return {}
    # The scores of the corrected words alone.
    return {
        unit.index: replace(unit, text=corrected_words[unit.index])
        for unit in word_units(corrected, proxy.score([corrected])[0])
        if unit.index in corrected_words
    }
