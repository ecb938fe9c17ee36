"""Answers of all callers in one running batch; they join and leave it at any step.

There is no thread of its own: whoever waits for an answer does the work of a lane, for all that
stand in it, until its own answers are complete, and then another takes over. A step of a lane
reads one pass of one newcomer's prompt, and then one token of every answer that goes on; so a
long prompt holds nobody up for longer than a pass. Lanes are as many as cores.

Answers say what stands in their prompt, so the tokens that follow the latest words there are
guessed and read along with them. Where the model chooses them indeed, several tokens come of one
step; where not, what was read too much is forgotten. Guesses follow from the answer's own words
alone. So do all shapes in which it is computed, see :mod:`ragwitness.models.reader.forward`: an
answer has the same bits whatever runs beside it, and is the one it would be without guessing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from ragwitness.core.errors import ModelError
from ragwitness.models.decoding import Decoding
from ragwitness.models.reader.cache import PrefixStore, Reading
from ragwitness.models.reader.checkpoint import Float32
from ragwitness.models.reader.forward import Network, Span, Tokens

LANE = 8
"""Answers of a lane; more would not make a step cheaper, and each holds memory."""

_GUESSES = 15
"""Most tokens guessed ahead: with the one that is known they fill the smallest product."""

_FEW = 3
"""Tokens guessed ahead of an answer that was guessed wrong the last time."""

_BEHIND = 8
"""Tokens by which the longest match is looked for."""


def guess(said: Tokens, most: int) -> Tokens:
    """Return what followed where the last words stood before, at most ``most`` tokens.

    Args:
        said: Prompt and answer so far, shape (n,).
        most: Tokens wanted.

    Returns:
        What follows the place that shares most of the last tokens, the latest of several; empty
        where the last token is new.
    """
    places = np.flatnonzero(said[:-1] == said[-1])
    for back in range(1, _BEHIND):
        longer = places[places >= back]
        longer = longer[said[longer - back] == said[-1 - back]] if back < len(said) else longer[:0]
        if not len(longer):
            break
        places = longer
    return said[places[-1] + 1 :][:most] if len(places) else said[:0]


class _Job:
    """One answer with its sequence."""

    def __init__(self, reading: Reading, ids: Tokens, answer: Decoding) -> None:
        self.reading = reading
        self.answer = answer
        self.error: Exception | None = None
        self._said = np.concatenate((ids, np.empty(answer.room + 1, np.int64)))
        self._length = len(ids)
        self._ahead = _FEW

    @property
    def done(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.error is not None or self.answer.finish_reason is not None

    def span(self) -> Span:
        """The token that is to be read, and guesses."""
        cache = self.reading.cache
        most = min(self._ahead, cache.capacity - cache.length - 1)
        ahead = guess(self._said[: self._length], most)
        ids = np.concatenate((self._said[self._length - 1 : self._length], ahead))
        return Span(cache, ids, len(ids))

    def push(self, logits: Float32, span: Span) -> None:
        """Go on by what the model says of the span."""
        guessed = span.ids[1:]
        chosen = self.answer.push(logits, guessed.tolist())
        # What was guessed wrong is forgotten.
        right = max(0, len(chosen) - 1)
        span.cache.length -= len(guessed) - right
        self.say(chosen)
        # Bolder where all was right, more careful where not.
        bold = right == len(guessed)
        self._ahead = min(2 * self._ahead + 1 if bold else right + _FEW, _GUESSES)

    def say(self, chosen: Sequence[int]) -> None:
        """Append tokens to what was said."""
        self._said[self._length : self._length + len(chosen)] = chosen
        self._length += len(chosen)


class _Lane:
    """Answers that are decoded together.

    Attributes:
        led: Whether a thread is working on it.
    """

    def __init__(self) -> None:
        self.jobs: list[_Job] = []
        self.led = False


class Batch:
    """The running batch of one network.

    Args:
        network: Computes.
        prefixes: What was read before.
        lanes: Threads that may compute at once.
    """

    def __init__(self, network: Network, prefixes: PrefixStore, lanes: int) -> None:
        self._network = network
        self._prefixes = prefixes
        self._lanes = [_Lane() for _ in range(lanes)]
        self._waiting: deque[_Job] = deque()
        self._changed = threading.Condition()

    def complete(
        self, encoded: Sequence[Tokens], answers: Sequence[Decoding], ends: frozenset[int]
    ) -> None:
        """Decode answers until all of them are complete, and meanwhile those of others.

        Args:
            encoded: The prompts' tokens.
            answers: One for each.
            ends: Control tokens.

        Raises:
            ModelError: A step failed.
        """
        mine = [
            self._job(ids, answer, ends)
            for ids, answer in zip(encoded, answers, strict=True)
            if answer.finish_reason is None
        ]
        try:
            with self._changed:
                self._waiting.extend(mine)
                while not _all_done(mine):
                    lane = self._free_lane()
                    if lane is None:
                        self._changed.wait()
                    else:
                        self._lead(lane, mine)
        finally:
            # Whoever is interrupted takes its answers along.
            with self._changed:
                for job in mine:
                    self._forget(job)
        for job in mine:
            if job.error is not None:
                raise job.error

    def _job(self, ids: Tokens, answer: Decoding, ends: frozenset[int]) -> _Job:
        # Room for guesses that turn out wrong, too.
        capacity = min(len(ids) + answer.room + _GUESSES, self._network.config.positions)
        reading = self._prefixes.reading(ids, capacity=capacity, keep=1)
        # A prompt's last control tokens part its words from the answer's; a guess looks past them.
        words = len(ids)
        while words and int(ids[words - 1]) in ends:
            words -= 1
        return _Job(reading, ids[:words], answer)

    def _free_lane(self) -> _Lane | None:
        """A lane without a thread that has work, or could have."""
        for lane in self._lanes:
            if not lane.led and (lane.jobs or self._waiting):
                return lane
        return None

    def _lead(self, lane: _Lane, mine: Sequence[_Job]) -> None:
        """Work on a lane until all of ``mine`` are complete or the lane is empty."""
        lane.led = True
        try:
            while not _all_done(mine):
                if self._waiting and len(lane.jobs) < LANE:
                    lane.jobs.append(self._waiting.popleft())
                if not lane.jobs:
                    break
                self._changed.release()
                try:
                    self._step(lane.jobs)
                finally:
                    self._changed.acquire()
                if any(job.done for job in lane.jobs):
                    lane.jobs = [job for job in lane.jobs if not job.done]
                    self._changed.notify_all()
        finally:
            lane.led = False
            self._changed.notify_all()

    def _step(self, jobs: Sequence[_Job]) -> None:
        try:
            # 1. A pass of one newcomer's prompt.
            going = [job for job in jobs if job.reading.done]
            self._read([job for job in jobs if not job.reading.done], wait=not going)
            # 2. A token of every answer that goes on, and those guessed right.
            if going:
                self._decode(going)
        except Exception as error:
            for job in jobs:
                job.error = job.error or error
        except BaseException:  # an interrupted step leaves no sequence of the lane whole
            for job in jobs:
                job.error = job.error or ModelError("The answer was interrupted.", "Ask again.")
            raise

    def _read(self, newcomers: Sequence[_Job], *, wait: bool) -> None:
        for place, job in enumerate(newcomers):
            last = place == len(newcomers) - 1
            if not job.reading.step(wait=wait and last):
                continue  # another lane is at it
            if job.reading.done:
                job.say(job.answer.push(self._network.logits(job.reading.hidden())))
            break

    def _decode(self, jobs: Sequence[_Job]) -> None:
        spans = [job.span() for job in jobs]
        logits = self._network.logits(self._network.run(spans))
        start = 0
        for job, span in zip(jobs, spans, strict=True):
            stop = start + len(span.ids)
            job.push(logits[start:stop], span)
            start = stop

    def _forget(self, job: _Job) -> None:
        if job in self._waiting:
            self._waiting.remove(job)
        for lane in self._lanes:
            if not job.done and job in lane.jobs:
                # Its lane is not in the middle of a step of this thread's.
                job.error = ModelError("The answer was interrupted.", "Ask again.")


def _all_done(jobs: Iterable[_Job]) -> bool:
    return all(job.done for job in jobs)
