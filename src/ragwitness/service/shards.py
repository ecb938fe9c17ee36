"""An index cut into parts, each scanned by a process or Ray actor of its own.

Noise is per slot and derived from the record's key, so that whoever scans a slot adds the same
noise: the best of all parts is the single scan's answer, byte for byte. An answer needs every
part; where one is missing there is an error and no answer.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.kit.quotes import quote_error
from ragwitness.privacy.mechanism.config import Mechanism
from ragwitness.privacy.mechanism.release import Rows, Selection, best_of, check_rows, scan_part

MOST_SHARDS = 256

Block: TypeAlias = tuple[NDArray[np.int64], Rows]
"""Slots, shape (n,), and their vectors, shape (n, dimension)."""

_PATIENCE = 120.0  # seconds for one part of one answer, or for reading a part
_ZEROS = bytes(1 << 20)


class ShardGoneError(RagwitnessError):
    """A shard ended, failed or did not answer in time; there is no answer without its part."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """How an index is cut.

    Attributes:
        count: Parts; an index with fewer slots has as many parts as slots.
        ray: Whether each is a Ray actor and not a process of this machine.
    """

    count: int
    ray: bool = False

    @classmethod
    def parse(cls, text: str) -> Sharding:
        """Read ``N``, ``ray`` or ``ray:N``; ``ray`` alone has a part for each core.

        Raises:
            InputError: It is none of these, or N is outside 1 to :data:`MOST_SHARDS`.
        """
        found = re.fullmatch(r"(ray(?=:|$))?:?(\d{1,6})?", text)
        if not text or found is None or text == "ray:" or text.startswith(":"):
            raise InputError(f"--shards {text!r} cannot be read.", "Write N, ray or ray:N.")
        count = int(found[2]) if found[2] else os.cpu_count() or 1
        if not 1 <= count <= MOST_SHARDS:
            raise InputError(f"An index has 1 to {MOST_SHARDS} shards, not {count}.")
        return cls(count, found[1] is not None)


class ShardKeeper:
    """The parts that one shard holds, of any number of indexes."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[NDArray[np.float32], int, Mechanism]] = {}

    def hold_file(self, number: int, path: str, start: int, stop: int, terms: Mechanism) -> None:
        """Map slots ``start`` to ``stop - 1`` of a file of single-precision numbers."""
        shape = (terms.capacity, terms.dimension)
        rows = np.memmap(path, np.float32, "r", shape=shape)
        self._held[number] = rows[start:stop], start, terms

    def hold_rows(self, number: int, rows: Rows, start: int, terms: Mechanism) -> None:
        """Take slots ``start`` on as they are."""
        self._held[number] = rows.astype(np.float32), start, terms

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget indexes that nobody asks any more."""
        for number in numbers:
            self._held.pop(number, None)

    def scan(self, number: int, query: Rows, key: bytes) -> Selection:
        """Return the best slots of this shard's part; see :func:`scan_part`."""
        rows, start, terms = self._held[number]
        return scan_part(query, rows, start, key, terms)


class _Seat(Protocol):
    """One shard: what it is asked, and what it says."""

    def send(self, method: str, *given: object) -> None: ...

    def receive(self) -> Any: ...

    def alive(self) -> bool: ...

    def end(self) -> None: ...


