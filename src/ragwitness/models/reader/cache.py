"""Prefix reuse: a prompt that begins like an earlier one computes only what is new.

An audit asks many questions over the same system prompt, context and passage; without this
every one of them would be read from its first token. Only whole blocks are reused, so that an
answer does not depend, not even in its last bit, on what was asked before.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np

from ragwitness.models.reader.forward import BLOCK_TOKENS, KeyValues, Network, Tokens

DEFAULT_BYTES = 224 * 1024 * 1024
"""Memory for stored sequences; about 15,000 tokens of the packaged reader."""


def _shared(first: Tokens, second: Tokens) -> int:
    """Length of the common prefix of two token sequences."""
    size = min(len(first), len(second))
    different = np.flatnonzero(first[:size] != second[:size])
    return int(different[0]) if len(different) else size


def _reusable(first: Tokens, second: Tokens) -> int:
    """The whole blocks of it, in tokens."""
    return _shared(first, second) // BLOCK_TOKENS * BLOCK_TOKENS


class PrefixStore:
    """The sequences used last, by their tokens; safe to share between threads.

    What is stored is never written again: a sequence may grow behind the stored length, but
    its rows below stay, so copying needs no lock.

    Args:
        network: Whose keys and values these are.
        limit_bytes: Memory to keep; 0 turns reuse off.

    Attributes:
        reused_tokens: Tokens that needed no computation so far.
    """

    def __init__(self, network: Network, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._network = network
        self._limit = limit_bytes
        self._entries: OrderedDict[bytes, tuple[Tokens, KeyValues]] = OrderedDict()
        self._bytes = 0
        self._in_flight: list[Tokens] = []
        self._changed = threading.Condition()
        self.reused_tokens = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """Memory held by stored sequences, in bytes."""
        return self._bytes

    @contextlib.contextmanager
    def reading(self, ids: Tokens, *, capacity: int, most: int) -> Iterator[KeyValues]:
        """Give a new sequence that already holds the longest stored prefix of whole blocks.

        Where another thread is reading a sequence with a much longer common prefix, this waits
        for it: a burst of questions over one context reads the context once. When the block
        ends without an error, the sequence, read up to ``ids``, is stored.

        Args:
            ids: The sequence about to be read, shape (n,).
            capacity: Tokens it may grow to, later too.
            most: Tokens that may come from the store; positions from there on are computed,
                because their logits are wanted.
        """
        if self._limit <= 0:
            yield self._network.new_cache(capacity)
            return
        with self._changed:
            # 1. The longest stored prefix; from now on others wait for what is read here.
            source, length = self._found(ids[:most])
            self._in_flight.append(ids)
        try:
            cache = self._network.new_cache(capacity)
            if source is not None:
                # 2. Copied without a lock: stored rows never change.
                cache.copy_prefix(source, length)
            yield cache
            # 3. Stored, unless the reading failed.
            self._keep(ids, cache)
        finally:
            with self._changed:
                self._in_flight = [other for other in self._in_flight if other is not ids]
                self._changed.notify_all()

    def _found(self, ids: Tokens) -> tuple[KeyValues | None, int]:
        """The longest stored prefix, once nobody is about to store a much longer one."""
        while True:
            key, length = self._longest(ids)
            coming = max((_reusable(other, ids) for other in self._in_flight), default=0)
            if coming <= length:
                break
            self._changed.wait()
        if key is None:
            return None, 0
        self._entries.move_to_end(key)
        self.reused_tokens += length
        return self._entries[key][1], length

    def _longest(self, ids: Tokens) -> tuple[bytes | None, int]:
        best_key, best = None, 0
        for key, (stored, _) in self._entries.items():
            length = _reusable(stored, ids)
            if length > best:
                best_key, best = key, length
        return best_key, best

    def _keep(self, ids: Tokens, cache: KeyValues) -> None:
        """Store a sequence; the least recently used make room."""
        if cache.nbytes > self._limit or len(ids) < BLOCK_TOKENS:
            return
        with self._changed:
            for key, (stored, _) in list(self._entries.items()):
                shared = _shared(stored, ids)
                if shared == len(ids):  # already there, perhaps as part of a longer one
                    self._entries.move_to_end(key)
                    return
                if shared == len(stored):  # says nothing that ids does not
                    self._drop(key)
            self._entries[ids.tobytes()] = (ids, cache)
            self._bytes += cache.nbytes
            while self._bytes > self._limit:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: bytes) -> None:
        _, cache = self._entries.pop(key)
        self._bytes -= cache.nbytes

    def clear(self) -> None:
        """Forget everything."""
        with self._changed:
            self._entries.clear()
            self._bytes = 0
