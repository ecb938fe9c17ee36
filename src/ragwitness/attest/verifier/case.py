"""A bundle under verification: its evidence, and what the verifier has beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.openings import provider_name
from ragwitness.attest.steps import NotCheckedError
from ragwitness.attest.trust import Trust
from ragwitness.attest.verifier.evidence import BundleEvidence
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.notes.note import Checkpoint, Note

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating]]
"""Texts to vectors, shape (texts, dimension)."""


@dataclass(frozen=True)
class VerifierCase:
    """A bundle's evidence and what the verifier has beside it.

    Attributes:
        evidence: Of the bundle.
        trust: The verifier's own knowledge; None for none.
        receipts: Files that accounts handed in.
        seen: Signed checkpoints of this log that others were shown.
        embed: The committed embedder, where the verifier has it.
        progress: Called with (what, done, all) before and after the slow checks.
    """

    evidence: BundleEvidence
    trust: Trust | None = None
    receipts: Sequence[bytes] = ()
    seen: Sequence[bytes] = ()
    embed: Embed | None = None
    progress: Callable[[str, int, int], None] = field(default=lambda *_: None)

    @property
    def provider(self) -> str:
        """Name of the provider's log, by the trust file; empty where that names none."""
        window = self.evidence.open.window
        return "" if self.trust is None else provider_name(self.trust.notes.origin, window)

    @cached_property
    def seen_of_provider(self) -> list[bytes]:
        """Checkpoints from elsewhere that are of the provider's log of its windows."""
        return [data for data in self.seen if _origin(data) == self.provider]

    @cached_property
    def seen_of_window(self) -> list[bytes]:
        """Checkpoints from elsewhere that are of the window's own log."""
        return [data for data in self.seen if _origin(data) != self.provider]

    @cached_property
    def log(self) -> MerkleLog:
        """The log, rebuilt from its entries."""
        log = MerkleLog()
        log.extend(self.evidence.entries)
        return log

    def trusted(self, why: str) -> Trust:
        """Return what the verifier trusts.

        Raises:
            NotCheckedError: Nothing.
        """
        if self.trust is None:
            raise NotCheckedError(f"no trust file was given: {why}", needed=True)
        return self.trust


def _origin(data: bytes) -> str:
    return Checkpoint.parse(Note.parse(data).text).origin
