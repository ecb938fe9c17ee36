"""Misspelt words and their corrections (§4.3.2, Alg. 1)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from ragwitness.core.errors import InputError
from ragwitness.models.base import TextScores, counted_characters
from ragwitness.models.hf import import_libraries, load_pretrained
from ragwitness.text.words import all_letters, core, letters_of, split_words

# The units of a text that a mask may cover; fragmented words (§4.3.1, Alg. 2).

_JOINING = "-/"


@dataclass(frozen=True, slots=True)
class MaskUnit:
    """A word without the punctuation at its ends, or a token of it.

    Attributes:
        index: Number of its word in the text.
        text: As it stands, ``document[start:end]``.
        start: First character.
        end: One past the last character.
        logprob: Sum over its tokens, in nats.
        rank: Largest rank among its tokens (Alg. 3, line 13), 0 for the most probable.
        fragmented: Whether the tokenizer broke it up (Alg. 2).
    """

    index: int
    text: str
    start: int
    end: int
    logprob: float
    rank: int
    fragmented: bool = False


def word_units(text: str, scores: TextScores) -> list[MaskUnit]:
    """Return every word that holds a letter or digit, with the scores of its own tokens.

    Punctuation at a word's ends is not part of it: it stays in the masked text, so neither its
    rank nor its probability may count. A word without a token is left out.

    Args:
        text: The scored text.
        scores: Its token scores by the proxy.
    """
    ranges = [counted_characters(text, *pair) for pair in scores.offsets.tolist()]
    begins, ends = [begin for begin, _ in ranges], [end for _, end in ranges]
    units = []
    for index, word in enumerate(split_words(text)):
        stem = core(word.text)
        start = word.start + word.text.index(stem)
        end = start + len(stem)
        # The tokens that overlap the word.
        first, last = bisect_right(ends, start), bisect_left(begins, end)
        if first < last and letters_of(stem):
            broken = any(_continues(text, begin, start) for begin in begins[first:last])
            logprob, rank = scores.logprobs[first:last].sum(), scores.ranks[first:last].max()
            units.append(MaskUnit(index, stem, start, end, float(logprob), int(rank), broken))
    return units


def token_units(text: str, scores: TextScores) -> list[MaskUnit]:
    """Return every token that holds a letter or digit: the units without Alg. 2.

    Of several tokens that spell one character only the first is kept.
    """
    starts = [word.start for word in split_words(text)]
    units: list[MaskUnit] = []
    for n, (first, last) in enumerate(scores.offsets.tolist()):
        stem = core(text[first:last].strip())
        start = text.index(stem, first)
        end = start + len(stem)
        # A character of several tokens counts once.
        if not letters_of(stem) or " " in stem or (units and start < units[-1].end):
            continue
        logprob, rank = float(scores.logprobs[n]), int(scores.ranks[n])
        index = bisect_right(starts, start) - 1
        units.append(MaskUnit(index, stem, start, end, logprob, rank))
    return units


def _continues(text: str, first: int, start: int) -> bool:
    """Whether a token continues a word: it begins with a letter, "-" or "/" (Alg. 2, line 6).

    Digits and commas do not join, so "3.5" is not a fragmented word. The published loop also ends
    before it stores a word at the end of the text; this one is kept.
    """
    return first > start and (all_letters(text[first]) or text[first] in _JOINING)


_PLAIN = re.compile(r"[A-Za-z]+(?:['\u2019][A-Za-z]+)?")
_SHORTEST = 4  # "teh" has thirteen neighbours; a guess among them says nothing
_SENTENCE_END = ".?!:"
_AMERICAN = re.compile("ae|oe|our(?=$|s$|ed$|ing$|al|able|ite)|tre(?=s?$)")
_KNOWN_SHARE = 0.6  # of the longer words of an English text, names and jargon allowed for


class Speller(Protocol):
    """Corrects words."""

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """Return the correct word, or None where it is right or no word at all.

        Args:
            previous_two: The two words before it, fewer at the text's beginning.
            word: Without the punctuation at its ends.
        """

    def reads(self, text: str) -> bool:
        """Whether the text is in the speller's language."""


