"""What private synthesis has spent on records, kept beside them and composed over runs.

A spend is booked before its noise is drawn: a run that dies counts, and a run that resumes with its
kept votes counts once. What is spent is spent on records, whatever their file is called and
whatever else stands in it: a copy under another name, or a corpus with some of the same records,
with parts of them, with other words in some places, or of the same persons where a field names
them, finds the same spends in the same ledger. Near copies of a record, and records of one person,
spend on it once each. The ledger holds hashes of the records and is as private as they are.

Each line holds the hash of the line before, and a file beside the ledger that of the last line, so
that no line can be lost without a word.
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
from ragwitness.text.words import dense_tokens

_RUN = 24  # letters and digits, about five words
_BANDS, _MINIMA = 4, 4  # that two texts share: few do by chance, near copies nearly always
_COPIED = 3  # of these, in two rows of one corpus that are taken for one record
_CONTAINED = 0.3  # of the pairs of words of the smaller text, which make it part of the other
_FEWEST, _PHRASE = 3, 3  # pairs that make a part; rows in which a pair stands that is no phrase
_ODD = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 64) for n in range(1, _RUN + 1)], np.uint64)


@dataclass(frozen=True, slots=True)
class Spend:
    """What one run spends on each record.

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
    """What has been spent on the record that most was spent on.

    Attributes:
        runs: Spends on it.
        epsilon: All of them together, at ``delta``.
        delta: The smallest of all that were spent on the corpus: a run with a large one takes
            nothing off.
        plain: The sum of their epsilons, at the sum of their deltas.
        copies: Most rows near the record in one run.
    """

    runs: int
    epsilon: float
    delta: float
    plain: float
    copies: int = 1

    def told(self) -> str:
        """Return it in words."""
        if not self.runs:
            return "unknown to this ledger"
        runs = f"{self.runs} run{'s' * (self.runs > 1)}"
        more = f" ({self.plain:g} as a plain sum)" if self.runs > 1 else ""
        if self.copies > 1:
            more += f", up to {self.copies} near copies of a record in one"
        return f"epsilon {self.epsilon:.4g} at delta {self.delta:g}, {runs}{more}"


@dataclass(frozen=True)
class Held:
    """What is kept of the records that something was spent on.

    Attributes:
        hashes: Of each row's letters, words and bands, shape (rows, 2 + bands).
        pairs: Of the neighbouring words of each row, row after row; none of earlier versions.
        sizes: How many of them each row has, shape (rows,).
        persons: Of the person of each row, shape (rows,); 0 where nobody is named.
    """

    hashes: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    persons: NDArray[np.uint64]

    @property
    def row(self) -> dict[str, object]:
        """The same as fields of a line."""
        kept = {"records": self.hashes, "pairs": self.pairs, "sizes": self.sizes}
        kept |= {"persons": self.persons} if self.persons.any() else {}
        return {"rows": len(self.hashes)} | {
            name: base64.b64encode(one.astype(_STORED.get(name, "<u8")).tobytes()).decode()
            for name, one in kept.items()
        }

    @classmethod
    def of(cls, row: dict[str, str]) -> Held:
        """Read them from a line."""
        hashes, pairs, sizes, persons = (
            np.frombuffer(base64.b64decode(row.get(name, "")), _STORED.get(name, "<u8")).astype(
                "<u8"
            )
            for name in ("records", "pairs", "sizes", "persons")
        )
        # Earlier versions did not keep which hashes are of one row, nor what else is compared.
        count = int(row.get("rows", hashes.size))
        none = np.zeros(count, np.uint64)
        sizes, persons = (one if one.size else none for one in (sizes, persons))
        if not len(sizes) == len(persons) == count or sizes.sum() != len(pairs):
            raise ValueError("rows of different numbers")
        return cls(hashes.reshape(count, -1), pairs, sizes, persons)


_STORED = {"pairs": "<u4", "sizes": "<u4"}


