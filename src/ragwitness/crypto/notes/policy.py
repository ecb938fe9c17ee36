"""Whose signatures make a checkpoint count: the log's, and so many of the witnesses'."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.crypto.keys import PublicKey
from ragwitness.crypto.notes.checkpoint import Checkpoint
from ragwitness.crypto.notes.signed import Note
from ragwitness.crypto.notes.signing import verify_signature
from ragwitness.errors import InputError, VerificationError

__all__ = ["Policy", "SignedCheckpoint", "open_checkpoint"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a verifier trusts, fixed before any evidence is read.

    Attributes:
        log: The log's keys; every one of them must have signed. Their name is the log's origin.
        witnesses: Keys of those who watch that all see one log.
        quorum: How many of the witnesses must have signed. A log without witnesses can show two
            people two logs; 0 takes its word.
        strict: Refuse signatures of unknown keys. C2SP says to ignore them; a bundle that was
            made for this policy has none.
    """

    log: tuple[PublicKey, ...]
    witnesses: tuple[PublicKey, ...] = ()
    quorum: int = 0
    strict: bool = False

    def __post_init__(self) -> None:
        keys = self.log + self.witnesses
        if not self.log or len({key.name for key in self.log}) != 1:
            raise InputError("A policy needs the log's keys, all of one name, the log's origin.")
        if len({(key.name, key.key_id) for key in keys}) != len(keys):
            raise InputError("A policy names one key twice.")
        if len({(key.name, key.material) for key in keys}) != len({key.material for key in keys}):
            raise InputError(
                "A policy has one key under two names: one signer would count as two.",
                "Each witness, and the log, needs a key of its own.",
            )
        if not 0 <= self.quorum <= len({key.name for key in self.witnesses}):
            raise InputError(f"A quorum of {self.quorum} witnesses cannot be reached.")

    @property
    def origin(self) -> str:
        """Name of the log."""
        return self.log[0].name


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint that a policy accepts.

    Attributes:
        checkpoint: Origin, size and root.
        times: Name of each witness that signed, and when it says it did, in POSIX seconds; None
            of a witness with a plain key.
    """

    checkpoint: Checkpoint
    times: tuple[tuple[str, int | None], ...]


def open_checkpoint(data: bytes, policy: Policy) -> SignedCheckpoint:
    """Return the checkpoint of a signed note once the policy's signatures are checked.

    A signature by a key of the policy that does not verify refuses the whole note.

    Raises:
        VerificationError: ``note.*``, ``checkpoint.*``, ``signature.*``, ``checkpoint.origin``,
            ``checkpoint.log_signature``, ``checkpoint.unknown_key`` or ``checkpoint.quorum``.
    """
    note = Note.parse(data)
    checkpoint = Checkpoint.parse(note.text)
    if checkpoint.origin != policy.origin:
        raise VerificationError(
            "checkpoint.origin",
            f"The checkpoint is of the log {checkpoint.origin!r}, not {policy.origin!r}.",
        )
    known = {(key.name, key.key_id): key for key in policy.log + policy.witnesses}
    signed: dict[tuple[str, bytes], int | None] = {}
    for line in note.signatures:
        key = known.get((line.name, line.key_id))
        if key is not None:
            signed[line.name, line.key_id] = verify_signature(key, checkpoint, line)
        elif policy.strict:
            raise VerificationError(
                "checkpoint.unknown_key", f"{line.name!r} signed with a key that is not known."
            )
    if any((key.name, key.key_id) not in signed for key in policy.log):
        raise VerificationError(
            "checkpoint.log_signature", f"The log {policy.origin!r} did not sign its checkpoint."
        )
    times = _times(policy, signed)
    if len({name for name, _ in times}) < policy.quorum:
        raise VerificationError(
            "checkpoint.quorum",
            f"{len(times)} of the witnesses signed the checkpoint; {policy.quorum} must.",
        )
    return SignedCheckpoint(checkpoint, times)


def _times(
    policy: Policy, signed: dict[tuple[str, bytes], int | None]
) -> tuple[tuple[str, int | None], ...]:
    keys = ((key.name, key.key_id) for key in policy.witnesses)
    return tuple((key[0], signed[key]) for key in keys if key in signed)
