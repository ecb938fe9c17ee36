"""Hard conditions on every synthetic text, checked after everybody else has called it safe.

They see copying in the canonical form of a text (:mod:`ragwitness.text.words`): runs of tokens,
long subsequences, most of a record's words, known secrets, contact details. They do not see a fact
in other words; the privacy agent judges that, and no statement is made about it here. Their other
limits are in ``docs/design/threat-model.md``, and ``benchmarks/guard.py`` measures them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.text import words as tokens_of
from ragwitness.text.overlap import RunIndex, SubsequenceIndex, Tokenized, Vocabulary, phrases_of
from ragwitness.text.pii import PiiFinder, pii_finder
from ragwitness.text.secrets import Secret, SecretIndex, contacts

# A long unbroken row of letters with a figure among them: no word, and no sequence of bases.
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/%])(?=[A-Za-z+/%_-]*\d)[A-Za-z0-9+/%_-]{40,}")
_CHARACTER = tokens_of.script_pattern(tokens_of.UNSPACED)
# Unseen, but no hiding place: characters of a script, a page, the order of bytes or an emoji.
_ALLOWED = re.compile(
    "[\u00ad\u200c\u200d\u200e\u200f\ufeff]"
    "|(?<=[0-9#*\u203c-\u3299\U0001f000-\U0001ffff])[\ufe0e\ufe0f]"
)
_FEWEST = 5  # content words of a record whose share is counted: fewer are in every text
_PIECE = 0.25  # share of a record's words, in order, that makes a piece of it
_LEAST_PIECE = 10  # fewest words of a piece
_IN_PIECES = 0.75  # largest share of a record's words in all its pieces together
_PHRASE = 6  # tokens of a phrase that is free once a public text or many records hold it

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """The conditions on a text.

    Attributes:
        run: Tokens from which on a run shared with any record is forbidden; 0 allows every run.
        common: Number of different records from which on a phrase is common and may be repeated; 0
            exempts none.
        rouge: Highest ROUGE-L F1 with any record.
        recall: Largest share of any record's words in a text, in any order and with any words
            between them; function words do not count. 1 allows all. So do ``run`` 0 and ``rouge``
            1 together, for methods that copy.
        cosine: Highest cosine with any record, where an embedder is given; None asks for none.
        pii: Finder of personal details: see :func:`~ragwitness.text.pii.pii_finder`.

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
        """Whether texts are compared with records; not where all runs and words are allowed."""
        return self.run > 0 or self.rouge < 1

    def __post_init__(self) -> None:
        """Reject values that guard nothing or cannot be met."""
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
        advice: Advice for a rewrite of the text; quotes that text and no other.
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
        public: Texts that are not secret: their phrases may be repeated, and interrupt a run as
            new words do. All other conditions hold as without them.

    Attributes:
        config: The conditions.

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
        texts = list(dict.fromkeys(map(tokens_of.canonical_text, originals)))
        # 1. Runs and subsequences, over all words.
        self._vocabulary = Vocabulary()
        records = self._vocabulary.tokenize(texts)
        self._runs = RunIndex(records, config.run, self._phrases(records, public), _PHRASE)
        self._similar = SubsequenceIndex(records)
        # 2. A record that is shorter than a run may not be in a text at all.
        short = [text for text, size in zip(texts, records.sizes, strict=True) if size < config.run]
        self._short = SecretIndex([Secret(text, "record", "") for text in short])
        # 3. Shares of words with content: function words alone are in every text.
        self._content = Vocabulary(tokens_of.telling_tokens)
        telling = [text for text in texts if len(tokens_of.content_tokens(text)) >= _FEWEST]
        self._told = SubsequenceIndex(self._content.tokenize(telling))
        # Scripts without spaces are read in pairs, which filler breaks: single characters count.
        unspaced = (text for text in telling if 2 * len(_CHARACTER.findall(text)) > len(text))
        self._characters = SubsequenceIndex(self._vocabulary.tokenize(unspaced))
        # 4. Secrets and personal details.
        self._secrets = SecretIndex(secrets)
        self._secret_kinds = [secret.kind for secret in secrets]
        self._pii: PiiFinder = pii_finder(self.config.pii)
        self._embed = embed
        self._public = len(public)
        self._freed = self._runs.freed(records) if config.run else 0
        if self.config.cosine is not None and embed is None:
            raise InputError("A highest cosine needs an embedder.", "Name one with --embedder.")
        self._vectors = np.array([]) if embed is None or config.cosine is None else embed(texts)

    def describe(self) -> dict[str, str]:
        """Return the conditions in words."""
        config = self.config
        free = [f"{self._public} public texts"] if self._public else []
        free += [f"{config.common} records and more"] if config.common else []
        exempt = f" beside phrases of {' or '.join(free)}" if free else ""
        if free:  # all records, if the public texts are a digest of them
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
        # Invisible characters cannot be checked. Copies may hold the codes of their record.
        if hidden := _hidden(text, may_copy=not self.config.holds):
            return Violation("hidden", f"the text holds {hidden}", f"Write no {hidden}.")
        plain = tokens_of.canonical_text(text)
        broken = self._secret(plain) or self._personal(plain) or self._whole(plain)
        return broken or self._copied(plain) or self._near(plain)

    def together(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it and earlier ones give a record away in pieces.

        A piece has a quarter of a record's words or more, in order. All pieces together may hold
        three quarters of them, or as many as a single text if that is more.
        """
        limit, out_before = max(_IN_PIECES, self.config.recall), dict[int, set[int]]()
        withheld = [False] * len(texts)
        for n, text in enumerate(texts if self.config.holds and limit < 1 else ()):
            # 1. The records of which this text holds a piece, and their words that are known by it.
            words = self._content.tokenize([tokens_of.canonical_text(text)])[0]
            pieces = {
                record: set(out_before.get(record, ()))
                | (set(words.tolist()) & set(self._told.records[record].tolist()))
                for record in self._told.pieces(words, _PIECE, _LEAST_PIECE)
            }
            # 2. Too many words, and the text is withheld: they do not count for later ones.
            withheld[n] = any(
                record in out_before
                and len(out) > limit * len(set(self._told.records[record].tolist()))
                for record, out in pieces.items()
            )
            if not withheld[n]:
                out_before |= pieces
        return withheld

    def named(self, record: str) -> str:
        """Return why a record's id, such as its file name, is private; empty if it is not."""
        name = tokens_of.canonical_text(record)
        broken = self._secret(name) or self._personal(record)
        if broken is None and len(tokens_of.content_tokens(name)) >= _FEWEST:
            broken = self._copied(name)
        return broken.reason if broken else "a contact detail" * bool(contacts(record))

    def _phrases(self, records: Tokenized, public: Sequence[str]) -> NDArray[np.uint64]:
        """Phrases of public texts, and those common to many records."""
        public_phrases = phrases_of(
            self._vocabulary.tokenize(map(tokens_of.canonical_text, public)), _PHRASE
        )
        if not self.config.common:
            return public_phrases
        return np.concatenate((public_phrases, phrases_of(records, _PHRASE, self.config.common)))

    def _secret(self, text: str) -> Violation | None:
        secrets = {secret for _, secret in self._secrets.pairs([text])}
        if not secrets:
            return None
        named = ", ".join(sorted({self._secret_kinds[secret] for secret in secrets}))
        return Violation(
            "secret",
            f"{len(secrets)} known secret{'s' * (len(secrets) > 1)} ({named})",
            f"It still holds private details ({named}): leave out every name, number and address.",
        )

    def _personal(self, text: str) -> Violation | None:
        details = self._pii.find(text)
        if not details:
            return None
        kinds = ", ".join(sorted({detail.kind for detail in details}))
        quoted = ", ".join(repr(text[detail.start : detail.end]) for detail in details[:3])
        return Violation("pii", f"contact details or numbers ({kinds})", f"Leave out {quoted}.")

    def _whole(self, text: str) -> Violation | None:
        """A record of a few words as a whole."""
        if not self._short.pairs([text]):
            return None
        return Violation(
            "run",
            "a whole record of a few words",
            "It holds a private text of a few words as a whole: say it otherwise.",
        )

    def _copied(self, text: str) -> Violation | None:
        config, tokens = self.config, self._vocabulary.tokenize([text])
        # Word for word: a run of tokens of a record, unless many records share it.
        if config.run and (start := self._runs.first(tokens)) is not None:
            quoted = " ".join(tokens_of.plain_tokens(text)[start : start + config.run])
            return Violation(
                "run",
                f"{config.run} or more tokens in a row as in a record",
                f"A private text has these words in this order, say it otherwise: {quoted!r}.",
            )
        # In order: a long subsequence, however spread.
        if next(self._similar.above_f1(tokens[0], config.rouge), None) is not None:
            return _too_close("ROUGE-L F1", config.rouge)
        # Most of a record, whatever is between its words and around them.
        if not config.holds:
            return None
        in_order = config.recall < 1 and self._characters.tells(tokens[0], config.recall, _FEWEST)
        words = self._content.tokenize([text])[0]
        if not in_order and not self._told.above_recall(words, config.recall):
            return None
        return Violation(
            "similarity",
            f"more than {config.recall:g} of a record's words",
            "It tells most of a private text in its words: tell less of it, in other words.",
        )

    def _near(self, text: str) -> Violation | None:
        """In meaning: a vector near to that of a record."""
        config = self.config
        if self._embed is None or config.cosine is None or not len(self._vectors):
            return None
        nearest = float((self._vectors @ self._embed([text])[0]).max())
        return _too_close("cosine", config.cosine) if nearest > config.cosine else None


def _too_close(measure: str, cap: float) -> Violation:
    return Violation(
        "similarity",
        f"{measure} above {cap:g} with a record",
        "It follows a private text too closely: change the order and the wording throughout.",
    )


def _hidden(text: str, may_copy: bool) -> str:
    """Name hidden or unreadable content; empty for none. Copies may hold codes."""
    if any(map(tokens_of.unseen, set(_ALLOWED.sub("", text)))):
        return "control or invisible characters"
    return "encoded data" if not may_copy and _ENCODED.search(text) else ""