class PrivacyLedger:
    """The spends on the records of a folder.

    Args:
        path: The file; made with the first spend.

    Raises:
        InputError: It cannot be read, or holds what is no spend: what cannot be counted must not
            count as nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[str, tuple[str, Spend, Held]] = {}  # by their lines
        self._head = path.with_name(f"{path.name}.head")
        self._read()

    def _read(self) -> None:
        path = self.path
        try:
            lines = path.read_text("utf-8").splitlines() if path.exists() else []
            head = self._head.read_text("utf-8").strip() if self._head.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The privacy ledger {path} cannot be read: {error}.") from error
        lines = [line for line in map(str.strip, lines) if line]
        # 1. Every line is a spend.
        for number, line in enumerate(lines, 1):
            if line not in self._rows and not self._kept(line):
                raise self._damaged(f"Line {number} of the privacy ledger {path} is no spend")
        # 2. No line is missing: each names the one before it, and the last one is known. A run that
        # ended between the two had booked, and had not drawn.
        for number, (before, line) in enumerate(pairwise(["", *lines]), 1):
            if json.loads(line).get("after", _line_hash(before)) != _line_hash(before):
                raise self._damaged(
                    f"Before line {number} of the privacy ledger {path} one is missing"
                )
        if head and head not in map(_line_hash, lines):
            raise self._damaged(f"The last line of the privacy ledger {path} is missing")
        self._last = _line_hash(lines[-1] if lines else "")

    def _damaged(self, what: str) -> InputError:
        return InputError(
            f"{what}, or was changed: nobody knows what was spent.",
            "Restore the file from a backup. If a crash cut its last line short, nothing was drawn"
            f" for that line, and it may be deleted; {self._head.name} then keeps the line before.",
        )

    def _kept(self, line: str) -> bool:
        try:
            row = json.loads(line)
            variance, votes = Fraction(row["variance"]), int(row["votes"])
            epsilon, delta = float(row["epsilon"]), float(row["delta"])
            records = Held.of(row)
            name, spend = str(row["id"]), Spend(str(row["method"]), variance, votes, epsilon, delta)
            whole = 0 < float(variance) < math.inf and float(votes) > 0 and records.hashes.size > 0
        except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError):
            return False
        if whole := whole and 0 <= epsilon < math.inf and 0 < delta < 1:
            # One spend on more records than were booked at first is one.
            for key, (known, old, held) in list(self._rows.items()):
                if (known, old) == (name, spend) and np.isin(held.hashes, records.hashes).all():
                    del self._rows[key]
            self._rows[line] = (name, spend, records)
        return whole

    def total(self, documents: Sequence[Document], more: Spend | None = None) -> Total:
        """Return what was spent on these records, the one that most was spent on.

        Args:
            documents: The corpus.
            more: A spend on all of them that is not booked yet.
        """
        own = _held(documents)
        rows = [(spend, records) for _, spend, records in self._rows.values()]
        rows += [(more, own)] if more is not None else []
        # Records on which the same runs spent as often are alike: one account for each such group.
        met = [_copies(own, records) for _, records in rows]
        delta = min(
            (one.delta for (one, _), n in zip(rows, met, strict=True) if n.any()), default=0
        )
        groups = {tuple(one) for one in np.stack(met, axis=1).tolist()} if met else set()
        best = Total(0, 0.0, 0.0, 0.0)
        for group in groups:
            spends = [(one, n) for (one, _), n in zip(rows, group, strict=True) if n]
            if not spends:
                continue
            copies = max(group)
            if copies == 1:
                noises = [(one.variance, one.votes) for one, _ in spends]
                epsilon = composed_epsilon(delta, noises)
            else:  # the rho of all runs is their sum
                votes = sum(n * n * one.votes / one.variance for one, n in spends)
                epsilon = group_epsilon(delta, 1 / Fraction(votes), 1, 1)
            plain = math.fsum(
                one.epsilon if n == 1 else group_epsilon(one.delta, one.variance, one.votes, n)
                for one, n in spends
            )
            total = Total(len(spends), epsilon, delta, plain, copies)
            best = max(best, total, key=lambda one: one.epsilon)
        return best

    def book(self, name: str, documents: Sequence[Document], spend: Spend) -> None:
        """Book a spend on all records; once for one name.

        Args:
            name: Name of the run that spends.
            documents: The corpus.
            spend: What it spends.

        Raises:
            InputError: The ledger cannot be written: then nothing may be drawn.
        """
        mine = _held(documents)
        # Here a near copy is another record: what may not be booked yet is booked again.
        own = [held.hashes for known, _, held in self._rows.values() if known == name]
        if any(np.isin(mine.hashes[:, :2], hashes).any(axis=1).all() for hashes in own):
            return
        row = {
            "id": name,
            "method": spend.method,
            "variance": f"{spend.variance.numerator}/{spend.variance.denominator}",
            "votes": str(spend.votes),
            "epsilon": str(spend.epsilon),
            "delta": str(spend.delta),
            **mine.row,
        }
        try:
            lines = Appender(self.path, "privacy ledger")
        except InputError as error:
            busy = error.message.startswith("Another process")
            other = "Give another place with --ledger FILE, always one for the same records."
            raise InputError(
                f"The privacy ledger {self.path} cannot be written: {error.message}",
                "Wait for it and start again: its spend counts too." if busy else other,
            ) from error
        try:
            self._read()  # other runs may have booked since
            lines.append(row | {"after": self._last})
            self._read()
            replace_file(self._head, f"{self._last}\n")
        finally:
            lines.close()


def _held(documents: Sequence[Document]) -> Held:
    """Numbers for each text: of letters and digits, of words, of what is near it, and of pairs."""
    found, pairs = [], []
    for text in (one.text.casefold() for one in documents):
        plain = unicodedata.normalize("NFKC", text).casefold()
        bare = "".join(filter(str.isalnum, plain))
        parts = [bare.encode(), " ".join(text.split()).encode(), *_near(bare)]
        found += [hashlib.sha256(part).digest()[:8] for part in parts]
        words = ["".join(filter(str.isalnum, word)) for word in dense_tokens(plain)]
        neighbours = (f"{a} {b}".encode() for a, b in pairwise(filter(None, words)))
        pairs.append(np.unique(np.fromiter(map(zlib.crc32, neighbours), np.uint64)))
    persons = [
        hashlib.sha256(one.group.encode()).digest()[:8] if one.group else bytes(8)
        for one in documents
    ]
    return Held(
        np.frombuffer(b"".join(found), dtype="<u8").reshape(-1, 2 + _BANDS),
        np.concatenate([*pairs, np.zeros(0, np.uint64)]),
        np.array([len(some) for some in pairs], np.uint64),
        np.frombuffer(b"".join(persons), dtype="<u8"),
    )


def _line_hash(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def _copies(mine: Held, booked: Held) -> NDArray[np.int64]:
    """How many of the rows booked are near each record, or of its person, shape (records,)."""
    # 1. Hashes in common: one that shares anything has one copy, several where most are shared.
    low, high, owners = _places(mine.hashes, booked.hashes)
    found = np.array((high > low).any(axis=1), np.int64)
    for place in np.flatnonzero((high - low > 1).any(axis=1)):
        near = [owners[a:b] for a, b in zip(low[place], high[place], strict=True)]
        shared = np.unique(np.concatenate(near), return_counts=True)[1]
        found[place] = max(1, int((shared >= _COPIED).sum()))
    # 2. A part of it, or what it is a part of.
    np.maximum(found, _contained(mine, booked), out=found)
    # 3. Rows of its person.
    low, high, _ = _places(mine.persons[:, None], booked.persons[:, None])
    return np.maximum(found, np.where(mine.persons > 0, (high - low)[:, 0], 0))


def _places(
    mine: NDArray[np.uint64], booked: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ends of the ranges in which each number stands among those booked, and their rows."""
    order = np.argsort(booked, axis=None)
    hashes, owners = booked.ravel()[order], order // booked.shape[1]
    return (*(np.searchsorted(hashes, mine, side=side) for side in ("left", "right")), owners)


