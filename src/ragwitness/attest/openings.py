"""A provider's one log: an entry for each window that it opened, whatever index it is of.

Answers of all windows over one index add up, and no window's own log shows another. So the key
that signs windows keeps this log as well, under its own name: ``example.org/log`` for the windows
``example.org/log/NAME``. Witnesses and monitors watch it as they watch a window's log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragwitness.attest.bundle import OPENINGS
from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
from ragwitness.core.errors import require
from ragwitness.crypto.entries import read_all_entries
from ragwitness.crypto.hashing import HASH_BYTES, canonical, parse, parse_hex
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint, Signers
from ragwitness.privacy.odometer import worst_epsilon
from ragwitness.privacy.ranges import Relation

_VERSION = "ragwitness/opening/v1"
_AGAIN = "ragwitness attest prove logs the opening once there is space."


@dataclass(frozen=True, slots=True)
class WindowOpening:
    """A window that was opened.

    Attributes:
        open: Leaf hash of its open record, in hex.
        policy: Its policy; each window's own bundle proves the noise.
    """

    open: str
    policy: WindowPolicy

    def encode(self) -> bytes:
        """Return the entry: canonical JSON with the policy's own in it."""
        policy = parse(self.policy.encode(), MOST_BYTES)
        return canonical({"open": self.open, "policy": policy, "version": _VERSION})

    @classmethod
    def parse(cls, data: bytes) -> WindowOpening:
        """Return the opening of an entry.

        Raises:
            VerificationError: ``openings.*`` or ``policy.*``.
        """
        value: Any = parse(data, MOST_BYTES, "openings")
        named = isinstance(value, dict) and value.keys() == {"open", "policy", "version"}
        require(named, "openings.fields", "An entry is of no opening of a window.")
        current = value["version"] == _VERSION and isinstance(value["open"], str)
        require(current, "openings.version", f"An entry is not of {_VERSION!r}.")
        parse_hex(value["open"], HASH_BYTES, "openings.fields")
        return cls(value["open"], WindowPolicy.parse(canonical(value["policy"])))


@dataclass(frozen=True, slots=True)
class OpeningsLog:
    """A provider's log as a bundle holds it; no signature is checked.

    Attributes:
        log: All entries.
        openings: The same, read.
        note: Its signed checkpoint.
    """

    log: MerkleLog
    openings: tuple[WindowOpening, ...]
    note: bytes

    @classmethod
    def parse(cls, data: bytes, note: bytes) -> OpeningsLog:
        """Return the log of a bundle's two files.

        Raises:
            VerificationError: ``openings.*``, ``policy.*``, or of the note's form.
        """
        Checkpoint.of_note(note)
        entries = read_all_entries(data, "openings.entries")
        return cls(MerkleLog(entries), tuple(map(WindowOpening.parse, entries)), note)

    def epsilon(self, tenant: str, delta: float, relation: Relation) -> tuple[int, float | None]:
        """Return the number of windows over an index, and the epsilon of all their answers.

        Answers with one noise add up exactly, whichever window they are of; different noises add
        their epsilons, each at its share of delta.

        Args:
            tenant: The index's name.
            delta: Of all of them together.
            relation: Relation between neighbouring indexes.

        Returns:
            The epsilon of k_max accounts of each window; None where none holds.
        """
        # Count the answers of each noise over all windows.
        answers, windows = Counter[Any](), 0
        for policy in (opening.policy for opening in self.openings):
            if (mechanism := policy.tenants.get(tenant)) is not None:
                windows += 1
                answers[mechanism] += policy.k_max * policy.queries
        epsilons = [
            worst_epsilon(noise, delta / len(answers), count, relation)
            for noise, count in answers.items()
        ]
        return windows, None if None in epsilons else sum(filter(None, epsilons))


def provider_name(origin: str, window: str) -> str:
    """Return the name of the provider's log by that of a window's log; empty where it has none."""
    name = origin.removesuffix(f"/{window}")
    return "" if name == origin else name


def provider_signers(notes: Signers, window: str) -> Signers | None:
    """Return the signers of the provider's log: the window's keys, by the provider's name.

    None where the window's log does not carry the provider's name before its own.
    """
    name = provider_name(notes.origin, window)
    return Signers(tuple(replace(key, name=name) for key in notes.log)) if name else None


def log_opening(
    folder: Path, keys: Sequence[PrivateKey], open_hash: bytes, policy: WindowPolicy
) -> dict[str, bytes]:
    """Log that a window was opened, once, and return the log's two files of a bundle.

    Args:
        folder: Of the provider's log; it is made where it is missing.
        keys: Of the window's log.
        open_hash: Leaf hash of the window's open record.
        policy: Of the window.

    Raises:
        InputError: The log is another key's, or cannot be written.
    """
    from ragwitness.attest.window_log import CHECKPOINT, ENTRIES, log_entry
    from ragwitness.core.files import read_file

    # The window's key, under the provider's name.
    name = provider_name(keys[0].name, policy.window)
    if not name:
        return {}
    entry = WindowOpening(open_hash.hex(), policy).encode()
    log_entry(folder, [replace(key, name=name) for key in keys], entry, _AGAIN)
    files = (folder / ENTRIES, folder / CHECKPOINT)
    return dict(zip(OPENINGS, map(read_file, files), strict=True))
