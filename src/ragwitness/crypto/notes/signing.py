"""What a key signs of a checkpoint, by its kind (C2SP signed-note and tlog-cosignature)."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.notes.checkpoint import Checkpoint
from ragwitness.crypto.notes.signed import Note, Signature
from ragwitness.errors import InputError, VerificationError

__all__ = ["sign_checkpoint", "sign_note", "signature_of", "verify_signature"]

_TIME_BYTES = 8
_LATEST = (1 << 63) - 1


def sign_note(text: str, keys: Sequence[PrivateKey]) -> bytes:
    """Return ``text`` as a note signed with Ed25519 keys of kind ``NOTE``.

    Raises:
        InputError: The text does not end with a newline, there is no key, or one signs
            checkpoints alone.
    """
    if not text.endswith("\n") or not text.strip("\n") or not keys:
        raise InputError("A note is a text that ends with a newline, and at least one key.")
    if any(key.kind is not KeyKind.NOTE for key in keys):
        raise InputError("A key for cosignatures signs checkpoints alone.")
    lines = tuple(Signature(k.name, k.public.key_id, k.sign(text.encode())) for k in keys)
    return _read_back(Note(text, lines))


def sign_checkpoint(
    checkpoint: Checkpoint, keys: Sequence[PrivateKey], time: int | None = None
) -> bytes:
    """Return a checkpoint as a note that all ``keys`` signed.

    A log must never sign two that are inconsistent; this function does not remember.

    Args:
        checkpoint: What the log says of itself.
        keys: The log's, each of any kind.
        time: POSIX seconds; needed by keys for cosignatures.

    Raises:
        InputError: There is no key, or one needs a time and none is given.
    """
    if not keys:
        raise InputError("A checkpoint without a signature proves nothing.", "Give a key.")
    return _read_back(
        Note(checkpoint.text, tuple(signature_of(key, checkpoint, time) for key in keys))
    )


def signature_of(key: PrivateKey, checkpoint: Checkpoint, time: int | None) -> Signature:
    """Return one key's signature line under a checkpoint.

    Raises:
        InputError: The key needs a time and none is given.
    """
    if key.kind is KeyKind.NOTE:
        data = key.sign(checkpoint.text.encode())
    else:
        if time is None or not 0 <= time <= _LATEST:
            raise InputError(f"A cosignature by {key.name} needs a time in POSIX seconds.")
        message = _cosigned(key.kind, key.name, checkpoint, time)
        data = time.to_bytes(_TIME_BYTES, "big") + key.sign(message)
    return Signature(key.name, key.public.key_id, data)


def verify_signature(key: PublicKey, checkpoint: Checkpoint, signature: Signature) -> int | None:
    """Check one signature line under a checkpoint.

    Returns:
        The time that a cosignature states, in POSIX seconds; None of a plain signature.

    Raises:
        VerificationError: ``signature.size``, ``signature.time`` or ``signature.invalid``.
        InputError: This installation has no ML-DSA.
    """
    if key.kind is KeyKind.NOTE:
        key.verify(checkpoint.text.encode(), signature.data)
        return None
    time = int.from_bytes(signature.data[:_TIME_BYTES], "big")
    if time > _LATEST:
        raise VerificationError("signature.time", f"{key.name} states a time that cannot be.")
    message = _cosigned(key.kind, key.name, checkpoint, time)
    key.verify(message, signature.data[_TIME_BYTES:])
    return time


def _cosigned(kind: KeyKind, name: str, checkpoint: Checkpoint, time: int) -> bytes:
    """Return the bytes that a cosignature covers (C2SP tlog-cosignature, both formats)."""
    if kind is KeyKind.COSIGNATURE:
        return f"cosignature/v1\ntime {time}\n{checkpoint.text}".encode()
    return b"".join(
        (
            b"subtree/v1\n\x00",
            _short(name),
            time.to_bytes(_TIME_BYTES, "big"),
            _short(checkpoint.origin),
            (0).to_bytes(8, "big"),
            checkpoint.size.to_bytes(8, "big"),
            checkpoint.root,
        )
    )


def _short(text: str) -> bytes:
    data = text.encode()
    if not 1 <= len(data) <= 255:
        raise InputError(f"{text[:40]!r}… is too long a name for an ML-DSA-44 signature.")
    return bytes([len(data)]) + data


def _read_back(note: Note) -> bytes:
    """Return the note's bytes once its own strict reader takes them."""
    data = note.encode()
    try:
        if Note.parse(data) == note:
            return data
    except VerificationError as error:
        raise InputError(f"This text cannot be signed as a note: {error.message}") from error
    raise InputError("This text cannot be signed as a note.")