class _Process:
    """A shard on this machine: reads requests from a socket and ends when that closes."""

    def __init__(self) -> None:
        self._pipe, far = Pipe()
        # No fork of a process with threads, and no import of whatever program this is. One thread
        # of the linear algebra each: the shards are the parallelism.
        self._child = subprocess.Popen(  # noqa: S603  # this very interpreter
            [sys.executable, "-m", "ragwitness.service.shards", str(far.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[far.fileno()],
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        far.close()

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, method: str, *given: object) -> None:
        self._pipe.send((method, given))

    def receive(self) -> Any:
        if not self._pipe.poll(_PATIENCE):
            raise TimeoutError(f"no answer in {_PATIENCE:g} seconds")
        failed, found = self._pipe.recv()
        if failed:
            raise RuntimeError(found)
        return found

    def alive(self) -> bool:
        return self._child.poll() is None

    def end(self) -> None:
        self._pipe.close()
        self._child.kill()  # it holds nothing that is not in the database as well
        self._child.wait()


class _Actor:
    """A shard anywhere on a Ray cluster."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._actor = ray.remote(ShardKeeper).options(num_cpus=1, max_restarts=0).remote()
        self._asked: Any = None
        self._dead = False

    def send(self, method: str, *given: object) -> None:
        self._asked = getattr(self._actor, method).remote(*given)

    def receive(self) -> Any:
        try:
            return self._ray.get(self._asked, timeout=_PATIENCE)
        except self._ray.exceptions.RayError as error:
            self._dead = True
            raise RuntimeError(type(error).__name__) from None

    def alive(self) -> bool:
        return not self._dead

    def end(self) -> None:
        self._dead = True
        self._ray.kill(self._actor)


class ShardPool:
    """The shards of one process of the service; each has a part of every index. Thread-safe.

    Args:
        sharding: How many, and where. ``RAY_ADDRESS`` names a Ray cluster to join; without it one
            is started on this machine.

    Raises:
        MissingExtraError: Ray is not installed.
        RagwitnessError: There is no Ray cluster, or it has too few cores.
    """

    def __init__(self, sharding: Sharding) -> None:
        self._sharding = sharding
        self._lock = threading.Lock()
        self._gone: deque[int] = deque()  # indexes to be dropped
        self._numbers = 0
        self._seats: list[_Seat] = []
        self._still = ExitStack()
        self._ray: Any = None
        self._faults: tuple[type[Exception], ...] = (EOFError, OSError, RuntimeError)
        if sharding.ray:
            from ragwitness.kit.cluster import Cluster, ray_session

            place = Cluster(sharding.count, 0.0, os.environ.get("RAY_ADDRESS"))
            self._ray = self._still.enter_context(ray_session(place))
            self._faults += (self._ray.exceptions.RayError,)

    def hold(self, blocks: Iterable[Block], mechanism: Mechanism) -> ShardedIndex:
        """Return an index cut into parts, with a zero vector wherever no block puts another.

        The vectors lie in a file that has no name any more once this returns, and that is gone
        from the disk with the index.

        Args:
            blocks: Slots and integer vectors; each slot once.
            mechanism: Mechanism that searches the index.

        Raises:
            InputError: A vector is longer than the sensitivity allows (see ``check_rows``), or the
                disk has no room for the file.
            ShardGoneError: A shard cannot be started, or ended while it read.
        """
        shape = (mechanism.capacity, mechanism.dimension)
        with (
            tempfile.TemporaryDirectory(prefix="ragwitness-shards-") as folder,
            Path(folder, "vectors").open("wb", buffering=0) as file,
        ):
            # 1. All bytes are written first: a mapped file that found no room would end us.
            try:
                left = 4 * shape[0] * shape[1]
                while left:
                    left -= file.write(_ZEROS[:left])
            except OSError as error:
                raise InputError(
                    f"There is no room for an index of {shape[0]} slots in {file.name}:"
                    f" {error.strerror}.",
                    "Free some, or name another folder in TMPDIR.",
                ) from None
            # 2. Whole numbers as floats, each vector checked: the scan is exact over such alone.
            rows = np.memmap(file.name, np.float32, "r+", shape=shape)
            for slots, vectors in blocks:
                rows[slots] = check_rows(vectors, mechanism)
            # 3. Every shard maps its own part, or is sent it.
            return self._cut(file.name, rows, mechanism)

    def close(self) -> None:
        """End all shards."""
        with self._lock:
            self._end()
            self._still.close()

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes that run."""
        return [seat.pid for seat in self._seats if isinstance(seat, _Process)]

    def _cut(self, path: str, rows: NDArray[np.float32], mechanism: Mechanism) -> ShardedIndex:
        parts = min(self._sharding.count, len(rows))
        ends = [len(rows) * i // parts for i in range(parts + 1)]
        with self._lock:
            if not self._seats or not all(seat.alive() for seat in self._seats):
                self._end()
                self._start()
            self._numbers += 1
            number = self._numbers

            def ask(seat: _Seat, part: tuple[int, int]) -> None:
                start, stop = part
                if self._ray is None:
                    seat.send("hold_file", number, path, start, stop, mechanism)
                else:
                    seat.send(
                        "hold_rows", number, rows[start:stop].astype(np.int16), start, mechanism
                    )

            self._each(list(zip(self._seats, pairwise(ends), strict=False)), ask)
            return ShardedIndex(self, number, mechanism, tuple(self._seats[:parts]))

    def scan(self, index: ShardedIndex, query: Rows, key: bytes) -> list[Selection]:
        """Return the best slots of each part of an index; all parts or none.

        Raises:
            ShardGoneError: A shard ended, failed, or was started anew since.
        """
        with self._lock:
            if index.seats != tuple(self._seats[: len(index.seats)]):
                raise ShardGoneError("The shards of this index have ended.", _AGAIN)
            gone = [self._gone.popleft() for _ in range(len(self._gone))]
            if gone:
                self._each([(seat, gone) for seat in self._seats], lambda s, g: s.send("drop", g))
            wanted = [(seat, ("scan", index.number, query, key)) for seat in index.seats]
            return self._each(wanted, lambda seat, given: seat.send(*given))

    def forget(self, number: int) -> None:
        """Let the shards drop an index at the next scan; called as it is collected."""
        self._gone.append(number)

    def _start(self) -> None:
        try:
            for _ in range(self._sharding.count):
                self._seats.append(_Process() if self._ray is None else _Actor(self._ray))
        except self._faults as error:
            self._end()
            raise ShardGoneError(f"A shard cannot be started: {quote_error(error)}.") from error

    def _each(
        self, asked: Sequence[tuple[_Seat, Any]], ask: Callable[[_Seat, Any], None]
    ) -> list[Any]:
        """Ask shards all at once and return what each says; one failure ends them all."""
        found: list[Any] = []
        try:
            for seat, given in asked:
                ask(seat, given)
            for seat, _ in asked:
                found.append(seat.receive())
            return found
        except self._faults as error:
            number = self._seats.index(seat) + 1
            # The others' replies to this question would be taken for those to the next.
            self._end()
            raise ShardGoneError(
                f"Shard {number} of {self._sharding.count} gave no answer"
                f" ({error or type(error).__name__}).",
                _AGAIN,
            ) from error

    def _end(self) -> None:
        for seat in self._seats:
            seat.end()
        self._seats = []


_AGAIN = "Ask again: shards are started anew for the next query."


class ShardedIndex:
    """One index in the parts of a pool; see :meth:`ShardPool.hold`.

    Args:
        pool: Holds it.
        number: Number by which the shards know it.
        mechanism: Searches it.
        seats: Shards with a part, in order of the slots.
    """

    def __init__(
        self, pool: ShardPool, number: int, mechanism: Mechanism, seats: tuple[_Seat, ...]
    ) -> None:
        self._pool, self._mechanism = pool, mechanism
        self.number, self.seats = number, seats
        weakref.finalize(self, pool.forget, number)

    @property
    def shape(self) -> tuple[int, int]:
        """Slots, and dimension."""
        return self._mechanism.capacity, self._mechanism.dimension

    @property
    def lost(self) -> bool:
        """Whether a shard with a part is known to have ended."""
        return not all(seat.alive() for seat in self.seats)

    def release(self, query: ArrayLike, key: bytes) -> Selection:
        """Answer one query as :func:`ragwitness.privacy.mechanism.release.release` does.

        Args:
            query: Integer vector, shape (dimension,).
            key: Key of the record, used for this answer alone.

        Raises:
            InputError: The query is unusable.
            ShardGoneError: A part is missing.
        """
        [row] = check_rows(query, self._mechanism)
        return best_of(self._pool.scan(self, row, key), self._mechanism.top)


def work(pipe: Connection) -> None:
    """Be one shard until the other end is closed, however that process ended.

    Args:
        pipe: Pipe to the process that asks.
    """
    keeper = ShardKeeper()
    while True:
        try:
            method, given = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            reply = (False, getattr(keeper, method)(*given))
        except Exception as error:  # the kind alone: a message might quote what is held
            reply = (True, type(error).__name__)
        pipe.send(reply)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    work(Connection(int(sys.argv[1])))
