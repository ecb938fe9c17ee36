"""The spends of private synthesis on records, kept beside them and composed over runs.

A spend is booked before its noise is drawn: a run that dies counts, and a run that resumes with its
kept votes counts once. Spends belong to records, whatever their file is called and whatever else it
holds. Records are found again in a copy under another name, and in a corpus with some of them, with
parts of them, or with a few other words. So are persons, where a field names them. Near copies of a
record, and records of one person, spend on it once each. The ledger holds hashes of the records and
is as private as they are.

Each line holds the hash of the line before, and a file beside the ledger that of the last line. So
a lost line is noticed, and the loss of that file too. The loss of both files is not, nor that of a
last line with a new hash in the other: keep a copy elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import unicodedata
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.files import Appender, replace_file
from ragwitness.core.run_files import LEDGER
from ragwitness.core.types import Document
from ragwitness.synthesis.private.accounting import composed_epsilon, group_epsilon
from ragwitness.text.words import plain_tokens

_RUN = 24  # letters and digits, about five words
_BANDS, _MINIMA = 4, 4  # that two texts share: few do by chance, near copies nearly always
_COPIED = 3  # shared bands from which on two rows of one corpus count as one record
_CONTAINED = 0.3  # share of the word pairs of the smaller text that makes it part of the other
_FEWEST, _PHRASE = 3, 3  # fewest pairs of a part; most rows with a pair that is no phrase
_ODD = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 64) for n in range(1, _RUN + 1)], np.uint64)


@dataclass(frozen=True, slots=True)
class Spend:
    """The spend of one run on each record.

    Attributes:
        method: Name of the method.
        variance: Parameter of the discrete Gaussian noise on every count.
        votes: Number of counts that a record changes by one, over all rounds.
        epsilon: Privacy parameter of that run alone.
        delta: Failure probability of that run alone.
    """

    method: str
    variance: Fraction
    votes: int
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Total:
    """The spend on the record with the largest spend.

    Attributes:
        runs: Spends on it.
        epsilon: All of them together, at ``delta``.
        delta: The smallest delta of all spends on the corpus: a run with a large one takes
            nothing off.
        plain: The sum of their epsilons, at the sum of their deltas.
        copies: Most rows near the record in one run.
    """

    runs: int
    epsilon: float
    delta: float
    plain: float
    copies: int = 1

    def in_words(self) -> str:
        """Return it for people."""
        if not self.runs:
            return "unknown to this ledger"
        runs = f"{self.runs} run{'s' * (self.runs > 1)}"
        more = f" ({self.plain:g} as a plain sum)" if self.runs > 1 else ""
        if self.copies > 1:
            more += f", up to {self.copies} near copies of a record in one"
        return f"epsilon {self.epsilon:.4g} at delta {self.delta:g}, {runs}{more}"


@dataclass(frozen=True)
class RecordHashes:
    """Hashes of the records of a spend.

    Attributes:
        hashes: Of each row's letters, words and bands, shape (rows, 2 + bands).
        pairs: Of the neighbouring words of each row, row after row; none of version 0.2.0.
        sizes: Number of pairs of each row, shape (rows,).
        persons: Of the person of each row, shape (rows,); 0 where nobody is named.
    """

    hashes: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    persons: NDArray[np.uint64]

    @property
    def row(self) -> dict[str, object]:
        """The same as fields of a line."""
        arrays = {"records": self.hashes, "pairs": self.pairs, "sizes": self.sizes}
        arrays |= {"persons": self.persons} if self.persons.any() else {}
        return {"rows": len(self.hashes)} | {
            name: base64.b64encode(array.astype(_STORED.get(name, "<u8")).tobytes()).decode()
            for name, array in arrays.items()
        }

    @classmethod
    def of(cls, row: dict[str, str]) -> RecordHashes:
        """Read them from a line."""

        def array(name: str) -> NDArray[np.uint64]:
            data = base64.b64decode(row.get(name, ""))
            return np.frombuffer(data, _STORED.get(name, "<u8")).astype("<u8")

        hashes, pairs, sizes, persons = map(array, ("records", "pairs", "sizes", "persons"))
        # Version 0.2.0 kept neither which hashes are of one row, nor pairs, sizes and persons.
        count = int(row.get("rows", hashes.size))
        zeros = np.zeros(count, np.uint64)
        sizes, persons = (array if array.size else zeros for array in (sizes, persons))
        if not len(sizes) == len(persons) == count or sizes.sum() != len(pairs):
            raise ValueError("rows of different numbers")
        return cls(hashes.reshape(count, -1), pairs, sizes, persons)


_STORED = {"pairs": "<u4", "sizes": "<u4"}


class PrivacyLedger:
    """The spends on the records of a folder.

    Args:
        path: The file; made with the first spend.
        ceiling: Highest epsilon of any record over all runs in this ledger; None for none.

    Raises:
        InputError: It cannot be read, or a line is no spend: a spend that cannot be read must not
            count as none.
    """

    def __init__(self, path: Path, ceiling: float | None = None) -> None:
        self.path, self.ceiling = path, ceiling
        self._spends: dict[str, tuple[str, Spend, RecordHashes]] = {}  # by their lines
        self._head = path.with_name(f"{path.name}.head")
        self._read()

    def _read(self, *, booking: bool = False) -> None:
        path = self.path
        try:
            text = path.read_text("utf-8") if path.exists() else ""
            head = self._head.read_text("utf-8").strip() if self._head.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The privacy ledger {path} cannot be read: {error}.") from error
        lines = [line for line in map(str.strip, text.splitlines()) if line]
        # 1. Every line is a spend.
        for number, line in enumerate(lines, 1):
            if line not in self._spends and not self._add(line):
                raise self._damaged(f"Line {number} of the privacy ledger {path} is no spend")
        # 2. No line is missing: each names the one before it, and the head names the last. A run
        # that ended between the two had booked, and had not drawn.
        for number, (before, line) in enumerate(pairwise(["", *lines]), 1):
            if json.loads(line).get("after", _line_hash(before)) != _line_hash(before):
                raise self._damaged(
                    f"Before line {number} of the privacy ledger {path} one is missing"
                )
        if head and head not in map(_line_hash, lines):
            raise self._damaged(f"The last line of the privacy ledger {path} is missing")
        # Lines of version 0.2.0 name no line before them, and had no head.
        if not (head or booking) and lines and "after" in json.loads(lines[-1]):
            raise self._damaged(f"{self._head} is missing, so that a last line may be missing too")
        self._last = _line_hash(lines[-1] if lines else "")

    def _damaged(self, what: str) -> InputError:
        return InputError(
            f"{what}, or was changed: the spend is unknown.",
            "Restore the file from a backup. If a crash cut its last line short, nothing was drawn"
            f" for that line, and it may be deleted; {self._head.name} then keeps the line before."
            " After a crash at the very first spend, both files may be deleted.",
        )

    def _add(self, line: str) -> bool:
        """Add the spend of a line; return whether it is one."""
        try:
            row = json.loads(line)
            variance, votes = Fraction(row["variance"]), int(row["votes"])
            epsilon, delta = float(row["epsilon"]), float(row["delta"])
            records = RecordHashes.of(row)
            name, spend = str(row["id"]), Spend(str(row["method"]), variance, votes, epsilon, delta)
            valid = 0 < float(variance) < math.inf and float(votes) > 0 and records.hashes.size > 0
        except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError):
            return False
        if not (valid and 0 <= epsilon < math.inf and 0 < delta < 1):
            return False
        # A spend of the same run on more records replaces the earlier one.
        for key, (earlier, same, booked) in list(self._spends.items()):
            if (earlier, same) == (name, spend) and np.isin(booked.hashes, records.hashes).all():
                del self._spends[key]
        self._spends[line] = (name, spend, records)
        return True

    def total(self, documents: Sequence[Document], more: Spend | None = None) -> Total:
        """Return the spend on that one of these records with the largest spend.

        Args:
            documents: The corpus.
            more: A spend on all of them that is not booked yet.
        """
        corpus = _hashes_of(documents)
        rows = [(spend, records) for _, spend, records in self._spends.values()]
        rows += [(more, corpus)] if more is not None else []
        # Records with the same number of spends by every run share one account.
        counts = [_copies(corpus, records) for _, records in rows]
        delta = min((s.delta for (s, _), n in zip(rows, counts, strict=True) if n.any()), default=0)
        accounts = {tuple(each) for each in np.stack(counts, axis=1).tolist()} if counts else set()
        largest = Total(0, 0.0, 0.0, 0.0)
        for account in accounts:
            spends = [(spend, n) for (spend, _), n in zip(rows, account, strict=True) if n]
            if not spends:
                continue
            copies = max(account)
            if copies == 1:
                noises = [(spend.variance, spend.votes) for spend, _ in spends]
                epsilon = composed_epsilon(delta, noises)
            else:  # the rho of all runs is their sum
                votes = sum(n * n * spend.votes / spend.variance for spend, n in spends)
                epsilon = group_epsilon(delta, 1 / Fraction(votes), 1, 1)
            plain = math.fsum(
                s.epsilon if n == 1 else group_epsilon(s.delta, s.variance, s.votes, n)
                for s, n in spends
            )
            total = Total(len(spends), epsilon, delta, plain, copies)
            largest = max(largest, total, key=lambda each: each.epsilon)
        return largest

    def book(self, name: str, documents: Sequence[Document], spend: Spend) -> None:
        """Book a spend on all records; once for one name.

        Args:
            name: Name of the run that spends.
            documents: The corpus.
            spend: Its spend on each record.

        Raises:
            InputError: The ledger cannot be written, or its ceiling would be passed: then nothing
                may be drawn.
        """
        corpus = _hashes_of(documents)
        # Here a near copy is another record: a record that may not be booked yet is booked again.
        booked = [
            records.hashes for earlier, _, records in self._spends.values() if earlier == name
        ]
        if any(np.isin(corpus.hashes[:, :2], hashes).any(axis=1).all() for hashes in booked):
            return
        row = {
            "id": name,
            "method": spend.method,
            "variance": f"{spend.variance.numerator}/{spend.variance.denominator}",
            "votes": str(spend.votes),
            "epsilon": str(spend.epsilon),
            "delta": str(spend.delta),
            **corpus.row,
        }
        try:
            lines = Appender(self.path, "privacy ledger")
        except InputError as error:
            busy = error.message.startswith("Another process")
            hint = "Give another place with --ledger FILE, always one for the same records."
            raise InputError(
                f"The privacy ledger {self.path} cannot be written: {error.message}",
                "Wait for it and start again: its spend counts too." if busy else hint,
            ) from error
        try:
            self._read()  # other runs may have booked since
            after = self.total(documents, spend)
            if self.ceiling is not None and after.epsilon > self.ceiling:
                raise InputError(
                    f"This run would take a record to {after.in_words()}, above --max-epsilon"
                    f" {self.ceiling:g}. Nothing was drawn.",
                    "Take a smaller --epsilon, or other records.",
                )
            lines.append(row | {"after": self._last})
            self._read(booking=True)
            replace_file(self._head, f"{self._last}\n")
        finally:
            lines.close()


def _hashes_of(documents: Sequence[Document]) -> RecordHashes:
    hashes, pairs = [], []
    for text in (document.text.casefold() for document in documents):
        plain = unicodedata.normalize("NFKC", text).casefold()
        letters = "".join(filter(str.isalnum, plain))
        contents = [letters.encode(), " ".join(text.split()).encode(), *_bands(letters)]
        hashes += [hashlib.sha256(content).digest()[:8] for content in contents]
        words = ["".join(filter(str.isalnum, word)) for word in plain_tokens(plain)]
        neighbours = (f"{a} {b}".encode() for a, b in pairwise(filter(None, words)))
        pairs.append(np.unique(np.fromiter(map(zlib.crc32, neighbours), np.uint64)))
    persons = [
        hashlib.sha256(document.group.encode()).digest()[:8] if document.group else bytes(8)
        for document in documents
    ]
    return RecordHashes(
        np.frombuffer(b"".join(hashes), dtype="<u8").reshape(-1, 2 + _BANDS),
        np.concatenate([*pairs, np.zeros(0, np.uint64)]),
        np.array([len(row_pairs) for row_pairs in pairs], np.uint64),
        np.frombuffer(b"".join(persons), dtype="<u8"),
    )


def _line_hash(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def _copies(corpus: RecordHashes, booked: RecordHashes) -> NDArray[np.int64]:
    """How many booked rows are near each record, or of its person, shape (records,)."""
    # 1. Hashes in common: a record that shares any has one copy, several if it shares most.
    low, high, owners = _ranges(corpus.hashes, booked.hashes)
    copies = np.array((high > low).any(axis=1), np.int64)
    for n in np.flatnonzero((high - low > 1).any(axis=1)):
        near = [owners[a:b] for a, b in zip(low[n], high[n], strict=True)]
        shared = np.unique(np.concatenate(near), return_counts=True)[1]
        copies[n] = max(1, int((shared >= _COPIED).sum()))
    # 2. A part of the record, or a text of which the record is a part.
    np.maximum(copies, _contained(corpus, booked), out=copies)
    # 3. Rows of its person.
    low, high, _ = _ranges(corpus.persons[:, None], booked.persons[:, None])
    return np.maximum(copies, np.where(corpus.persons > 0, (high - low)[:, 0], 0))


def _ranges(
    numbers: NDArray[np.uint64], booked: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ends of the range of each number among the sorted booked ones, and the rows of these."""
    order = np.argsort(booked, axis=None)
    hashes, owners = booked.ravel()[order], order // booked.shape[1]
    return (*(np.searchsorted(hashes, numbers, side=side) for side in ("left", "right")), owners)


