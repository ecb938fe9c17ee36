"""Hard conditions on every synthetic text, checked after everybody else has called it safe.

They see copying: runs of tokens, long subsequences, most of a record's words, known secrets,
contact details, and text hidden in markup, in invisible characters or in encodings. They do not
see a fact told in other words: that is what the privacy agent is for, and no statement is made
about it here. What still passes is measured in ``benchmarks/guard.py``.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.kit.quotes import unescaped
from ragwitness.kit.stored_names import unset
from ragwitness.text.pii import PiiFinder, pii_finder
from ragwitness.text.runs import RunIndex, Vocabulary, phrases_of
from ragwitness.text.secrets import Secret, SecretIndex, contacts
from ragwitness.text.subsequence import SubsequenceIndex
from ragwitness.text.words import (
    UNSEEN,
    UNSPACED,
    Respacer,
    codes,
    content_tokens,
    decoded,
    dense_tokens,
    readings,
    seen,
    telling_tokens,
    unaccented,
)

_TAG = re.compile(r"<[^<>]{0,400}>|\[/?[A-Za-z]{1,12}\]|[*_`~#|]+")
_SPELLED = re.compile(r"(?<![^\W_])[^\W_](?:[.\-_\u00b7*|/ ][^\W_])+(?![^\W_])")
# Codes: a long unbroken row, twenty bytes one by one, or two words of all kinds of characters.
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/%])(?![ACGTUNacgtun]+\b)[A-Za-z0-9+/%]{40,}"
    # Each number is read in one way alone, or a long row would take for ever.
    r"|(?:(?:%?(?:\d{2}|\d[A-Fa-f]|[A-Fa-f][0-9A-Fa-f])|\d|\d{3}|[01]{8})[\s,:;-]+){20}"
    r"|(?:(?:[%=\\]|\\+[ux]|U\+|0x)[0-9A-Fa-f]{2,5}[\s,;]*){8}"
    r"|(?<![A-Za-z0-9+/])"
    r"(?:(?=\S{0,99}\d)(?=\S{0,99}[A-Z])(?=\S{0,99}[a-z])[A-Za-z0-9+/]{12,}=*\s+){2}"
)
# Initials: twelve single letters in a row, whatever signs part them.
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_][\W_]{1,3}){11}[^\W\d_](?![^\W_])")
_FEWEST_INITIALS = 6  # different ones among them: "A, B, C, D, A, …" are answers
# Look-alikes of another alphabet within a word; Greek ones, as in "NFκB", are counted.
_ALIKE = re.compile(r"[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]")
_GREEK_WORD = re.compile(r"(?=\w*[\u0370-\u03ff])(?:\w*?[^\W\d_]){2}\w*")
_MOST_GREEK = 3  # words with Greek letters that no record has
# Signs in place of letters, and those with letters in them, such as regional indicators.
_SIGNED = re.compile(r"(?<=[^\W\d_])[@\u2100-\u2bff\u20a0-\u20cf$](?=[^\W\d_])")
_LETTERED = re.compile(r"\b(?:LATIN|INDICATOR)\b.* LETTER ")
_CHARACTER = re.compile(f"[{UNSPACED}]")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]{2}(?![\U0001f1e6-\U0001f1ff])")
_MOST_SAID = 20  # letters that codes say in words
_MOST_SIGNS = 3  # words with signs, or flags, that no record has
# Soft hyphens, joiners and marks of direction belong to some scripts, form feeds to pages; the
# conditions are tried without them.
_KEPT = "\t\n\f\r\u00ad\u200c\u200d\u200e\u200f"
_LETTERS = frozenset(map(chr, (*range(0xC0, 0x180), *range(0x1E00, 0x1F00), *range(0x370, 0x400))))
_OF_EMOJI = frozenset("\ufe0e\ufe0f\u20e3")
_FEWEST = 5  # content words of a record whose share is counted: fewer stand in every text
_PIECE, _LEAST_PIECE, _IN_PIECES = 0.25, 10, 0.75  # of a record's words; words; in all pieces
_PHRASE = 6  # tokens in a row that tell of no record once a public text or many records hold them

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """What a text must not do.

    Attributes:
        run: Least tokens of a shared run, whatever the record; 0 allows every run.
        common: Phrases in so many different records are nobody's own and may be repeated; 0
            exempts none.
        rouge: Highest ROUGE-L F1 with any record.
        recall: Largest share of any record's words, function words left out, that may stand in a
            text, in whatever order, and whatever stands between them; 1 allows all, and so do
            ``run`` 0 and ``rouge`` 1 together: they are for what copies.
        cosine: Highest cosine with any record, where an embedder is given; None asks for none.
        pii: Who finds personal details: see :func:`~ragwitness.text.pii.pii_finder`.

    Raises:
        InputError: A value is out of range.
    """

    stored_name: ClassVar[str] = "GuardConfig"
    later: ClassVar[tuple[str, ...]] = ("recall",)

    run: int = 8
    common: int = 0
    rouge: float = 0.5
    recall: float = 0.65
    cosine: float | None = None
    pii: str = "auto"

    @property
    def holds(self) -> bool:
        """Whether texts are held against records; one that may share all runs and words copies."""
        return self.run > 0 or self.rouge < 1

    def __post_init__(self) -> None:
        """Refuse values that guard nothing or cannot be met."""
        if self.run < 0 or self.common < 0 or self.common == 1:
            raise InputError(
                f"A shared run of {self.run} tokens, common in {self.common} records, is no"
                " condition.",
                "Take a run of at least 0, and common 0 or at least 2.",
            )
        cosine = 1 if self.cosine is None else self.cosine
        if not all(0 < cap <= 1 for cap in (self.rouge, self.recall, cosine)):
            raise InputError(
                "rouge, recall and cosine must be above 0 and at most 1.",
                "The defaults are rouge 0.5 and recall 0.65.",
            )


@dataclass(frozen=True, slots=True)
class Violation:
    """A condition that a text breaks.

    Attributes:
        kind: ``"run"``, ``"secret"``, ``"similarity"``, ``"pii"`` or ``"hidden"``.
        reason: Explanation for the report; holds nothing of any text.
        advice: Advice to whoever rewrites the text; quotes that text and no other.
    """

    kind: str
    reason: str
    advice: str


class SyntheticGuard:
    """The conditions, with everything they need made once.

    Args:
        originals: Text of every record, the one a text was made from included.
        secrets: Known secrets of all records.
        config: The conditions.
        embed: Turns texts into unit vectors; needed for ``config.cosine`` alone.
        public: Texts that are not secret: their phrases may be repeated, and part a run as words
            of the text's own do. All other conditions hold as without them.

    Raises:
        InputError: A cosine is asked for without an embedder, or ``config.pii`` is unknown.
        MissingExtraError: Presidio is asked for by name and not installed.
    """

    def __init__(
        self,
        originals: Sequence[str],
        secrets: Sequence[Secret] = (),
        config: GuardConfig | None = None,
        embed: Embed | None = None,
        public: Sequence[str] = (),
    ) -> None:
        self.config = config = config or GuardConfig()
        texts = list(dict.fromkeys(form for text in originals for form in _forms(text)))
        # Accents hide nothing.
        self._vocabulary = Vocabulary(lambda text: dense_tokens(unaccented(text)))
        records = self._vocabulary.tokenize(texts)
        self._runs = RunIndex(records, config.run, self._phrases(originals, public), _PHRASE)
        self._similar = SubsequenceIndex(records)
        # A record without one run of that length may not stand in a text at all.
        short = [one for one, size in zip(texts, records.sizes, strict=True) if size < config.run]
        self._short = SecretIndex([Secret(one, "record", "") for one in short])
        # Words that tell something: function words alone are in every text.
        self._content = Vocabulary(lambda text: telling_tokens(unaccented(text)))
        telling = [one for one in texts if len(content_tokens(one)) >= _FEWEST]
        self._told = SubsequenceIndex(self._content.tokenize(telling))
        # Where characters are words they are pairs there, which filler parts: in order they count.
        unspaced = (one for one in telling if 2 * len(_CHARACTER.findall(one)) > len(one))
        self._characters = SubsequenceIndex(self._vocabulary.tokenize(unspaced))
        # A copy may part and join words as it likes, and is written in the records' letters.
        self._respaced = Respacer(texts)
        known = {c for text in (*texts, *public) for c in unicodedata.normalize("NFKC", text)}
        self._letters = _LETTERS | known if texts else None
        self._scripts = set(map(_script, known)) - {"LATIN", "COMBINING"}
        self._greek = {w for text in (*texts, *public) for w in _GREEK_WORD.findall(seen(text))}
        self._signed = max((len(_SIGNED.findall(text)) for text in texts), default=0)
        self._secrets = SecretIndex(secrets)
        self._secret_kinds = [secret.kind for secret in secrets]
        self._pii: PiiFinder = pii_finder(self.config.pii)
        self._embed = embed
        # What was kept before a condition came is checked again when it is read.
        idle = unset(config)
        conditions = {name: v for name, v in asdict(config).items() if name not in idle}
        made_of = [conditions, self._pii.name, list(originals), list(map(asdict, secrets))]
        made_of += [list(public)] if public else []
        self._public = len(public)
        once = self._vocabulary.tokenize(_forms(text)[-1] for text in dict.fromkeys(originals))
        self._freed = self._runs.freed(once) if config.run else 0
        self._identity = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]
        if self.config.cosine is not None and embed is None:
            raise InputError("A highest cosine needs an embedder.", "Name one with --embedder.")
        self._vectors = None if embed is None or self.config.cosine is None else embed(texts)

    @property
    def identity(self) -> str:
        """A hash of everything that its answers follow from."""
        return self._identity

    def describe(self) -> dict[str, str]:
        """Return the conditions in words."""
        config = self.config
        free = [f"{self._public} public texts"] if self._public else []
        free += [f"{config.common} records and more"] if config.common else []
        exempt = f" beside phrases of {' or '.join(free)}" if free else ""
        if free:  # all of them where the public texts are a digest of the records
            exempt += f", of which alone {self._freed} records are made"
        return {
            "shared run": f"fewer than {config.run} tokens{exempt}" if config.run else "any",
            "ROUGE-L F1 with any record": f"at most {config.rouge:g}",
            "share of any record's words": f"at most {config.recall:g}" if config.holds else "any",
            "cosine with any record": "any" if config.cosine is None else f"≤ {config.cosine:g}",
            "secrets": f"none of {len(self._secret_kinds)}",
            "PII": f"none found by {self._pii.name}",
            "PII that it misses": self._pii.misses,
        }

    def violation(self, text: str) -> Violation | None:
        """Return the first condition that a text breaks; None where it breaks none."""
        # 1. What a reader does not see cannot be checked by what follows. What copies may hold the
        # codes that its record holds.
        copies = not self.config.holds
        hidden = _hidden(text, copies) or _hidden(unescaped(text), copies)
        if hidden := hidden or self._strange(text):
            return Violation("hidden", f"the text holds {hidden}", f"Write no {hidden}.")
        # 2. Secrets, contact details and copying, in the text as it reads and without markup.
        forms = _forms(text)
        for form in dict.fromkeys((*forms, *map(_joined, forms))):
            broken = self._secret(form) or self._personal(form) or self._whole(form)
            broken = broken or self._copied(form) or self._near(form)
            if broken is not None:
                return broken
        # What codes say, and secrets in figures for letters.
        codes_say = [one for form in forms for one in decoded(form)]
        for one in dict.fromkeys((*codes_say, *readings(text))):
            broken = self._secret(one) or (self._copied(one) if one in codes_say else None)
            if broken is not None:
                return broken
        # 3. Copying once more, in the records' own words. A word too many or too few between
        # honest ones is no copy yet, so a run is half as long again.
        if not self.config.holds:
            return None
        tries = self._readings("\n".join((forms[-1], *codes_say)))
        found = (self._copied(one, self.config.run // 2) for one in tries)
        if broken := next((broken for broken in found if broken), None):
            return broken
        # 4. Words of a record that are each written in one way or another add up.
        read = self._content.tokenize((*forms, *codes_say, *tries))
        counts = reduce(or_, (Counter(read[n].tolist()) for n in range(len(read))))
        return self._most(np.array(list(counts.elements()), np.int32))

    def _readings(self, text: str) -> list[str]:
        """A text in the records' words: parted as they are, with their letters, in one case."""
        return list(dict.fromkeys((self._respaced(text), self._respaced.filled(text))))

    def together(self, texts: Sequence[str]) -> list[bool]:
        """Say of each text whether it and earlier ones give a record out in pieces.

        A piece has a quarter of a record's words or more, in order; three quarters of them may
        stand in all pieces together, or what a single text may tell if that is more.
        """
        most, told = max(_IN_PIECES, self.config.recall), dict[int, set[int]]()
        found = [False] * len(texts)
        for place, text in enumerate(texts if self.config.holds and most < 1 else ()):
            form = _forms(text)[-1]
            pieces: dict[int, set[int]] = {}
            # 1. The records of which this text holds a piece, however it is written.
            read = self._content.tokenize([form, *self._readings(form)])
            for said in (read[n] for n in range(len(read))):
                for record in self._told.pieces(said, _PIECE, _LEAST_PIECE):
                    out = pieces.setdefault(record, set(told.get(record, ())))
                    out |= set(said.tolist()) & set(self._told.records[record].tolist())
            # 2. One too many, and the text is out: its words do not count for later ones.
            found[place] = any(
                record in told and len(out) > most * len(set(self._told.records[record].tolist()))
                for record, out in pieces.items()
            )
            if not found[place]:
                told |= pieces
        return found

    def named(self, record: str) -> str:
        """Say what a record's id, such as the name of its file, gives away; empty for nothing."""
        for name in (record, re.sub(r"[\W_]+", " ", record)):
            broken = self._secret(name) or self._personal(name)
            if broken is None and len(content_tokens(name)) >= _FEWEST:
                broken = self._copied(name)
            if broken is not None:
                return broken.reason
        return "a contact detail" if contacts(record) else ""

    def _strange(self, text: str) -> str:
        """Name letters, such as small capitals, that neither records nor public texts use."""
        flags = _FLAG.findall(text)
        text = _FLAG.sub("", text) if len(flags) <= _MOST_SIGNS else text
        other = {c for c in unicodedata.normalize("NFKC", text) if not c.isascii()} - _OF_EMOJI
        letters = {c for c in other if unicodedata.category(c)[0] in "LM" or _holds_letter(c)}
        unknown = set() if self._letters is None else letters - self._letters
        foreign = any(_script(c) not in self._scripts for c in unknown)
        greek = set(_GREEK_WORD.findall(seen(text))) - self._greek
        foreign |= self._letters is not None and len(greek) > _MOST_GREEK
        foreign |= len(_SIGNED.findall(text)) > max(_MOST_SIGNS, self._signed)
        return "letters that no record uses" if foreign else ""

    def _phrases(self, originals: Sequence[str], public: Sequence[str]) -> NDArray[np.uint64]:
        """Phrases of public texts, and those of so many records that they are nobody's own."""
        said = self._vocabulary.tokenize(form for text in public for form in _forms(text))
        found = phrases_of(said, _PHRASE)
        if not self.config.common:
            return found
        # Every record counts once, whatever its forms.
        once = self._vocabulary.tokenize(dict.fromkeys(_forms(text)[-1] for text in originals))
        return np.concatenate((found, phrases_of(once, _PHRASE, self.config.common)))

    def _secret(self, text: str) -> Violation | None:
        found = sorted({secret for _, secret in self._secrets.pairs([text])})
        if not found:
            return None
        kinds = sorted({self._secret_kinds[secret] for secret in found})
        named = ", ".join(kinds)
        return Violation(
            "secret",
            f"{len(found)} known secret{'s' * (len(found) > 1)} ({named})",
            f"It still holds private details ({named}): leave out every name, number and address.",
        )

    def _personal(self, text: str) -> Violation | None:
        found = self._pii.find(text)
        if not found:
            return None
        kinds = ", ".join(sorted({one.kind for one in found}))
        said = ", ".join(repr(text[one.start : one.end]) for one in found[:3])
        return Violation("pii", f"contact details or numbers ({kinds})", f"Leave out {said}.")

    def _whole(self, text: str) -> Violation | None:
        """A record of a few words as a whole."""
        if not self._short.pairs([text]):
            return None
        return Violation(
            "run",
            "a whole record of a few words",
            "It holds a private text of a few words as a whole: say it otherwise.",
        )

    def _copied(self, text: str, more: int = 0) -> Violation | None:
        config, tokens = self.config, self._vocabulary.tokenize([text])
        # Word for word: a run of tokens that stands in a record, unless many records share it.
        if config.run and (place := self._runs.first(tokens, more)) is not None:
            said = " ".join(dense_tokens(unaccented(text))[place : place + config.run])
            return Violation(
                "run",
                f"{config.run} or more tokens in a row as in a record",
                f"These words stand in a private text in this order, say it otherwise: {said!r}.",
            )
        # In order: a long subsequence, however it is spread.
        if next(self._similar.above_f1(tokens[0], config.rouge), None) is not None:
            return _too_close("ROUGE-L F1", config.rouge)
        # Most of a record, whatever stands between its words and around them.
        if not config.holds:
            return None
        in_order = config.recall < 1 and self._characters.tells(tokens[0], config.recall, _FEWEST)
        return self._most(self._content.tokenize([text])[0], in_order)

    def _most(self, told: NDArray[np.int32], known: bool = False) -> Violation | None:
        recall = self.config.recall
        if not known and not self._told.above_recall(told, recall):
            return None
        return Violation(
            "similarity",
            f"more than {recall:g} of a record's words",
            "It tells most of a private text in its words: tell less of it, in other words.",
        )

    def _near(self, text: str) -> Violation | None:
        """In meaning: a vector near to that of a record."""
        config = self.config
        if self._vectors is not None and self._embed is not None and config.cosine is not None:
            vector = self._embed([text])[0]
            if len(self._vectors) and float((self._vectors @ vector).max()) > config.cosine:
                return _too_close("cosine", config.cosine)
        return None


