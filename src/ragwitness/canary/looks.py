"""Every look at a draw, in the order in which they were begun; none is ever taken back.

A p-value is for one look. A probe of a second model, or of the first one in another way, is
another look at the same draw. So a look is known by a digest of its scores: the same answers, read
again, take their own place, and other answers take the next one. A look counts from its first query
on, finished or not: an audit that stops when the answers look bad was a look. The looks of a plan
are in ``secret/begun.jsonl`` and, finished, in ``secret/probes.jsonl`` of its folder. Only
:func:`ragwitness.canary.run.probe_canaries` writes there, before it asks and before it reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ragwitness.canary.folder import LOST
from ragwitness.canary.rank_test import Seen
from ragwitness.canary.traces import QUOTED
from ragwitness.core.errors import InputError
from ragwitness.core.files import only_writer, read_rows, replace_file, unwritable, write_rows

_BEGUN, _LOOKS, _OPENED, _LOCK = "begun.jsonl", "probes.jsonl", "opened.json", ".looks.lock"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the draw: a probe whose every example was asked about.

    Attributes:
        release: The user's name of this release of the model.
        target: Name of the system, with the way in which it was asked.
        digest: SHA-256 of release and scores; the same answers are the same look.
        ranks: Ranks of the planted trigger in each planted slot, 1 being the highest.
        candidates: M, of every slot.
        statistic: W over the planted slots.
        verdict: As reported.
        p_value: As reported.
        own: p-value of this look by itself.
        called: Outcomes of the draw that it was the first to call; see :mod:`.rank_test`.
        begun: Key of its beginning; empty for a recording.
        skipped: Looks that were begun before it and not finished when it was.
    """

    release: str
    target: str
    digest: str
    ranks: tuple[int, ...]
    candidates: int
    statistic: float
    verdict: str
    p_value: float
    own: float = 1.0
    called: tuple[int, ...] = ()
    begun: str = ""
    skipped: int = 0

    def __post_init__(self) -> None:
        """Refuse ranks that no look can have."""
        if not self.ranks or not all(1 <= rank <= self.candidates for rank in self.ranks):
            raise ValueError

    @property
    def seen(self) -> Seen:
        """The part of it that enters the next looks."""
        return Seen(tuple((rank, self.candidates) for rank in self.ranks), self.own, self.called)


@dataclass(frozen=True, slots=True)
class Beginning:
    """A look of which the first query was about to be sent.

    Attributes:
        key: Key of the run folder and how it asks; the same one goes on with the same look.
        release: The user's name of this release of the model.
        target: Name of the system.
    """

    key: str
    release: str
    target: str


@dataclass(frozen=True, slots=True)
class History:
    """Earlier looks at a plan.

    Attributes:
        looks: All of them in their order.
        quoted: Answers to planted traces that quoted a trigger.
        answered: Answers to planted traces that were given a vote or refused one.
        opened: Whether the draw was opened, and is not secret any more.
        begun: Looks whose first query was sent, in their order, finished or not.
        planted: Planted votes and days by label; empty without a journal.
    """

    looks: tuple[Look, ...]
    quoted: int
    answered: int
    opened: bool
    begun: tuple[Beginning, ...] = ()
    planted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unfinished(self) -> tuple[Beginning, ...]:
        """Looks that were begun and have shown nothing yet."""
        done = {look.begun for look in self.looks}
        return tuple(look for look in self.begun if look.key not in done)

    def earlier(self, digest: str, key: str = "") -> tuple[Seen, ...]:
        """Return what the looks before one showed; one that is unfinished showed nothing.

        A look that was recorded keeps those that it had; a new one has all that were finished, and
        those that were begun before it and are not.

        Args:
            digest: Digest of its answers.
            key: Key of its beginning.
        """
        digests = [look.digest for look in self.looks]
        if digest in digests:
            at = digests.index(digest)
            skipped = self.looks[at].skipped
        else:
            at, keys = len(digests), [look.key for look in self.unfinished]
            skipped = keys.index(key) if key in keys else len(keys)
        return (*(look.seen for look in self.looks[:at]), *[Seen(())] * skipped)

    def refuse_new(self, releases: int, *, key: str = "") -> InputError | None:
        """Return why no new question may be asked; None where one may.

        Args:
            releases: Looks that the plan announced; 0 where it left their number open.
            key: Key of the look's beginning: one that was begun may go on.
        """
        if self.opened:
            return InputError(
                "This draw was opened: a model may have learned it from there, and no new probe"
                " decides.",
                "Plan anew. Answers that were kept can be read again: replay/RUN.",
            )
        if any(look.key == key for look in self.unfinished):
            return None
        if 0 < releases <= len(self.looks) + len(self.unfinished):
            looks = "one look" if releases == 1 else f"{releases} looks"
            open_ = f" ({len(self.unfinished)} begun and not finished)" if self.unfinished else ""
            return InputError(
                f"This plan announced {looks} at its draw{open_}, and no more may be taken: another"
                " would decide nothing.",
                "Finish what was begun: the same command, with the same --run. Or plan anew."
                if self.unfinished
                else "Plan anew, with --releases for more than one. Answers that were kept can be"
                " read again: replay/RUN.",
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
        begun=_read_begun(folder),
    )