def _contained(corpus: RecordHashes, booked: RecordHashes) -> NDArray[np.bool_]:
    """Whether a good part of each record is part of a booked row, or the other way round."""
    owners, booked_owners = (
        np.repeat(np.arange(len(book.sizes)), book.sizes.astype(int)) for book in (corpus, booked)
    )
    low, high, order = _ranges(corpus.pairs[:, None], booked.pairs[:, None])
    low, many = low[:, 0], (high - low)[:, 0]
    # 1. A word pair in many rows is a common phrase and identifies no person.
    telling = many <= _PHRASE
    counts = np.unique(booked.pairs, return_inverse=True, return_counts=True)
    rare = counts[2][counts[1]] <= _PHRASE
    sizes = np.bincount(owners[telling], minlength=len(corpus.sizes))
    booked_sizes = np.bincount(booked_owners[rare], minlength=len(booked.sizes))
    # 2. The pairs of rows that share word pairs, with their number.
    some = np.flatnonzero(telling & (many > 0))
    starts = np.repeat(low[some] - np.cumsum(many[some]) + many[some], many[some])
    met = booked_owners[order[starts + np.arange(len(starts))]]
    rows, shared = np.unique(
        np.stack([np.repeat(owners[some], many[some]), met]), axis=1, return_counts=True
    )
    # 3. Their share of the smaller row.
    least = np.maximum(_FEWEST, _CONTAINED * np.minimum(sizes[rows[0]], booked_sizes[rows[1]]))
    contained = np.zeros(len(corpus.sizes), np.bool_)
    contained[rows[0][shared >= least]] = True
    return contained


def _bands(letters: str) -> list[bytes]:
    """Min-hashes of a text's runs, in bands: texts with many equal runs share a band."""
    codes = np.frombuffer((letters or " ").encode("utf-32-le"), "<u4").astype(np.uint64)
    size = min(_RUN, len(codes))
    runs = np.lib.stride_tricks.sliding_window_view(codes, size) @ _ODD[:size]
    mixed = ((runs ^ runs >> np.uint64(32)) * odd for odd in _ODD[: _BANDS * _MINIMA])
    least = np.array([((each ^ each >> np.uint64(29)) * _ODD[7]).min() for each in mixed], "<u8")
    return [bytes([n]) + band.tobytes() for n, band in enumerate(least.reshape(_BANDS, _MINIMA))]


def ledger_path(corpus: str) -> Path:
    """Return the path of a corpus's ledger: in its folder; in this one for a pasted text."""
    with suppress(OSError, ValueError):
        path = Path(corpus)
        if path.exists():
            return path.resolve().parent / LEDGER
    return Path(LEDGER)
