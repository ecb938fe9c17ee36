"""Shards of a run: which units are whose, where each keeps its files, what each may spend.

Shards cannot talk to each other. So that they never pass a cap together, each has a share of its
own; and shards of one number work side by side, never beside those of another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.asking.budget import OPTIONS, Budget, Use, spent_in
from ragwitness.errors import CapReachedError, InputError
from ragwitness.kit.files import at_hand, at_work
from ragwitness.kit.run_files import SHARDS, SPENT

_NAME = re.compile(r"(\d+)-of-(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One part of a run in ``of`` parts.

    Attributes:
        of: Number of parts.
        number: Of this one, from 1.

    Raises:
        InputError: Not 1 <= number <= of.
    """

    of: int
    number: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise InputError(
                f"There is no shard {self}.", "Write --shard I/N with I from 1 to N, e.g. 2/4."
            )

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``.

        Raises:
            InputError: It is no shard.
        """
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal()):
            raise InputError(f"{text!r} is no shard.", "Write --shard I/N, e.g. 2/4.")
        return cls(int(of), int(number))

    def takes(self, place: int) -> bool:
        """Whether the unit at a place of the run belongs to it; neighbours go to different ones."""
        return place % self.of == self.number - 1

    def folder(self, run: Path) -> Path:
        """Return the folder of its files."""
        return run / SHARDS / f"{self.number}-of-{self.of}"


def shards_of(run: Path) -> list[tuple[Shard, Path]]:
    """Return the shards that have been at work, in order, with their folders."""
    folders = (run / SHARDS).glob("*-of-*")
    named = ((_NAME.fullmatch(folder.name), folder) for folder in folders)
    return sorted((Shard(int(name[2]), int(name[1])), folder) for name, folder in named if name)


def files_of_shards(run: Path, name: str, besides: Shard | None = None) -> Iterator[Path]:
    """Yield the files of one name that shards have left.

    Args:
        run: Folder of the run.
        name: Of the file.
        besides: Leaves out this shard and its siblings, whose units are others; the run's own
            file comes first then.
    """
    if besides is not None and at_hand(run / name):
        yield run / name
    for shard, folder in shards_of(run):
        if (besides is None or shard.of != besides.of) and at_hand(folder / name):
            yield folder / name


def spent_before(run: Path) -> Use:
    """Return what all starts of a run have spent, its shards included.

    Raises:
        InputError: A file cannot be read.
    """
    ledgers = [run / SPENT, *files_of_shards(run, SPENT)]
    return sum(map(spent_in, ledgers), Use())


def share(budget: Budget, shard: Shard, run: Path) -> Budget:
    """Return what one shard may spend, its earlier starts included; the shares sum to the caps.

    What others than its siblings have spent is taken off first.

    Raises:
        CapReachedError: Nothing is left for it.
    """
    # Own: this shard. Siblings: of the same number, each with its share. Others: the run as a whole
    # and shards of other numbers, whose spending is gone from every share alike.
    siblings = sum(
        (spent_in(path / SPENT) for other, path in shards_of(run) if other.of == shard.of), Use()
    )
    own, total = spent_in(shard.folder(run) / SPENT), spent_before(run)
    others, rest = total - siblings, total - own
    money = [budget.price(use) or 0.0 for use in (others, rest)]
    return replace(
        budget,
        queries=_part("query", budget.queries, others.queries, rest.queries, shard),
        tokens=_part("token", budget.tokens, others.tokens, rest.tokens, shard),
        cost=_money(budget.cost, money[0], money[1], shard),
    )


def refuse_beside(run: Path, shard: Shard | None = None) -> None:
    """Refuse to work beside somebody whose spending is counted otherwise.

    Args:
        run: Folder of the run.
        shard: About to work; None for the run as a whole.

    Raises:
        InputError: The run as a whole, or a shard of another number, is at work.
    """
    # Siblings have shares that sum to the cap; all others would spend the same money twice.
    others = [path for other, path in shards_of(run) if shard is None or other.of != shard.of]
    if shard is not None:
        others.append(run)
    for folder in others:
        if at_work(folder / SPENT):
            raise InputError(
                f"Another process is at work in {folder}.",
                "Wait for it; caps hold among shards of one number only.",
            )


def _part(cap: str, limit: int | None, others: int, rest: int, shard: Shard) -> int | None:
    """A whole number; the first shards have one more where it does not come out even."""
    if limit is None:
        return None
    # Never more than what is left in all: an earlier start with fewer shards may have spent it.
    each, more = divmod(max(0, limit - others), shard.of)
    part = min(each + (shard.number <= more), limit - rest)
    if part < 1:
        raise _nothing_left(cap, shard)
    return part


def _money(limit: float | None, others: float, rest: float, shard: Shard) -> float | None:
    if limit is None:
        return None
    # Rounded towards zero, so that the sum cannot pass the cap by a rounding.
    part = min(math.nextafter((limit - others) / shard.of, 0.0), limit - rest)
    if part <= 0:
        raise _nothing_left("cost", shard)
    return part


def _nothing_left(cap: str, shard: Shard) -> CapReachedError:
    return CapReachedError(
        f"Nothing is left of the {cap} cap for shard {shard}.",
        f"Issue the audit command with --prepare and a higher {OPTIONS[cap]}, then this one again.",
    )
