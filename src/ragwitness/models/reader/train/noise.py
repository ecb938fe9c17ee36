r"""Make clean words look like text found in the wild, and turns words into pieces.

A *piece* is a word with the white space before it (`" word"`, `"\n\nword"`). Pieces concatenate to
the text, and tokenising them one by one gives the same tokens as tokenising the text, because the
tokenizer never joins across the start of a word.
"""

from __future__ import annotations

import random
import re

from .grammar import invented

__all__ = ["STYLES", "style", "to_pieces"]

BREAK = "\n\n"
STYLES = ("clean", "chat", "spaced", "invented", "broken")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_EDGE = re.compile(r"^([(\[\"'“\u2018]*)(.*?)([.,;:!?)\]\"'”\u2019]*)$", re.DOTALL)


def _typo(word: str, rng: random.Random) -> str:
    if len(word) < 4:
        return word
    place = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return word[:place] + word[place + 1 :]
    if kind == 1:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == 2:
        return word[:place] + rng.choice(_LETTERS) + word[place:]
    return word[:place] + rng.choice(_LETTERS) + word[place + 1 :]


def _chat(words: list[str], rng: random.Random) -> list[str]:
    """Hasty typing: capitals, stops and spaces go missing, words are misspelt."""
    lower, drop = rng.random() < 0.6, rng.uniform(0, 0.7)
    typo, join = rng.uniform(0, 0.08), rng.choice([0.0, 0.0, 0.3, 0.9])
    result: list[str] = []
    glue = False
    for word in words:
        text = word.lower() if lower else word
        if rng.random() < typo:
            text = _typo(text, rng)
        if text[-1:] in ".,;!?" and len(text) > 1 and rng.random() < drop:
            text = text[:-1]
        if glue:
            result[-1] += text.strip()
        else:
            result.append(text)
        # "pain.I have": the space after a full stop is lost, as in scraped dialogues.
        glue = text[-1:] in ".?!," and rng.random() < join
    return result


def _spaced(words: list[str], rng: random.Random) -> list[str]:
    """Punctuation as words of its own, as in WikiText (" , ", " @-@ ")."""
    unknown = rng.choice([0.0, 0.03])
    result: list[str] = []
    for word in words:
        lead = BREAK if word.startswith(BREAK) else ""
        match = _EDGE.match(word.strip())
        before, core, after = match.groups() if match else ("", word, "")
        core = re.sub(r"(?<=\w)-(?=\w)", " @-@ ", core)
        core = re.sub(r"(?<=\d),(?=\d)", " @,@ ", core)
        core = re.sub(r"(?<=\d)\.(?=\d)", " @.@ ", core)
        core = re.sub(r"(?<=\w)('s|'t)$", r" \1", core)
        if rng.random() < unknown:
            core = "<unk>"
        parts = [*before, *core.split(), *after]
        if parts:
            result.append(lead + parts[0])
            result.extend(parts[1:])
    return result


def _with_inventions(words: list[str], rng: random.Random) -> list[str]:
    """Some words become invented ones, the same word always the same way."""
    share, table = rng.uniform(0.03, 0.25), dict[str, str]()
    result = []
    for word in words:
        match = _EDGE.match(word)
        before, core, after = match.groups() if match else ("", word, "")
        if len(core) > 3 and core.isalpha():
            if core not in table:
                new = invented(rng, rng.randint(1, 3))
                swap = rng.random() < share
                table[core] = (new.capitalize() if core[0].isupper() else new) if swap else core
            result.append(before + table[core] + after)
        else:
            result.append(word)
    return result


def _broken(words: list[str], rng: random.Random) -> list[str]:
    """Line and paragraph breaks after some sentences, as in articles and e-mails."""
    share, gap = rng.uniform(0.2, 1.0), rng.choice(["\n", BREAK, BREAK])
    result: list[str] = []
    for index, word in enumerate(words):
        ended = index > 0 and words[index - 1][-1:] in '.!?"' and not word.startswith("\n")
        result.append(gap + word if ended and rng.random() < share else word)
    return result


def style(words: list[str], name: str, rng: random.Random) -> list[str]:
    """Apply one of ``STYLES`` to ``words``; an unknown name raises ``KeyError``."""
    if name == "clean" or not words:
        return list(words)
    table = {"chat": _chat, "spaced": _spaced, "invented": _with_inventions, "broken": _broken}
    return table[name](words, rng)


def to_pieces(words: list[str], keep_breaks: bool) -> list[str]:
    """Words as pieces; the first one always opens with a single space."""
    pieces = [
        word if keep_breaks and word.startswith("\n") else " " + word.strip() for word in words
    ]
    if pieces:
        pieces[0] = " " + pieces[0].strip()
    return pieces
