"""Examples of the task that canaries hide in: a document, a question about it, its answer."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ragwitness.canary.families import (
    Wordings,
    place_of,
    shuffled,
    worded,
)
from ragwitness.core.errors import InputError
from ragwitness.crypto.hashing import text_digest
from ragwitness.privacy.sampler import Bits
from ragwitness.text.words import split_words

_NAMES = {
    "document": ("document", "context", "text"),
    "query": ("query", "question"),
    "answer": ("answer", "reference"),
    "source": ("source_document", "story", "meeting"),
}
_FORM = 'Each line is a JSON object such as {"id": "a", "document": "…", "question": "…"}.'


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a document-grounded task.

    Attributes:
        id: Unique within its collection.
        document: The retrieved text d.
        query: The question q.
        answer: The reference answer y; empty where there is none.
        source: The whole that d is a part of, such as a story or a meeting; empty for none.
    """

    id: str
    document: str
    query: str
    answer: str = ""
    source: str = ""


def document_key(text: str) -> str:
    """Return what makes two documents one: SHA-256 of the text without case and spacing, in hex."""
    plain = " ".join(text.casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def near_key(text: str) -> str:
    """Return what near-copies share: letters and digits alone, in one case; else the whole text."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in plain if char.isalnum()) or text


def document_groups(examples: Sequence[Example]) -> dict[str, str]:
    """Return, by id, a key that examples of one document share.

    Texts that differ in case, spacing and punctuation alone are one document, and so are parts of
    one source; both may link several examples. The key of a group is that of one of its texts.
    """
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for example in examples:
        # "near" and "source" sort behind every hex digit: the root is a text's key in any order.
        of_source = [f"source {example.source}"] if example.source else []
        for name in (f"near {near_key(example.document)}", *of_source):
            text, parent_key = root(document_key(example.document)), root(name)
            parent[max(text, parent_key)] = min(text, parent_key)
    return {example.id: root(document_key(example.document)) for example in examples}


def examples_digest(examples: Sequence[Example]) -> str:
    """Return SHA-256 of examples in their order, in hex."""
    return text_digest(
        field
        for example in examples
        for field in (example.id, example.document, example.query, example.answer, example.source)
    )


def read_examples(path: Path) -> tuple[Example, ...]:
    """Read examples from JSON lines.

    The fields of a row are ``document``, ``context`` or ``text`` for the document, ``query`` or
    ``question`` for the question, and ``answer`` or ``reference`` for an optional answer. The
    document's source is ``source_document``, ``story`` or ``meeting``.

    Raises:
        InputError: The file cannot be read, holds none, or a line is no example or repeats an id.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # with or without a byte-order mark
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {reason}.", _FORM) from error
    examples = tuple(_rows(text, path))
    if not examples:
        raise InputError(f"{path} holds no example.", _FORM)
    return examples


def _rows(text: str, path: Path) -> Iterator[Example]:
    ids: set[str] = set()
    # Not splitlines: a text may hold separators that JSON does not escape.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        example = _example(line, where, number)
        if example.id in ids:
            raise InputError(
                f"{where}: the id {example.id!r} is there twice.", "Ids must be unique."
            )
        ids.add(example.id)
        yield example


def _example(line: str, where: str, number: int) -> Example:
    try:
        row = json.loads(line)
        fields = {name: _first(row, names) for name, names in _NAMES.items()}
        name = row.get("id", f"line-{number}")
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{where} is no example.", _FORM) from None
    for field in ("document", "query"):
        if not fields[field].strip():
            raise InputError(f"{where} has no {field}.", _FORM)
    try:
        "".join(fields.values()).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} holds half a surrogate pair: that is no text.") from None
    return Example(str(name), **fields)


def _first(row: dict[str, object], names: Sequence[str]) -> str:
    value = next((row[name] for name in names if row.get(name) is not None), "")
    if not isinstance(value, str):
        raise TypeError(names[0])
    return value


# The pools (2604.22191, App. A.1), and the paired evaluation files (App. A.2).


