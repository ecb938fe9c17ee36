"""What private synthesis has spent on records, kept beside them and composed over runs.

A spend is booked before its noise is drawn: a run that dies counts, and a run that resumes with its
kept votes counts once. What is spent is spent on records, whatever their file is called and
whatever else stands in it: a copy under another name, or a corpus with some of the same records or
with a good part of their text, finds the same spends in the same ledger. Near copies of a record in
one corpus spend on it once each. The ledger holds hashes of the records and is as private as they
are.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.defenses.synthetic.private.accounting import composed_epsilon, group_epsilon
from ragwitness.errors import InputError
from ragwitness.kit.files import Appender
from ragwitness.kit.run_files import LEDGER
from ragwitness.types import Document

_RUN = 24  # letters and digits, about five words
_BANDS, _MINIMA = 4, 4  # that two texts share: few do by chance, near copies nearly always
_COPIED = 3  # of these, in two rows of one corpus that are taken for one record
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
            return "nothing"
        runs = f"{self.runs} run{'s' * (self.runs > 1)}"
        more = f" ({self.plain:g} as a plain sum)" if self.runs > 1 else ""
        if self.copies > 1:
            more += f", up to {self.copies} near copies of a record in one"
        return f"epsilon {self.epsilon:.4g} at delta {self.delta:g}, {runs}{more}"


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
        self._rows: dict[str, tuple[str, Spend, NDArray[np.uint64]]] = {}  # by their lines
        self._read()

    def _read(self) -> None:
        path = self.path
        try:
            data = path.read_bytes() if path.exists() else b""
            lines = data.decode().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The privacy ledger {path} cannot be read: {error}.") from error
        self._cut: int | None = None  # where a line begins that a crash cut short
        for number, line in enumerate(map(str.strip, lines), 1):
            # What lacks its end alone is a spend all the same.
            ends = ("",) if line.endswith("}") else ("}", '"}')
            if not line or any(self._kept(line + end) for end in ends):
                continue
            if line.endswith("}") or number < len(lines):
                raise InputError(
                    f"Line {number} of the privacy ledger {path} is no spend.",
                    "Restore the file from a backup: without it nobody knows what was spent.",
                )
            # A last line that a crash cut short was none yet: noise is drawn after it is whole.
            self._cut = data.rfind(b"\n") + 1

    def _kept(self, line: str) -> bool:
        try:
            row = json.loads(line)
            variance, votes = Fraction(row["variance"]), int(row["votes"])
            epsilon, delta = float(row["epsilon"]), float(row["delta"])
            records = np.frombuffer(base64.b64decode(row["records"]), dtype="<u8")
            # Earlier versions did not keep which hashes are of one row.
            records = records.reshape(int(row.get("rows", records.size)), -1)
            name, spend = str(row["id"]), Spend(str(row["method"]), variance, votes, epsilon, delta)
            whole = 0 < float(variance) < math.inf and float(votes) > 0 and records.size > 0
        except (ValueError, LookupError, TypeError, ArithmeticError):
            return False
        if whole := whole and 0 <= epsilon < math.inf and 0 < delta < 1:
            # One spend on more records than were booked at first is one.
            for key, (known, old, held) in list(self._rows.items()):
                if (known, old) == (name, spend) and np.isin(held, records).all():
                    del self._rows[key]
            self._rows[line] = (name, spend, records)
        return whole

    def total(self, documents: Sequence[Document], more: Spend | None = None) -> Total:
        """Return what was spent on these records, the one that most was spent on.

        Args:
            documents: The corpus.
            more: A spend on all of them that is not booked yet.
        """
        own = _hashes(documents)
        mine = np.unique(own, axis=0)
        rows = [(spend, records) for _, spend, records in self._rows.values()]
        rows += [(more, own)] if more is not None else []
        # Records on which the same runs spent as often are alike: one account for each such group.
        met = [_copies(mine, records) for _, records in rows]
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
        mine = _hashes(documents)
        # Here a near copy is another record: what may not be booked yet is booked again.
        own = [records for known, _, records in self._rows.values() if known == name]
        if any(np.isin(mine[:, :2], records).any(axis=1).all() for records in own):
            return
        row = {
            "id": name,
            "method": spend.method,
            "variance": f"{spend.variance.numerator}/{spend.variance.denominator}",
            "votes": str(spend.votes),
            "epsilon": str(spend.epsilon),
            "delta": str(spend.delta),
            "rows": len(mine),
            "records": base64.b64encode(mine.astype("<u8").tobytes()).decode(),
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
            if self._cut is not None:
                os.truncate(self.path, self._cut)
            lines.append(row)
        finally:
            lines.close()
        self._read()


def _hashes(documents: Sequence[Document]) -> NDArray[np.uint64]:
    """Numbers for each text: of its letters and digits, of its words, and of what is near it."""
    found = []
    for text in (one.text.casefold() for one in documents):
        bare = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
        parts = [bare.encode(), " ".join(text.split()).encode(), *_near(bare)]
        found += [hashlib.sha256(part).digest()[:8] for part in parts]
    return np.frombuffer(b"".join(found), dtype="<u8").reshape(-1, 2 + _BANDS)


def _copies(mine: NDArray[np.uint64], booked: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many of the rows booked are near each record; one that shares anything has one."""
    order = np.argsort(booked, axis=None)
    hashes, owners = booked.ravel()[order], order // booked.shape[1]
    low, high = (np.searchsorted(hashes, mine, side=side) for side in ("left", "right"))
    found = np.array((high > low).any(axis=1), np.int64)
    for place in np.flatnonzero((high - low > 1).any(axis=1)):
        near = [owners[a:b] for a, b in zip(low[place], high[place], strict=True)]
        shared = np.unique(np.concatenate(near), return_counts=True)[1]
        found[place] = max(1, int((shared >= _COPIED).sum()))
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