def _read_begun(folder: Path) -> tuple[Beginning, ...]:
    path = folder / "secret" / _BEGUN
    rows = read_rows(path, LOST) if path.exists() else []
    try:
        return tuple(Beginning(**row) for row in rows)
    except TypeError:
        raise InputError(f"{path} holds a line that is no beginning of a look.", LOST) from None


def begin_look(folder: Path, look: Beginning) -> None:
    """Keep that a look begins, before its first query. Call it within :func:`one_at_a_time`.

    Raises:
        InputError: The file cannot be read or written.
    """
    begun = _read_begun(folder)
    if look.key not in [beginning.key for beginning in begun]:
        write_rows(folder / "secret" / _BEGUN, map(asdict, (*begun, look)), secret=True)


def read_looks(folder: Path) -> tuple[Look, ...]:
    """Return the looks at the draw of a plan, in their order.

    Raises:
        InputError: The file cannot be read, or was changed.
    """
    from pydantic import TypeAdapter, ValidationError

    path = folder / "secret" / _LOOKS
    rows = read_rows(path, LOST) if path.exists() else []
    try:
        return TypeAdapter(tuple[Look, ...]).validate_json(json.dumps(rows), strict=True)
    except ValidationError:
        raise InputError(f"{path} holds a line that is no probe.", LOST) from None


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep every other process out from reading the looks of a plan to recording one more.

    Raises:
        InputError: The folder cannot be written.
    """
    path = folder / "secret" / _LOCK
    with ExitStack() as locks:
        try:
            locks.enter_context(only_writer(path))
        except OSError as error:
            raise unwritable(path, error, "A look must be recorded before it is shown.") from error
        yield


def record_look(folder: Path, look: Look) -> None:
    """Keep a look; the same one again takes its own place. Call it within :func:`one_at_a_time`.

    Raises:
        InputError: The file cannot be read or written.
    """
    looks = list(read_looks(folder))
    position = next((n for n, entry in enumerate(looks) if entry.digest == look.digest), len(looks))
    # A known look keeps its place, a new one comes last; the file is replaced whole.
    # The same answers under another beginning show nothing new: that one was no look.
    if position < len(looks):
        if look.begun not in ("", looks[position].begun):
            remaining = [asdict(entry) for entry in _read_begun(folder) if entry.key != look.begun]
            write_rows(folder / "secret" / _BEGUN, remaining, secret=True)
        look = replace(look, begun=looks[position].begun, skipped=looks[position].skipped)
    looks[position : position + 1] = [look]
    write_rows(folder / "secret" / _LOOKS, map(asdict, looks))


def mark_opened(folder: Path, file: Path) -> None:
    """Keep that the draw is not secret any more.

    Args:
        folder: Folder of the plan.
        file: Where it was opened to.

    Raises:
        InputError: Nothing was probed yet, or it cannot be written.
    """
    if not read_looks(folder):
        raise InputError(
            "Nothing has been probed yet, and once a draw is open no later probe decides.",
            f"First: ragwitness canary probe TARGET --plan {folder}",
        )
    opened = json.dumps({"opened": str(file)}, indent=1) + "\n"
    replace_file(folder / "secret" / _OPENED, opened, secret=True)
