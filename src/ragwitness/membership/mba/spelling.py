"""Misspelt words and what they were meant to be (§4.3.2, Alg. 1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ragwitness.errors import InputError
from ragwitness.membership.mba.fragments import Unit
from ragwitness.models.hf_loading import import_libraries, load_pretrained
from ragwitness.text.words import Word, core, split_words

if TYPE_CHECKING:
    from spellchecker import SpellChecker

__all__ = ["LibrarySpeller", "SequenceSpeller", "Speller", "corrections", "load_speller"]

_PLAIN = re.compile(r"[A-Za-z]+(?:['\u2019][A-Za-z]+)?")
_SHORTEST = 4  # "teh" has thirteen neighbours; a guess among them says nothing
_SENTENCE_END = ".?!:"
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
    """The dictionary of pyspellchecker (English, MIT), one edit away.

    A capital in mid-sentence is a name and stays as it is; so do numbers, abbreviations and
    words of other scripts. A plural that the dictionary lacks is no mistake.
    """

    def __init__(self) -> None:
        self._library = _english()

    def correct(self, previous_two: Sequence[str], word: str) -> str | None:
        """See :class:`Speller`; the words before it tell where a sentence begins."""
        plain = word.replace("\u2019", "'")
        lower = plain.lower()
        if not _PLAIN.fullmatch(word) or len(word) < _SHORTEST:
            return None
        opens = not previous_two or previous_two[-1].rstrip("\"'\u201d)")[-1:] in _SENTENCE_END
        if plain not in (lower, lower.capitalize()) or (plain != lower and not opens):
            return None
        if {lower, lower.removesuffix("'s"), lower.removesuffix("s")} & self._known(lower):
            return None
        meant = self._library.correction(lower)
        if not meant or meant == lower:
            return None
        return meant.capitalize() if plain != lower else meant

    def reads(self, text: str) -> bool:
        """Whether most of its longer lower-case words stand in the dictionary."""
        found = {core(word.text) for word in split_words(text)}
        words = {word for word in found if word.islower() and len(word) >= _SHORTEST}
        known: set[str] = set(self._library.known(words))
        return len(known) >= _KNOWN_SHARE * len(words)

    def _known(self, lower: str) -> set[str]:
        forms = [lower, lower.removesuffix("'s"), lower.removesuffix("s")]
        return set(self._library.known(forms))


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
        InputError: pyspellchecker is not installed.
        MissingExtraError: A model is named and transformers is not installed.
        ModelError: The model cannot be loaded.
    """
    if spec == "none":
        return None
    return LibrarySpeller() if spec == "library" else _model(spec.removeprefix("hf:"))


def corrections(text: str, units: Sequence[Unit], speller: Speller | None) -> dict[int, str]:
    """Return the correction of each misspelt fragmented word, by the number of its word (Alg. 1).

    Args:
        text: The document.
        units: Its words; only fragmented ones are looked at, for a tokenizer knows the others.
        speller: None corrects nothing.
    """
    broken = [unit for unit in units if unit.fragmented]
    if speller is None or not broken or not speller.reads(text):
        return {}
    words: list[Word] = split_words(text)
    found = {}
    for unit in broken:
        previous = [word.text for word in words[max(0, unit.index - 2) : unit.index]]
        meant = speller.correct(previous, unit.text)
        if meant is not None:
            found[unit.index] = meant
    return found


@cache
def _english() -> SpellChecker:
    try:
        from spellchecker import SpellChecker
    except ImportError as error:
        raise InputError(
            "Spelling correction needs the package pyspellchecker, which is not installed.",
            "Install it with: pip install pyspellchecker; or choose spelling 'none'.",
        ) from error
    return SpellChecker(language="en", distance=1)


@cache
def _model(name: str) -> SequenceSpeller:
    torch, transformers = import_libraries("The spelling corrector")
    tokenizer: Any = load_pretrained(transformers.AutoTokenizer, name)
    model: Any = load_pretrained(transformers.AutoModelForSeq2SeqLM, name)
    model.eval()

    def rewrite(words: str) -> str:
        asked = tokenizer(words, return_tensors="pt")
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
