"""Prefix reuse: a prompt that begins like an earlier one computes only its new part.

An audit asks many questions over the same system prompt, passages and text. The store holds blocks
of keys and values, each under a hash of all tokens up to its end. So prompts that begin alike share
the blocks of that beginning. A block has the same bits whether it is stored or computed, so an
answer does not depend on earlier questions.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

import numpy as np

from ragwitness.models.reader.checkpoint import Float32
from ragwitness.models.reader.forward import BLOCK_TOKENS, KeyValues, Network, Tokens

DEFAULT_BYTES = 256 * 1024 * 1024
"""Memory for stored blocks; some 17,000 tokens of the packaged reader."""


class PrefixStore:
    """Reads sequences, and keeps the blocks used last; threads may share it.

    Args:
        network: The network that computes keys and values.
        limit_bytes: Memory for blocks; 0 turns reuse off.

    Attributes:
        limit_bytes: Memory for blocks.
        nbytes: Memory held by stored blocks, in bytes.
        reused_tokens: Number of tokens so far that needed no computation.
    """

    def __init__(self, network: Network, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._network = network
        self.limit_bytes = limit_bytes
        # The least recently used first; a block always later than those that continue it.
        self._blocks: OrderedDict[bytes, tuple[Float32, Float32]] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = self.reused_tokens = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def read(self, ids: Tokens, *, capacity: int, keep: int) -> tuple[KeyValues, Float32]:
        """Read a sequence.

        Args:
            ids: The sequence, shape (n,).
            capacity: Largest number of tokens that it may ever grow to.
            keep: Number of last positions whose hidden states are wanted.

        Returns:
            Keys and values of the sequence, and the final hidden states, shape (keep, width).
        """
        cache, hidden = self._network.new_cache(capacity), []
        names = self._names(ids[: len(ids) - keep])
        while (start := cache.length) < len(ids):
            # 1. Take stored blocks; the kept positions are always computed.
            if start % BLOCK_TOKENS == 0 and self._copy(names[start // BLOCK_TOKENS :], cache):
                continue
            # 2. Compute up to the end of the block, and store it.
            stop = min(start - start % BLOCK_TOKENS + BLOCK_TOKENS, len(ids))
            count = max(0, min(stop - len(ids) + keep, stop - start))
            hidden.append(self._network.run(cache, ids[start:stop], count))
            if stop // BLOCK_TOKENS <= len(names) and stop % BLOCK_TOKENS == 0:
                self._store(names[: stop // BLOCK_TOKENS], cache)
        return cache, np.concatenate(hidden)

    def _names(self, ids: Tokens) -> list[bytes]:
        """The hash of every whole block with all before it; none where reuse is off."""
        names, digest = [], b""
        for stop in range(BLOCK_TOKENS, len(ids) + 1 if self.limit_bytes > 0 else 0, BLOCK_TOKENS):
            block = digest + ids[stop - BLOCK_TOKENS : stop].tobytes()
            digest = hashlib.blake2b(block, digest_size=16).digest()
            names.append(digest)
        return names

    def _copy(self, names: list[bytes], cache: KeyValues) -> bool:
        """Append the blocks of these names, up to the first that is not stored."""
        blocks: list[tuple[Float32, Float32]] = []
        with self._lock:
            while len(blocks) < len(names) and (block := self._blocks.get(names[len(blocks)])):
                blocks.append(block)
            self._touch(names[: len(blocks)])
            self.reused_tokens += len(blocks) * BLOCK_TOKENS
        # Stored blocks never change, so they are copied without the lock.
        for keys, values in blocks:
            span = slice(cache.length, cache.length + BLOCK_TOKENS)
            cache.keys[..., span], cache.values[..., span, :] = keys, values
            cache.length += BLOCK_TOKENS
        return bool(blocks)

    def _store(self, names: list[bytes], cache: KeyValues) -> None:
        """Store the last block of a sequence; the least used ones make room."""
        span = slice(cache.length - BLOCK_TOKENS, cache.length)
        block = cache.keys[..., span].copy(), cache.values[..., span, :].copy()
        with self._lock:
            if names[-1] not in self._blocks:
                self._blocks[names[-1]] = block
                self.nbytes += sum(array.nbytes for array in block)
            self._touch(names)
            while self.nbytes > self.limit_bytes:
                _, block = self._blocks.popitem(last=False)
                self.nbytes -= sum(array.nbytes for array in block)

    def _touch(self, names: list[bytes]) -> None:
        # From the last to the first: a block goes before those that it continues.
        for name in reversed(names):
            if name in self._blocks:
                self._blocks.move_to_end(name)
