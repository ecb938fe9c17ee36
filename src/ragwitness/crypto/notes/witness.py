"""Watching a log: what it shows now must extend what it showed before."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.log.verify import verify_consistency
from ragwitness.crypto.notes.checkpoint import Checkpoint
from ragwitness.crypto.notes.policy import Policy, open_checkpoint
from ragwitness.crypto.notes.signed import Note
from ragwitness.crypto.notes.signing import signature_of
from ragwitness.errors import VerificationError

__all__ = ["cosign", "verify_extension"]


def verify_extension(old: Checkpoint, new: Checkpoint, path: Sequence[bytes]) -> None:
    """Check that the log of ``new`` is that of ``old`` with nothing changed or taken away.

    Args:
        old: A checkpoint whose signatures were checked.
        new: A later one.
        path: Proof of consistency between both sizes.

    Raises:
        VerificationError: ``checkpoint.origin``, or by
            :func:`~ragwitness.crypto.log.verify.verify_consistency` ``log.rolled_back``,
            ``log.split_view``, ``log.consistency`` and others.
    """
    if old.origin != new.origin:
        raise VerificationError(
            "checkpoint.origin", f"{new.origin!r} is another log than {old.origin!r}."
        )
    verify_consistency(old.size, old.root, new.size, new.root, path)


def cosign(
    old: Checkpoint | None,
    data: bytes,
    path: Sequence[bytes],
    policy: Policy,
    key: PrivateKey,
    time: int,
) -> tuple[bytes, Checkpoint]:
    """Return a checkpoint with a witness's signature added, once it extends the last one signed.

    The witness must store what is returned before it hands the signature out, and give it as
    ``old`` next time; a signature proves nothing of a witness that forgets.

    Args:
        old: The last checkpoint of this log that the witness signed; None at the first.
        data: The new one, signed by the log.
        path: Proof of consistency between both.
        policy: The log's keys.
        key: The witness's.
        time: POSIX seconds.

    Raises:
        VerificationError: The new checkpoint is not the log's, or does not extend ``old``.
        InputError: The key and the time do not fit.
    """
    new = open_checkpoint(data, policy).checkpoint
    if old is not None:
        verify_extension(old, new, path)
    elif path:
        raise VerificationError("log.path_length", "There is no earlier checkpoint to extend.")
    note = Note.parse(data)
    line = signature_of(key, new, time)
    others = tuple(s for s in note.signatures if (s.name, s.key_id) != (line.name, line.key_id))
    return Note(note.text, (*others, line)).encode(), new