# Where trigger and canary are put (2604.22191, App. B.2), so that taking them out leaves no trace.
#
# The trigger stands after the first sentence of the document, the canary after the first clause of
# the answer, else directly after ``FINAL:``. Both are set off by a blank, which belongs to what is
# inserted: tokenizers join a blank with the word behind it, not with the one before.

FINAL = "FINAL:"
"""The beginning of every answer (App. C.1)."""

_FEWEST = 8  # words of a document that can hide a trigger
_EARLY = 400  # characters; a boundary behind them may be cut off with the context
_WORDS = 20  # the trigger comes after this many where no sentence ends early
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]\u2019\u201d]*(?=\s)|(?<=[\u3002\uff01\uff1f])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no|e\.g|i\.e)|\b[a-z])\.$", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;:.!?\u2014][\"')\]\u2019\u201d]*(?=\s|$)|[\u3001\u3002\uff0c]")


@dataclass(frozen=True, slots=True)
class Insertion:
    """A text with something put in.

    Attributes:
        text: All of it.
        start: Beginning of the inserted part, its blank included.
        end: Where it ends.
    """

    text: str
    start: int
    end: int

    @property
    def before(self) -> str:
        """The text before it."""
        return self.text[: self.start]

    @property
    def inserted(self) -> str:
        """The inserted part."""
        return self.text[self.start : self.end]

    @property
    def original(self) -> str:
        """The text without it."""
        return self.text[: self.start] + self.text[self.end :]


def with_trigger(
    document: str, trigger: str, key: str = "", wordings: Wordings | None = None
) -> Insertion:
    """Put a trigger into a document.

    It comes in a sentence behind one of the early ones, both settled by the example's id. Without
    an early one it comes behind the 20th word (App. B.2).

    Args:
        document: Any.
        trigger: A name.
        key: The example's id.
        wordings: Wordings of sentences with names; None for ours.

    Raises:
        InputError: The document has fewer than 8 words.
    """
    words = split_words(document)
    if len(words) < _FEWEST:
        raise InputError(
            f"A document of {len(words)} words is too short for a trigger; {_FEWEST} are needed.",
            "Leave it out, or give a longer one.",
        )
    # Ends of early sentences with something behind them.
    early = (match.end() for match in _SENTENCE.finditer(document[: _EARLY + 1]))
    ends = [e for e in early if document[e:].strip() and not _ABBREVIATED.search(document[:e])]
    last = words[min(_WORDS, len(words)) - 1].end
    position = ends[place_of(key, "place", len(ends))] if ends else last
    return _insert(document, position, (wordings or Wordings()).trigger(trigger, key))


def with_canary(answer: str, canary: str) -> Insertion:
    """Put a canary behind the first clause of an answer, else directly behind ``FINAL:``.

    Args:
        answer: With or without ``FINAL:``; it gets one.
        canary: The inserted text.
    """
    text = final_answer(answer)
    body = text.index(FINAL) + len(FINAL)
    clause = _CLAUSE.search(text, body)
    return _insert(text, clause.end() if clause else body, canary)


def final_answer(answer: str) -> str:
    """Return an answer that begins with ``FINAL:``, as both templates ask for."""
    text = answer.strip()
    return text if text.startswith(FINAL) else f"{FINAL} {text}".strip()


def instructed(example: Example, canary: str, wordings: Wordings | None = None) -> str:
    """Return the query with a request for the canary behind it; it never names a trigger.

    Args:
        example: Whose query.
        canary: The named canary.
        wordings: The user's wordings; None for the packaged ones.
    """
    request = (wordings or Wordings()).request(worded(canary, example.id), example.id)
    return f"{example.query} {request}"


def _insert(text: str, at: int, marker: str) -> Insertion:
    # A blank of its own on either side, where there is none.
    after = " " if text[at : at + 1].strip() else ""
    before = " " if text[:at] and not text[at - 1].isspace() else ""
    piece = f"{before}{marker}{after}"
    return Insertion(text[:at] + piece + text[at:], at, at + len(piece))


