"""A model in several processes, on this machine or on a Ray cluster, behind the same interface.

Whoever asks notices only that it is faster: every call is made by one process as it would be made
here, and what a reader answers does not depend on what it was asked before, so that results are the
same to the last byte whatever the number of processes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.managers import BaseManager
from multiprocessing.process import BaseProcess
from typing import Any

from threadpoolctl import threadpool_limits

from ragwitness.core.errors import RagwitnessError
from ragwitness.models.base import ChatPrompt, Generation, TextScores
from ragwitness.models.reader.model import Reader

_WORTH = 0.5
"""Seconds of reading in this process after which others are started: a few questions need none."""

_OPENING = 600
"""Characters by which prompts are taken for alike: more than one block of the prefix store."""

_REMEMBERED = 256
"""Openings whose process is remembered."""

_MOST_BEHIND = 3
"""Calls by which a process may be behind the idlest before an opening moves there."""


class _Daemon(SpawnProcess):
    """Ended where the program ends, also while it still starts: nobody waits for it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.daemon = True


class _Fresh(SpawnContext):
    """A fresh interpreter each: a fork would copy locks that other threads hold at the time."""

    Process = _Daemon


class _Holder(BaseManager):
    """A process that holds a reader; each thread that calls has a connection of its own."""


_reader: Reader | None = None  # in a member's process


def _load() -> None:
    """Make a fresh process a member: it ends with its parent, and leaves Ctrl-C to it."""
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    # One thread a process: several would wait for each other inside small matrix products.
    threadpool_limits(limits=1, user_api="blas")
    _reader = Reader.load()


def _end_with(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        os._exit(1)


def _loaded() -> Reader | None:
    return _reader


_Holder.register("reader", _loaded, exposed=("score", "generate"))


@dataclass(eq=False, slots=True)
class Member:
    """A process, its reader, and how many calls it has to answer."""

    manager: Any
    reader: Any
    busy: int = 0


class ProcessPool:
    """The calls of a :class:`~ragwitness.models.base.LanguageModel`, each made by one process.

    Args:
        size: Number of processes.

    Attributes:
        callers: Calls that should be under way at a time to keep all busy.
    """

    def __init__(self, size: int) -> None:
        self.callers = 2 * size + 2
        self._lock = threading.Lock()
        self._members: list[Member] = []
        self._known: OrderedDict[int, Member] = OrderedDict()

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Score each text; see :class:`~ragwitness.models.base.LanguageModel`."""
        key = "".join(texts) if after is None else "".join(map(_text, after))
        found: list[TextScores] = self._made(key, "score", (texts,), {"after": after, "top": top})
        return found

    def generate(
        self,
        prompts: Sequence[ChatPrompt],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        stop: Sequence[str] = (),
        seed: int | None = None,
    ) -> list[Generation]:
        """Continue each conversation; see :class:`~ragwitness.models.base.LanguageModel`."""
        options = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "top_logprobs": top_logprobs,
            "stop": stop,
            "seed": seed,
        }
        key = "".join(map(_text, prompts))
        found: list[Generation] = self._made(key, "generate", (prompts,), options)
        return found

    def _made_here(self, method: str, arguments: tuple[Any, ...], options: Any) -> Any:
        """Make a call while there is no other process."""
        raise NotImplementedError

    def _made(self, key: str, method: str, arguments: tuple[Any, ...], options: Any) -> Any:
        member = self._member(hash(key[:_OPENING]))
        if member is None:
            return self._made_here(method, arguments, options)
        try:
            return member.reader._callmethod(method, arguments, options)
        except (EOFError, OSError) as error:
            raise RagwitnessError(
                "A process of the reader ended before it had answered.",
                "Was it killed for want of memory? Give fewer --workers; the same command resumes.",
            ) from error
        finally:
            with self._lock:
                member.busy -= 1

    def _member(self, opening: int) -> Member | None:
        """The process that read this opening last, so that it need not read it again."""
        with self._lock:
            if not self._members:
                return None
            idlest = min(self._members, key=lambda member: member.busy)
            known = self._known.pop(opening, idlest)
            # No process waits while another has much to do.
            chosen = idlest if known.busy > idlest.busy + _MOST_BEHIND else known
            self._known[opening] = chosen
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            chosen.busy += 1
            return chosen


class ReaderPool(ProcessPool):
    """The reader in several processes of this machine.

    Until reading has taken half a second it is done here, so that a short task starts none.

    Args:
        size: Number of processes.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._here = Reader.load()
        self._size = size
        self._spent = 0.0
        self._starting: threading.Thread | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """Of the reader: the same answers have the same name."""
        return self._here.name

    @property
    def context_length(self) -> int:
        """Tokens it can attend to, prompt and answer together."""
        return self._here.context_length

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text`` as the assistant would say it."""
        return self._here.count_tokens(text)

    def start(self) -> None:
        """Start the processes; until they can read, it is done here."""
        with self._lock:
            if self._starting is None:
                self._starting = threading.Thread(target=self._start, daemon=True)
                self._starting.start()

    def close(self) -> None:
        """End the processes; what is asked from now on is read here."""
        with self._lock:
            self._closed, members, self._members = True, self._members, []
        if self._starting is not None:
            self._starting.join()
        for member in members:
            member.manager.shutdown()

    def _start(self) -> None:
        managers = [_Holder(ctx=_Fresh()) for _ in range(self._size)]

        def join(manager: _Holder) -> None:
            # 1. Each begins to read as soon as it can; 2. one that cannot be had is done without.
            try:
                manager.start(_load)
                reader = manager.reader()  # type: ignore[attr-defined]  # registered above
            except (OSError, EOFError):
                return
            with self._lock:
                if not self._closed:
                    self._members.append(Member(manager, reader))
                    return
            manager.shutdown()

        threads = [threading.Thread(target=join, args=(manager,)) for manager in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _made_here(self, method: str, arguments: tuple[Any, ...], options: Any) -> Any:
        started = time.perf_counter()
        answer = getattr(self._here, method)(*arguments, **options)
        self._spent += time.perf_counter() - started
        if self._spent > _WORTH:
            self.start()
        return answer


def _text(prompt: ChatPrompt) -> str:
    return "".join(message.content for message in prompt.messages) + prompt.prefill