class LibrarySpeller:
    """The dictionary of symspellpy and its counts of word pairs (English, MIT), one edit away.

    Of the words one edit away, the one seen most often after the preceding word is the
    correction. The preceding word is itself corrected after the one before it, in the order of
    Alg. 1. A capital in mid-sentence is a name and stays; so do numbers, abbreviations, words of
    other scripts, and a plural that the dictionary lacks.
    """

    def __init__(self) -> None:
        self._closest = _symspellpy().Verbosity.CLOSEST

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """See :class:`Speller`."""
        # 1. Words that are right, or no words: names, numbers, abbreviations.
        plain = word.replace("\u2019", "'")
        lower = plain.lower()
        if not _PLAIN.fullmatch(word) or len(word) < _SHORTEST:
            return None
        before = previous_two[-1] if previous_two else ""
        opens = not before or before.rstrip("\"'\u201d)")[-1:] in _SENTENCE_END
        if plain not in (lower, lower.capitalize()) or (plain != lower and not opens):
            return None
        forms = (lower, lower.removesuffix("'s"), lower.removesuffix("s"))
        if any(form in _english().words for form in forms):
            return None
        # 2. Words of the dictionary one edit away.
        candidates = _english().lookup(lower, self._closest, max_edit_distance=1)
        # The dictionary is British: "tumor" is right where it has "tumour".
        if not candidates or any(_AMERICAN.sub(_shorter, c.term) in forms for c in candidates):
            return None
        # 3. The one seen most often after the preceding word.
        context = "" if opens else core(before)
        context = (self.correct(previous_two[:-1], context) or context).lower()
        pairs = _english().bigrams
        best = max(candidates, key=lambda c: (pairs.get(f"{context} {c.term}", 0), c.count))
        return str(best.term.capitalize() if plain != lower else best.term)

    def reads(self, text: str) -> bool:
        """Whether the dictionary has most of its longer lower-case words."""
        stems = {core(word.text) for word in split_words(text)}
        words = {word for word in stems if word.islower() and len(word) >= _SHORTEST}
        return sum(word in _english().words for word in words) >= _KNOWN_SHARE * len(words)


class SequenceSpeller:
    """A sequence-to-sequence corrector, handed the word with its two predecessors.

    Args:
        rewrite: From the three words to the corrected three.
    """

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        self._rewrite = rewrite

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """Alg. 1, lines 4-7. An answer of more or fewer words says nothing of this one."""
        if not any(map(all_letters, word)):
            return None
        words = [*previous_two, word]  # line 4
        rewritten = self._rewrite(" ".join(words)).split()  # line 5
        if len(rewritten) != len(words):
            return None
        meant = core(rewritten[-1])  # line 6
        if not meant or meant.casefold() == word.casefold():  # line 7
            return None
        # The model opens with a capital whatever it is given.
        return meant.lower() if word.islower() else meant

    def reads(self, text: str) -> bool:
        """A model is taken at its word; choose one of the text's language."""
        return bool(text.strip())


def load_speller(spec: str) -> Speller | None:
    """Return the speller that :class:`MbaConfig` names; None for ``"none"``.

    Raises:
        InputError: symspellpy is not installed.
        MissingExtraError: A model is named and transformers is not installed.
        ModelError: The model cannot be loaded.
    """
    if spec == "none":
        return None
    return LibrarySpeller() if spec == "symspell" else _model(spec.removeprefix("hf:"))


def corrections(text: str, units: Sequence[MaskUnit], speller: Speller | None) -> dict[int, str]:
    """Return the correction of each misspelt fragmented word, by the word's number (Alg. 1).

    Args:
        text: The document.
        units: Its words; only fragmented ones are looked at, for a tokenizer knows the others.
        speller: None corrects nothing.
    """
    # Alg. 1 corrects fragmented words alone: a word of one token is in the vocabulary.
    broken = [unit for unit in units if unit.fragmented]
    if speller is None or not broken or not speller.reads(text):
        return {}
    words = [word.text for word in split_words(text)]
    # The two words before are the context in which a model corrects.
    corrected = {
        unit.index: speller.correct(words[max(0, unit.index - 2) : unit.index], unit.text)
        for unit in broken
    }
    return {index: word for index, word in corrected.items() if word is not None}


def _shorter(british: re.Match[str]) -> str:
    return {"ae": "e", "oe": "e", "our": "or", "tre": "ter"}[british.group()]


def _symspellpy() -> Any:
    try:
        import symspellpy
    except ImportError as error:
        raise InputError(
            "Spelling correction needs the package symspellpy, which is not installed.",
            "Install it with: pip install symspellpy; or choose spelling 'none'.",
        ) from error
    return symspellpy


@cache  # at the first word: it takes seconds
def _english() -> Any:
    # One edit: two would make "canestan" something else, and take four times as long to load.
    library = _symspellpy().SymSpell(max_dictionary_edit_distance=1)
    folder = files("symspellpy")
    library.load_dictionary(str(folder / "frequency_dictionary_en_82_765.txt"), 0, 1)
    library.load_bigram_dictionary(str(folder / "frequency_bigramdictionary_en_243_342.txt"), 0, 2)
    return library


@cache
def _model(name: str) -> SequenceSpeller:
    torch, transformers = import_libraries("The spelling corrector")
    tokenizer: Any = load_pretrained(transformers.AutoTokenizer, name)
    model: Any = load_pretrained(transformers.AutoModelForSeq2SeqLM, name)
    model.eval()

    def rewrite(words: str) -> str:
        tokens = tokenizer(words, return_tensors="pt")
        # A correction is about as long as its input; a model that rambles is cut short.
        room = 2 * tokens["input_ids"].shape[1] + 8
        with torch.inference_mode():
            output = model.generate(
                input_ids=tokens["input_ids"],
                attention_mask=tokens["attention_mask"],
                max_new_tokens=room,
                num_beams=1,
                do_sample=False,
            )
        return str(tokenizer.decode(output[0], skip_special_tokens=True))

    return SequenceSpeller(rewrite)
