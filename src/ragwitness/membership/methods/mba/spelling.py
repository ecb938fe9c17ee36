"""Misspelt words and what they were meant to be (§4.3.2, Alg. 1)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from ragwitness.core.errors import InputError
from ragwitness.models.base import TextScores, counted_characters
from ragwitness.models.hf import import_libraries, load_pretrained
from ragwitness.text.words import Word, core, split_words

# What one mask may cover, and which words the proxy's tokenizer breaks up (§4.3.1, Alg. 2).

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
    rank nor its probability may count. A word that no token touches is left out.

    Args:
        text: What was scored.
        scores: Its token scores by the proxy.
    """
    ranges = [counted_characters(text, *pair) for pair in scores.offsets.tolist()]
    ends = [end for _, end in ranges]
    found = []
    for index, word in enumerate(split_words(text)):
        stem = core(word.text)
        if not any(character.isalnum() for character in stem):
            continue
        start = word.start + word.text.index(stem)
        end = start + len(stem)
        first = bisect_right(ends, start)
        tokens = []
        while first < len(ranges) and ranges[first][0] < end:
            tokens.append(first)
            first += 1
        if tokens:
            found.append(
                MaskUnit(
                    index,
                    stem,
                    start,
                    end,
                    float(scores.logprobs[tokens].sum()),
                    int(scores.ranks[tokens].max()),
                    any(_continues(text, ranges[token], start) for token in tokens),
                )
            )
    return found


def token_units(text: str, scores: TextScores) -> list[MaskUnit]:
    """Return every token that holds a letter or digit: what is masked without Alg. 2.

    Of several tokens that spell one character only the first is kept.
    """
    words = split_words(text)
    starts = [word.start for word in words]
    found: list[MaskUnit] = []
    for token, (first, last) in enumerate(scores.offsets.tolist()):
        said = text[first:last]
        stem = core(said.strip())
        if not any(character.isalnum() for character in stem):
            continue
        start = first + said.index(stem)
        if len(stem.split()) > 1 or (found and start < found[-1].end):
            continue
        found.append(
            MaskUnit(
                bisect_right(starts, start) - 1,
                stem,
                start,
                start + len(stem),
                float(scores.logprobs[token]),
                int(scores.ranks[token]),
            )
        )
    return found


def _continues(text: str, token: tuple[int, int], start: int) -> bool:
    """Whether a token goes on with a word: it begins with a letter, "-" or "/" (Alg. 2, line 6).

    Digits and commas do not join, so "3.5" is not a fragmented word. The published loop also ends
    before it stores a word at the end of the text; this one is kept.
    """
    first = text[token[0]]
    return token[0] > start and (first.isalpha() or first in _JOINING)


_PLAIN = re.compile(r"[A-Za-z]+(?:['\u2019][A-Za-z]+)?")
_SHORTEST = 4  # "teh" has thirteen neighbours; a guess among them says nothing
_SENTENCE_END = ".?!:"
_AMERICAN = re.compile("ae|oe|our(?=$|s$|ed$|ing$|al|able|ite)|tre(?=s?$)")
_KNOWN_SHARE = 0.6  # of the longer words of an English text, names and jargon allowed for


class Speller(Protocol):
    """Corrects words."""

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """Return the word that was meant, or None where it is right or no word at all.

        Args:
            previous_two: The two words before it as they stand, fewer at the text's beginning.
            word: Without the punctuation at its ends.
        """

    def reads(self, text: str) -> bool:
        """Whether the text is in the speller's language."""


class LibrarySpeller:
    """The dictionary of symspellpy and its counts of word pairs (English, MIT), one edit away.

    Of the words that one edit makes, the one most often seen after the word before it is meant.
    That word is itself read after the one before it, so the three are corrected in order, as
    Alg. 1 hands them over. A capital in mid-sentence is a name and stays as it is; so do numbers,
    abbreviations, words of other scripts, and a plural that the dictionary lacks.
    """

    def __init__(self) -> None:
        self._closest = _symspellpy().Verbosity.CLOSEST

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """See :class:`Speller`."""
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
        found = _english().lookup(lower, self._closest, max_edit_distance=1)
        # The dictionary is British: "tumor" is right where it has "tumour".
        if not found or any(_AMERICAN.sub(_shorter, item.term) in forms for item in found):
            return None
        said = "" if opens else core(before)
        said = (self.correct(previous_two[:-1], said) or said).lower()
        counted = _english().bigrams
        meant = str(max(found, key=lambda c: (counted.get(f"{said} {c.term}", 0), c.count)).term)
        return meant.capitalize() if plain != lower else meant

    def reads(self, text: str) -> bool:
        """Whether most of its longer lower-case words stand in the dictionary."""
        found = {core(word.text) for word in split_words(text)}
        words = {word for word in found if word.islower() and len(word) >= _SHORTEST}
        known = sum(word in _english().words for word in words)
        return known >= _KNOWN_SHARE * len(words)


class SequenceSpeller:
    """A sequence-to-sequence corrector, handed the word with its two predecessors.

    Args:
        rewrite: From the three words to the corrected three.
    """

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        self._rewrite = rewrite

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """Alg. 1, lines 4-7. An answer of more or fewer words says nothing of this one."""
        if not any(character.isalpha() for character in word):
            return None
        asked = [*previous_two, word]  # line 4
        said = self._rewrite(" ".join(asked)).split()  # line 5
        if len(said) != len(asked):
            return None
        meant = core(said[-1])  # line 6
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
    """Return the correction of each misspelt fragmented word, by the number of its word (Alg. 1).

    Args:
        text: The document.
        units: Its words; only fragmented ones are looked at, for a tokenizer knows the others.
        speller: None corrects nothing.
    """
    # Alg. 1 corrects fragmented words alone: a word of one token is in the vocabulary.
    broken = [unit for unit in units if unit.fragmented]
    if speller is None or not broken or not speller.reads(text):
        return {}
    words: list[Word] = split_words(text)
    found = {}
    for unit in broken:
        # The two words before are the context in which a model corrects.
        previous = [word.text for word in words[max(0, unit.index - 2) : unit.index]]
        meant = speller.correct(previous, unit.text)
        if meant is not None:
            found[unit.index] = meant
    return found


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
        asked = tokenizer(words, return_tensors="pt")
        # A correction is about as long as what it corrects; a model that rambles is cut short.
        room = 2 * asked["input_ids"].shape[1] + 8
        with torch.inference_mode():
            said = model.generate(
                input_ids=asked["input_ids"],
                attention_mask=asked["attention_mask"],
                max_new_tokens=room,
                num_beams=1,
                do_sample=False,
            )
        return str(tokenizer.decode(said[0], skip_special_tokens=True))

    return SequenceSpeller(rewrite)
