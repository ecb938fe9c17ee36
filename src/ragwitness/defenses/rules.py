"""A rewrite by rules, where no language model is at hand that can paraphrase.

It is a stand-in: it changes the words and the order of clauses as a paraphrase does, but it
knows no meaning, and a good model changes more. Text in other languages than English comes
back as it was, and so do names, numbers and anything in brackets.
"""

from __future__ import annotations

import re

from ragwitness.defenses.synonyms import FILLERS, SUBSTITUTES
from ragwitness.text.words import STOP_WORDS

__all__ = ["RULES_VERSION", "rule_rewrite"]

RULES_VERSION = 1
"""Changes whenever a text may be rewritten differently."""

_OPENERS = "because|although|though|unless|whenever|while|when|if"
_SENTENCE_END = re.compile(r"((?<=[.!?])\s+|\n+)")
_LEADING = re.compile(rf"({_OPENERS})\s+([^,]+),\s+([^,]+)", re.IGNORECASE)
_MEDIAL = re.compile(rf"([^,]+?),?\s+({_OPENERS})\s+([^,]+)")
_ASKS_WHETHER = re.compile(r"\b(know|knows|wonder|wondering|ask|asked|see|sure|tell|as)$", re.I)
_FEWEST_WORDS = 2

_EDGE = r"(?<![\w@./'\-\[<])"
_NO_MORE = r"(?![\w@'\-\]>]|[./:]\w)"
_PHRASES = "|".join(
    re.escape(phrase).replace("'", "['\u2019]").replace(r"\ ", r"\s+")
    for phrase in sorted(SUBSTITUTES, key=len, reverse=True)
)
_SUBSTITUTE = re.compile(rf"{_EDGE}(?:(an?)\s+)?({_PHRASES}){_NO_MORE}", re.IGNORECASE)
_FILLER = re.compile(rf"{_EDGE}(?:{'|'.join(sorted(FILLERS))}){_NO_MORE}[ \t]+", re.IGNORECASE)
_FIRST_PERSON = re.compile("I['\u2019]")
_SOUNDS_LIKE_A_CONSONANT = ("uni", "use", "eu", "one")


def rule_rewrite(text: str, *, clauses: bool = True, fillers: bool = True) -> str:
    """Return the text in other words.

    Args:
        text: One or more sentences.
        clauses: Whether a subordinate clause changes places with its main clause.
        fillers: Whether words a sentence can do without are dropped.
    """
    pieces = _SENTENCE_END.split(text)
    # Sentences stand at even places, what separates them at odd ones.
    return "".join(
        piece if place % 2 else _sentence(piece, clauses, fillers)
        for place, piece in enumerate(pieces)
    )


def _sentence(text: str, clauses: bool, fillers: bool) -> str:
    if clauses:
        text = _swap_clauses(text)
    if fillers:
        text = _keep_capital(text, _FILLER.sub("", text))
    return _SUBSTITUTE.sub(_substitute, text)


def _swap_clauses(sentence: str) -> str:
    """Turn "If A, B." into "B if A." and "B because A." into "Because A, B."."""
    body = sentence.rstrip(".!?")
    end = sentence[len(body) :]
    leading = _LEADING.fullmatch(body)
    if leading:
        opener, side, main = leading.groups()
        if _long_enough(side, main):
            return f"{_capital(main)} {opener.lower()} {side}{end}"
        return sentence
    medial = _MEDIAL.fullmatch(body)
    if medial:
        main, opener, side = medial.groups()
        if _long_enough(side, main) and not _ASKS_WHETHER.search(main):
            return f"{_capital(opener)} {side}, {_small(main)}{end}"
    return sentence


def _long_enough(*clauses: str) -> bool:
    return all(len(clause.split()) >= _FEWEST_WORDS for clause in clauses)


def _substitute(match: re.Match[str]) -> str:
    article, old = match.groups()
    opens = not re.search(r"\w", match.string[: match.start(2)])
    if old[0].isupper() and old[1:].islower() and not opens and not _FIRST_PERSON.match(old):
        return match.group()  # a name
    new = SUBSTITUTES[" ".join(old.lower().replace("\u2019", "'").split())]
    if old.isupper() and len(old) > 1:
        new = new.upper()
    elif old[0].isupper():
        new = _capital(new)
    if not article:
        return new
    vowel = new[0].lower() in "aeiou" and not new.lower().startswith(_SOUNDS_LIKE_A_CONSONANT)
    return f"{article[0]}{'n' if vowel else ''} {new}"


def _keep_capital(before: str, after: str) -> str:
    return _capital(after) if before[:1].isupper() else after


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _small(text: str) -> str:
    """Lower the first letter where the first word is no name."""
    first = text.split()[0]
    lower = first.lower() in STOP_WORDS and first != "I"
    return text[:1].lower() + text[1:] if lower else text