def _contained(mine: Held, booked: Held) -> NDArray[np.bool_]:
    """Say of which records a good part is part of a row booked, or the other way round."""
    own, theirs = (
        np.repeat(np.arange(len(one.sizes)), one.sizes.astype(int)) for one in (mine, booked)
    )
    low, high, order = _places(mine.pairs[:, None], booked.pairs[:, None])
    low, many = low[:, 0], (high - low)[:, 0]
    # 1. A pair that stands in many rows is a phrase, which tells of nobody.
    telling = many <= _PHRASE
    stands = np.unique(booked.pairs, return_inverse=True, return_counts=True)
    rare = stands[2][stands[1]] <= _PHRASE
    sizes = np.bincount(own[telling], minlength=len(mine.sizes))
    others = np.bincount(theirs[rare], minlength=len(booked.sizes))
    # 2. Each pair of rows that share some, with how many.
    some = np.flatnonzero(telling & (many > 0))
    starts = np.repeat(low[some] - np.cumsum(many[some]) + many[some], many[some])
    met = theirs[order[starts + np.arange(len(starts))]]
    rows, shared = np.unique(
        np.stack([np.repeat(own[some], many[some]), met]), axis=1, return_counts=True
    )
    # 3. The share of the smaller of the two.
    least = np.maximum(_FEWEST, _CONTAINED * np.minimum(sizes[rows[0]], others[rows[1]]))
    found = np.zeros(len(mine.sizes), np.bool_)
    found[rows[0][shared >= least]] = True
    return found


def _near(bare: str) -> list[bytes]:
    """Min-hashes of a text's runs, in bands: texts with many of the same runs share a band."""
    codes = np.frombuffer((bare or " ").encode("utf-32-le"), "<u4").astype(np.uint64)
    size = min(_RUN, len(codes))
    runs = np.lib.stride_tricks.sliding_window_view(codes, size) @ _ODD[:size]
    mixed = ((runs ^ runs >> np.uint64(32)) * odd for odd in _ODD[: _BANDS * _MINIMA])
    least = np.array([((one ^ one >> np.uint64(29)) * _ODD[7]).min() for one in mixed], "<u8")
    return [bytes([n]) + band.tobytes() for n, band in enumerate(least.reshape(_BANDS, _MINIMA))]


def ledger_path(corpus: str) -> Path:
    """Return where the ledger of a corpus is: in its folder; in this one for a pasted text."""
    with suppress(OSError, ValueError):
        path = Path(corpus)
        if path.exists():
            return path.resolve().parent / LEDGER
    return Path(LEDGER)
