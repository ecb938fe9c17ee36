"""Prefix reuse: a prompt that begins like an earlier one computes only what is new.

An audit asks many questions over the same system prompt, passages and text; without this every
one of them would be read from its first token. Stored are blocks, each under a hash of all tokens
up to its end: prompts that begin alike share the blocks of that beginning, whichever of them came
first. A block's keys and values have the same bits whether they come from here or are computed,
so that an answer does not depend on what was asked before.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ragwitness.models.reader.checkpoint import Float32
from ragwitness.models.reader.forward import (
    BLOCK_TOKENS,
    PASS_TOKENS,
    KeyValues,
    Network,
    Span,
    Tokens,
)

DEFAULT_BYTES = 256 * 1024 * 1024
"""Memory for stored blocks; some 17,000 tokens of the packaged reader."""


class PrefixStore:
    """The blocks used last; safe to share between threads.

    Args:
        network: The network whose keys and values these are.
        limit_bytes: Memory to keep; 0 turns reuse off.

    Attributes:
        reused_tokens: Number of tokens so far that needed no computation.
        read_tokens: Number of tokens so far that were computed.
        nbytes: Memory held by stored blocks, in bytes.
    """

    def __init__(self, network: Network, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._network = network
        self._limit = limit_bytes
        # The least recently used first; a block always later than those that continue it.
        self._blocks: OrderedDict[bytes, tuple[Float32, Float32]] = OrderedDict()
        self.nbytes = 0
        self._claimed: set[bytes] = set()
        self._changed = threading.Condition()
        self.reused_tokens = 0
        self.read_tokens = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def clear(self) -> None:
        """Forget everything."""
        with self._changed:
            self._blocks.clear()
            self.nbytes = 0

    def reading(self, ids: Tokens, *, capacity: int, keep: int, reuse: bool = True) -> Reading:
        """Begin to read a sequence.

        Args:
            ids: The sequence, shape (n,).
            capacity: Largest number of tokens that it may ever grow to.
            keep: Number of last positions whose hidden states are wanted and computed.
            reuse: Whether blocks are taken from here and left here.
        """
        names = self._names(ids) if reuse else []
        return Reading(self, self._network, ids, names, capacity, keep)

    def _names(self, ids: Tokens) -> list[bytes]:
        """The hash of every whole block with all before it; none where reuse is off."""
        found, digest = [], b""
        for stop in range(BLOCK_TOKENS, len(ids) + 1 if self._limit > 0 else 0, BLOCK_TOKENS):
            part = digest + ids[stop - BLOCK_TOKENS : stop].tobytes()
            digest = hashlib.blake2b(part, digest_size=16).digest()
            found.append(digest)
        return found

    def copy(self, names: list[bytes], cache: KeyValues) -> None:
        """Append the blocks of these names to a sequence, up to the first that is not stored."""
        with self._changed:
            found = []
            for name in names:
                if name not in self._blocks:
                    break
                found.append(self._blocks[name])
            self._touch(names[: len(found)])
            self.reused_tokens += len(found) * BLOCK_TOKENS
        # Stored blocks never change, so they are copied without the lock.
        for keys, values in found:
            part = slice(cache.length, cache.length + BLOCK_TOKENS)
            cache.keys[..., part], cache.values[..., part, :] = keys, values
            cache.length += BLOCK_TOKENS

    @contextmanager
    def claimed(self, name: bytes | None, *, wait: bool) -> Iterator[bool]:
        """Compute a block while nobody else does.

        Gives False where somebody else is at it; with ``wait`` only once that is over. Nobody
        waits who has claimed anything, so no two can wait for each other.
        """
        with self._changed:
            free = name is None or name not in self._claimed
            if not free and wait:
                self._changed.wait_for(lambda: name not in self._claimed)
            elif free and name is not None:
                self._claimed.add(name)
        try:
            yield free
        finally:
            if free and name is not None:
                with self._changed:
                    self._claimed.discard(name)
                    self._changed.notify_all()

    def keep(self, names: list[bytes], cache: KeyValues, read: int) -> None:
        """Store the blocks of a sequence that are missing, from its first; old ones make room.

        Args:
            names: Hashes of the blocks of the sequence so far.
            cache: The sequence.
            read: Tokens of it that were computed just now.
        """
        with self._changed:
            self.read_tokens += read
            missing = [place for place, name in enumerate(names) if name not in self._blocks]
        fresh = {}
        for place in missing:
            part = slice(place * BLOCK_TOKENS, (place + 1) * BLOCK_TOKENS)
            fresh[names[place]] = cache.keys[..., part].copy(), cache.values[..., part, :].copy()
        with self._changed:
            for name, block in fresh.items():
                if name not in self._blocks:
                    self._blocks[name] = block
                    self.nbytes += sum(array.nbytes for array in block)
            self._touch(names)
            while self.nbytes > self._limit:
                _, block = self._blocks.popitem(last=False)
                self.nbytes -= sum(array.nbytes for array in block)

    def _touch(self, names: list[bytes]) -> None:
        # From the last to the first: what goes first is never needed by what stays.
        for name in reversed(names):
            if name in self._blocks:
                self._blocks.move_to_end(name)


class Reading:
    """A sequence on its way into keys and values, pass by pass.

    Attributes:
        cache: What has been read.
    """

    def __init__(
        self,
        store: PrefixStore,
        network: Network,
        ids: Tokens,
        names: list[bytes],
        capacity: int,
        keep: int,
    ) -> None:
        self._store, self._network, self._ids, self._names = store, network, ids, names
        self._reusable = len(ids) - keep
        self._kept: list[Float32] = []
        self.cache = network.new_cache(capacity)

    @property
    def done(self) -> bool:
        """Whether the whole sequence has been read."""
        return self.cache.length >= len(self._ids)

    def step(self, *, wait: bool) -> bool:
        """Take what is stored, then compute one pass.

        Args:
            wait: Whether to wait where another thread computes what comes next.

        Returns:
            Whether anything was computed; False where another thread is at it.
        """
        cache, store = self.cache, self._store
        if cache.length % BLOCK_TOKENS == 0:
            usable = slice(cache.length // BLOCK_TOKENS, self._reusable // BLOCK_TOKENS)
            store.copy(self._names[usable], cache)
        coming = self._names[cache.length // BLOCK_TOKENS : self._reusable // BLOCK_TOKENS]
        name = coming[0] if coming else None
        with store.claimed(name, wait=wait) as free:
            if free:
                self._compute()
        return free

    def hidden(self) -> Float32:
        """Read what is left; return the final hidden states wanted, (keep, width)."""
        while not self.done:
            self.step(wait=True)
        return np.concatenate(self._kept)

    def _compute(self) -> None:
        cache, start = self.cache, self.cache.length
        # Passes end at multiples of their length, whatever came from the store.
        stop = min(start - start % PASS_TOKENS + PASS_TOKENS, len(self._ids))
        wanted = max(0, min(stop - self._reusable, stop - start))
        self._kept.append(self._network.run([Span(cache, self._ids[start:stop], wanted)]))
        self._store.keep(self._names[: stop // BLOCK_TOKENS], cache, stop - start)
