"""Every look at a draw, in the order in which they were taken; none is ever taken back.

A p-value is for one look. Whoever probes a second model, or the first one in another way, looks
again at the same draw. So a look is known by a digest of its scores: the same answers, read again,
take their own place, and other answers take the next one. The looks of a plan stand in
``secret/probes.jsonl`` of its folder; :func:`ragwitness.audits.canary.probe_canaries` is the only
one who writes there, before it reports what it found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ragwitness.canary.folder import LOST
from ragwitness.canary.traces import QUOTED
from ragwitness.errors import InputError
from ragwitness.kit.files import only_writer, read_rows, replace_file, unwritable, write_rows

_LOOKS, _OPENED, _LOCK = "probes.jsonl", "opened.json", ".looks.lock"
_KEYS = {"digest": "look"}  # what a field is called in the file, where it is not its own name


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the draw: a probe whose every example was asked about.

    Attributes:
        release: What the user calls this release of the model.
        twin: Whether the model is known not to be trained on documents.
        target: Name of the system, with the way in which it was asked.
        digest: SHA-256 of release and scores; the same answers are the same look.
        ranks: Of the planted trigger in each planted slot, 1 being the highest.
        candidates: M, of every slot.
        statistic: W over the planted slots.
        verdict: As reported.
        p_value: As reported.
    """

    release: str
    twin: bool
    target: str
    digest: str
    ranks: tuple[int, ...]
    candidates: int
    statistic: float
    verdict: str
    p_value: float

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Per planted slot the rank and the number of candidates it is among."""
        return tuple((rank, self.candidates) for rank in self.ranks)


@dataclass(frozen=True, slots=True)
class History:
    """What was seen of a plan so far.

    Attributes:
        looks: All of them in their order, those at compliant twins included.
        quoted: Answers to planted traces that quoted a trigger.
        answered: Answers to planted traces that were given a vote or refused one.
        opened: Whether the draw was opened, and is not secret any more.
    """

    looks: tuple[Look, ...]
    quoted: int
    answered: int
    opened: bool

    @property
    def counted(self) -> tuple[Look, ...]:
        """The looks at models under suspicion: the ones that the plan announced a number of."""
        return tuple(one for one in self.looks if not one.twin)

    @property
    def twins(self) -> tuple[float, ...]:
        """Statistic W of every compliant twin."""
        return tuple(one.statistic for one in self.looks if one.twin)

    def place(self, digest: str) -> int:
        """Return the place, from 0, of a look among those counted; a new one stands behind them."""
        known = [one.digest for one in self.counted]
        return known.index(digest) if digest in known else len(known)

    def refuse_new(self, releases: int, *, twin: bool) -> InputError | None:
        """Return why no new question may be asked; None where one may.

        Args:
            releases: Looks that the plan announced; 0 where it left their number open.
            twin: Whether the model is a compliant twin; those are not counted.
        """
        if self.opened:
            return InputError(
                "This draw was opened: a model may have learned it from there, and no new probe"
                " decides.",
                "Plan anew. Answers that were kept can be read again: replay/RUN.",
            )
        if not twin and 0 < releases <= len(self.counted):
            looks = "one look" if releases == 1 else f"{releases} looks"
            return InputError(
                f"This plan announced {looks} at its draw, and no more may be taken: another would"
                " decide nothing.",
                "Plan anew, with --releases for more than one. Answers that were kept can be read"
                " again: replay/RUN.",
            )
        return None


def read_history(folder: Path) -> History:
    """Return what was seen of the plan in a folder; a plan that was not probed has no looks.

    Raises:
        InputError: A file cannot be read, or was changed.
    """
    votes = folder / "send" / "feedback.jsonl"
    reasons = [row.get("reason") for row in read_rows(votes, LOST)] if votes.exists() else []
    return History(
        looks=read_looks(folder),
        quoted=reasons.count(QUOTED),
        answered=len(reasons),
        opened=(folder / "secret" / _OPENED).exists(),
    )


def read_looks(folder: Path) -> tuple[Look, ...]:
    """Return the looks at the draw of a plan, in their order.

    Raises:
        InputError: The file cannot be read, or was changed.
    """
    path = folder / "secret" / _LOOKS
    rows = read_rows(path, LOST) if path.exists() else []
    if not all(map(_is_look, rows)):
        raise InputError(f"{path} holds a line that is no probe.", "Restore it from a copy.")
    return tuple(map(_look, rows))


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep every other process out from reading the looks of a plan to recording one more.

    Raises:
        InputError: The folder cannot be written.
    """
    path = folder / "secret" / _LOCK
    with ExitStack() as held:
        try:
            held.enter_context(only_writer(path))
        except OSError as error:
            raise unwritable(path, error, "A look must be recorded before it is shown.") from error
        yield


def record_look(folder: Path, look: Look) -> None:
    """Keep a look; the same one again takes its own place. Call it within :func:`one_at_a_time`.

    Raises:
        InputError: The file cannot be read or written, or the same answers were kept as those of
            a twin, or as those of a model under suspicion.
    """
    looks = list(read_looks(folder))
    place = next((n for n, one in enumerate(looks) if one.digest == look.digest), len(looks))
    if place < len(looks) and looks[place].twin != look.twin:
        was = "of a compliant twin" if looks[place].twin else "of no twin"
        raise InputError(
            f"The same answers were kept as those {was}.",
            "What a model is cannot be changed after its answers were seen.",
        )
    # In its own place where it was seen before, else behind all others; the file is replaced whole.
    looks[place : place + 1] = [look]
    write_rows(folder / "secret" / _LOOKS, map(_stored, looks))


def mark_opened(folder: Path, file: Path) -> None:
    """Keep that the draw is not secret any more.

    Args:
        folder: Of the plan.
        file: Where it was opened to.

    Raises:
        InputError: Nothing was probed yet, or it cannot be written.
    """
    if all(one.twin for one in read_looks(folder)):
        raise InputError(
            "Nothing has been probed yet, and once a draw is open no later probe decides.",
            f"First: ragwitness canary probe TARGET --plan {folder}",
        )
    opened = json.dumps({"opened": str(file)}, indent=1) + "\n"
    replace_file(folder / "secret" / _OPENED, opened, secret=True)


def _stored(look: Look) -> dict[str, Any]:
    """A look as its line, in the names and the order that every version has written."""
    return {_KEYS.get(name, name): value for name, value in asdict(look).items()}


def _look(row: Mapping[str, Any]) -> Look:
    kept = {one.name: row[_KEYS.get(one.name, one.name)] for one in fields(Look)}
    return Look(**kept | {"ranks": tuple(row["ranks"])})


def _is_look(row: Mapping[str, Any]) -> bool:
    texts, numbers = ("release", "target", "look", "verdict"), ("statistic", "p_value")
    ranks, most = row.get("ranks"), row.get("candidates")
    return (
        all(isinstance(row.get(name), str) for name in texts)
        and all(isinstance(row.get(name), int | float) for name in numbers)
        and isinstance(row.get("twin"), bool)
        and isinstance(most, int)
        and isinstance(ranks, list)
        and bool(ranks)
        and all(isinstance(rank, int) and 1 <= rank <= most for rank in ranks)
    )