def _too_close(measure: str, cap: float) -> Violation:
    return Violation(
        "similarity",
        f"{measure} above {cap:g} with a record",
        "It follows a private text too closely: change the order and the wording throughout.",
    )


def _forms(text: str) -> tuple[str, ...]:
    """The text as it reads, and as it reads without markup where that is another text."""
    read = seen(text)
    plain = unescaped(read)
    # Tags may stand within words, and between them.
    bare = (seen(_TAG.sub(one, plain)) for one in (" ", ""))
    return tuple(dict.fromkeys((read, *bare)))


def _holds_letter(sign: str) -> bool:
    return _LETTERED.search(unicodedata.name(sign, "")) is not None


def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]


def _joined(text: str) -> str:
    """The text with words that are spelled letter by letter, as "f-e-v-e-r", written as words."""
    return _SPELLED.sub(lambda word: re.sub(r"[\W_]", "", word.group()), text)


def _hidden(text: str, may_copy: bool) -> str:
    """Name what a reader does not see or cannot read; empty for nothing. Copies may hold codes."""
    categories = {unicodedata.category(c) for c in text if c not in _KEPT}
    if categories & {"Cc", "Cf", "Co", "Cn", "Cs"} or UNSEEN.search(text):
        return "control or invisible characters"
    if _ALIKE.search(text):
        return "words of mixed alphabets"
    # Letters have two cases: characters of unspaced scripts are words.
    for run in () if may_copy else _INITIALS.finditer(text):
        letters = set(filter(str.isalpha, run[0].upper()))
        if len(letters) >= _FEWEST_INITIALS and run[0][0].upper().isupper():
            return "single letters in a row"
    if not may_copy and (_ENCODED.search(text) or _says_words(text)):
        return "encoded data"
    return ""


def _says_words(text: str) -> bool:
    """Whether codes say some words, each of five letters or more."""
    said = {word for *_, one in codes(text) for word in re.findall(r"[^\W\d_]{5,}", one)}
    plain = (w for w in said if w in (w.lower(), w.upper(), w.capitalize()))
    return sum(map(len, plain)) >= _MOST_SAID
