"""SAGE's roles by rules, where no chat model can play them: named so in every table.

Each rule says what a model would say, in the form that the model is asked for, so that its words
are read and refused like a model's. Attributes are the words of a record's most fitting sentences
that other records hold, too; a text is a template filled with them; the judge is the conditions
themselves; the rewriting agent drops or blurs what breaks one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ragwitness.core.types import Document
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.text.secrets import CONTACTS
from ragwitness.text.words import STOP_WORDS, plain_tokens

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_LINE = re.compile(r"^\s*-\s*\[([^\]\n]+)\]\s*:\s*(.+)$")
_LABEL = re.compile(r"^\s*(\w[\w ]{0,30}):\s*$")
_NAMED = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)*")
_DIGITS = re.compile(r"\b\d[\d.,:/-]*\b")
KNOWN_TO = 3
"""Records that must hold a word before it may be told."""
_TERMS = 8  # words told of an attribute
# By a part of an attribute's name: what the sentences that tell of it hold.
_CUES = (
    ("symptom", r"pain|ache|fever|feel|swell|rash|cough|bleed|itch|burn|numb|dizz|vomit|sore"),
    ("histor", r"ago|years?|since|diagnos|surgery|operat|taking|suffer"),
    ("worr|concern", r"worr|afraid|scare|concern|anxious|serious|fear|cancer"),
    ("event|recent", r"today|yesterday|last|week|recent|month|now|start"),
    ("ask|question", r"\?|what|should|could|please|advice|suggest"),
    ("assess|diagnos", r"due|cause|seem|likely|may be|could be|diagnos|condition"),
    ("reassur|empath", r"hope|worry|understand|thank|welcome|normal|common"),
    ("treat", r"take|tablet|medic|treat|apply|drug|antibiotic|therap|surgery|mg"),
    ("next|follow", r"consult|see|visit|doctor|test|scan|check|mri|x-ray|blood"),
    ("prevent|educat|advice", r"avoid|drink|diet|exercis|rest|water|eat|healthy|keep"),
    ("fact|figure", r"\d|first|largest|born|founded|won|record"),
)


class Rules:
    """The roles by rules, for one corpus.

    Args:
        documents: The records: how many hold a word says whether it may be told.
        guard: The conditions on every text.
    """

    def __init__(self, documents: Sequence[Document], guard: SyntheticGuard) -> None:
        texts = {document.text for document in documents}
        self._held: Counter[str] = Counter(w for text in texts for w in set(plain_tokens(text)))
        self._guard = guard

    def names(self, count: int) -> str:
        """Name attributes that every record has something of."""
        usual = ("topic", "main details", "facts, figures and events", "recent events", "advice")
        return "\n".join(f"- [{name}]" for name in usual[: max(1, count)])

    def extracted(self, text: str, attributes: Sequence[tuple[str, str]]) -> str:
        """Say what a record tells of each attribute, in words that other records hold, too.

        Args:
            text: The record.
            attributes: Part of the record and name, as in :data:`~.sage.Attribute`.
        """
        lines, heading = [], ""
        free: dict[str, list[str]] = {}
        for part, name in attributes:
            left = free.setdefault(part, self._ranked(_part(text, part)))
            if part != heading:
                heading = part
                lines.append(f"{part}:")
            cue = next((cue for key, cue in _CUES if re.search(key, name, re.IGNORECASE)), None)
            fitting = [one for one in left if cue and re.search(cue, one, re.IGNORECASE)]
            chosen = next(iter(fitting or left), "")
            if chosen:
                left.remove(chosen)
            lines.append(f"- [{name}]: {self._terms(chosen) or 'none'}")
        return "\n".join(lines)

    def told(self, points: str) -> str:
        """Fill a template with points: lines of the form "- [attribute]: what is said"."""
        lines: list[str] = []
        for line in points.splitlines():
            if label := _LABEL.match(line):
                lines.append(f"{label.group(1)}:")
            elif (point := _LINE.match(line)) and point.group(2).strip().lower() != "none":
                name = point.group(1).rpartition(":")[2].strip().capitalize()
                said = f"{name}: {point.group(2).strip()}."
                lines[-1:] = [f"{lines[-1]} {said}" if lines else said]
        return "\n".join(lines)

    def fault(self, text: str) -> str:
        """Say what the conditions want changed in a text; empty where they find nothing."""
        broken = self._guard.violation(text)
        return broken.advice if broken else ""

    def rewritten(self, text: str) -> str:
        """Blur, thin out or drop every sentence of a text that breaks a condition."""
        kept: list[str] = []
        for line in text.split("\n"):
            label, colon, rest = line.partition(": ")
            opens = bool(colon) and label in ("Patient", "Doctor")
            told = [self._mended(one) for one in sentences_of(rest if opens else line)]
            said = " ".join(filter(None, told))
            kept += [f"{label}: {said}" if opens else said]
        while self._guard.violation("\n".join(kept)):
            # What no sentence breaks alone, the text breaks by its length: its longest line goes.
            longest = max(range(len(kept)), key=lambda n: len(kept[n]))
            shorter = sentences_of(kept[longest])[:-1]
            if not shorter:
                break
            kept[longest] = " ".join(shorter)
        return "\n".join(filter(None, kept)) or "Nothing can be told."

    def reworded(self, text: str) -> str:
        """Tell a text in another order: each sentence's telling words, the last sentence first."""
        told = [self._terms(one, rare=True) for one in reversed(sentences_of(text))]
        return " ".join(f"It tells of {one}." for one in told if one)

    def _ranked(self, text: str) -> list[str]:
        """Sentences by the mean commonness of their words in the text, the most central first."""
        sentences = [one for one in sentences_of(text) if len(one.split()) > 3]
        counts = Counter(w for one in sentences for w in set(plain_tokens(one)) - STOP_WORDS)

        def central(sentence: str) -> float:
            words = set(plain_tokens(sentence)) - STOP_WORDS
            return sum(counts[word] for word in words) / (len(words) + 3)

        return sorted(dict.fromkeys(sentences), key=central, reverse=True)

    def _terms(self, sentence: str, *, rare: bool = False) -> str:
        """A sentence's telling words, the rarest of those that may be told, in its order."""
        words = [
            word
            for word in dict.fromkeys(plain_tokens(sentence))
            if word not in STOP_WORDS
            and len(word) > 2
            and word.isalpha()
            and (rare or self._held[word] >= KNOWN_TO)
        ]
        best = set(sorted(words, key=lambda word: self._held[word])[:_TERMS])
        return " ".join(word for word in words if word in best)

    def _mended(self, sentence: str) -> str:
        """A sentence that breaks no condition: as it is, blurred, its commonest words, or none."""
        if self._guard.violation(sentence) is None:
            return sentence
        blurred = sentence
        for pattern in CONTACTS:
            blurred = pattern.sub("a contact", blurred)
        blurred = _DIGITS.sub("some", _NAMED.sub("somebody", blurred))
        if self._guard.violation(blurred) is None:
            return blurred
        common = ", ".join(sorted(self._terms(blurred).split()))
        return common if common and self._guard.violation(common) is None else ""


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, by their last marks and by lines."""
    return [one.strip() for one in _SENTENCE.split(text) if one.strip()]


def _part(text: str, part: str) -> str:
    """What one speaker says, where the record marks it; else the whole record."""
    found = re.search(
        rf"{re.escape(part)}:\s*(.*?)(?=\b(?:Patient|Doctor):|\Z)", text, re.DOTALL | re.IGNORECASE
    )
    return found.group(1) if part and found else text