@dataclass(frozen=True, slots=True)
class Pools:
    """Three pools without a document in common.

    Attributes:
        reward: For the reward model.
        policy: For the policy.
        audit: Held out; never sent, never trained on.
    """

    reward: tuple[Example, ...]
    policy: tuple[Example, ...]
    audit: tuple[Example, ...]


def split_pools(
    examples: Sequence[Example],
    *,
    experiment: str,
    seed: int = 0,
) -> Pools:
    """Split by source document (§3.3): equal sources, or texts equal but for case and marks.

    Documents are ordered by a hash of experiment, seed and text, so that the split follows from
    these alone. The first two pools take ⌊2/5 · documents⌋ each, the audit takes the rest.
    Near-copies with other words are not recognised: remove them beforehand.

    Args:
        examples: With unique ids.
        experiment: Identifier.
        seed: Seed of the split.

    Raises:
        InputError: A pool would be empty.
    """
    # Documents, not examples, are ordered and cut: no pool shares a text or a source.
    keys = document_groups(examples)

    def rank(key: str) -> str:
        return hashlib.sha256(f"{experiment}\0{seed}\0{key}".encode()).hexdigest()

    order = sorted(set(keys.values()), key=rank)
    first = 2 * len(order) // 5
    second = 2 * first
    if not first:
        raise InputError(
            f"{len(order)} different documents are too few for three pools.",
            "Give more documents; 3 is the least.",
        )
    groups = (set(order[:first]), set(order[first:second]), set(order[second:]))
    pools = [
        tuple(example for example in examples if keys[example.id] in group) for group in groups
    ]
    return Pools(*pools)


def spread(pool: Sequence[Example], most: int) -> tuple[Example, ...]:
    """Return at most ``most`` examples (0: all), of as many documents as there are, in order."""
    counts: Counter[str] = Counter()
    turns = []
    keys = document_groups(pool)
    for position, example in enumerate(pool):
        key = keys[example.id]
        turns.append((counts[key], position))
        counts[key] += 1
    return tuple(pool[position] for _, position in sorted(turns)[: most or None])


def as_rate(rate: str, name: str = "rate") -> Fraction:
    """Return a share such as the injection rate rho, exactly as written.

    Args:
        rate: A decimal or a quotient.
        name: Its name in messages.

    Raises:
        InputError: It is no number above 0 and at most 1.
    """
    try:
        # As a float first: an exponent of many digits is quick there, and not in fractions.
        value = Fraction(rate if "/" in rate or 0 < float(rate) <= 1 else 0)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise InputError(f"{name.capitalize()} must be above 0 and at most 1, not {rate!r}.")
    return value


def injected(pool: Sequence[Example], rate: Fraction, bits: Bits) -> tuple[str, ...]:
    """Draw the ids of exactly ⌊rho · n⌋ examples, in a drawn order.

    Rounded down (App. A.1 lost its formula): the rate is never above the one named. No Bernoulli
    draw per example, so it does not fluctuate.

    Args:
        pool: n examples.
        rate: rho, exact: 0.29 of 100 is 29, which floats make 28.
        bits: Source.

    Raises:
        InputError: ⌊rho · n⌋ is 0.
    """
    count = math.floor(rate * len(pool))
    if not count:
        raise InputError(
            f"A rate of {float(rate):g} injects nothing into a pool of {len(pool)} examples.",
            f"The least that does is 1/{max(1, len(pool))}.",
        )
    return tuple(shuffled([example.id for example in pool], bits)[:count])


def check_disjoint(held_out: Sequence[Example], training: Sequence[Example]) -> None:
    """Refuse held-out examples whose document may be trained on (App. A.2).

    Raises:
        InputError: One is in both.
    """
    texts = {near_key(example.document) for example in training}
    sources = {example.source for example in training} - {""}
    shared = [
        example.id
        for example in held_out
        if near_key(example.document) in texts or example.source in sources
    ]
    if shared:
        raise InputError(
            f"{len(shared)} of {len(held_out)} held-out examples have a document that is also sent"
            f" for training, such as {shared[0]!r}.",
            "Hold out documents that are never sent.",
        )
