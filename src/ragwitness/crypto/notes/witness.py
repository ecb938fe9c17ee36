"""Watching a log: what it shows now must extend what it showed before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import parse_u64
from ragwitness.crypto.hashing import b64, parse_b64, parse_hash
from ragwitness.crypto.keys import PrivateKey, PublicKey
from ragwitness.crypto.log.tree import verify_consistency, verify_inclusion
from ragwitness.crypto.notes.note import MAX_NOTE, Checkpoint, Note, signature_of, verify_signature

# Whose signatures make a checkpoint count: the log's, and so many of the witnesses'.


@dataclass(frozen=True, slots=True)
class Signers:
    """What a verifier trusts, fixed before any evidence is read.

    Attributes:
        log: The log's keys; every one of them must have signed. Their name is the log's origin.
        witnesses: Keys of those who watch that all see one log.
        quorum: How many of the witnesses must have signed. A log without witnesses can show two
            people two logs; 0 takes its word.
    """

    log: tuple[PublicKey, ...]
    witnesses: tuple[PublicKey, ...] = ()
    quorum: int = 0

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


def open_checkpoint(data: bytes, policy: Signers) -> SignedCheckpoint:
    """Return the checkpoint of a signed note once the policy's signatures are checked.

    A signature by a key of the policy that does not verify refuses the whole note.

    Raises:
        VerificationError: ``note.*``, ``checkpoint.*``, ``signature.*``, ``checkpoint.origin``,
            ``checkpoint.log_signature`` or ``checkpoint.quorum``.
    """
    # 1. The form. 2. The origin. 3. Every signature by a known key; others are passed over (C2SP).
    # 4. All keys of the log. 5. The quorum of witnesses.
    note = Note.parse(data)
    checkpoint = Checkpoint.parse(note.text)
    if checkpoint.origin != policy.origin:
        raise VerificationError(
            "checkpoint.origin",
            f"The checkpoint is of the log {checkpoint.origin!r}, not {policy.origin!r}.",
        )
    lines = note.signatures_of(policy.log + policy.witnesses)
    signed = {key: verify_signature(key, checkpoint, line) for key, line in lines.items()}
    if any(key not in signed for key in policy.log):
        raise VerificationError(
            "checkpoint.log_signature", f"The log {policy.origin!r} did not sign its checkpoint."
        )
    times = tuple((key.name, signed[key]) for key in policy.witnesses if key in signed)
    if len({name for name, _ in times}) < policy.quorum:
        raise VerificationError(
            "checkpoint.quorum",
            f"{len(times)} of the witnesses signed the checkpoint; {policy.quorum} must.",
        )
    return SignedCheckpoint(checkpoint, times)


def verify_extension(old: Checkpoint, new: Checkpoint, path: Sequence[bytes]) -> None:
    """Check that the log of ``new`` is that of ``old`` with nothing changed or taken away.

    Args:
        old: A checkpoint whose signatures were checked.
        new: A later one.
        path: Proof of consistency between both sizes.

    Raises:
        VerificationError: ``checkpoint.origin``, or by
            :func:`~ragwitness.crypto.log.tree.verify_consistency` ``log.rolled_back``,
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
    policy: Signers,
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
    # The log's own signature first, then consistency with all that this witness signed before.
    new = open_checkpoint(data, policy).checkpoint
    if old is not None:
        verify_extension(old, new, path)
    elif path:
        raise VerificationError("log.path_length", "There is no earlier checkpoint to extend.")
    note = Note.parse(data)
    line = signature_of(key, new, time)
    others = tuple(s for s in note.signatures if (s.name, s.key_id) != (line.name, line.key_id))
    return Note(note.text, (*others, line)).encode(), new


# A file that proves one entry of a log offline (C2SP tlog-proof@v1): the receipt of a query.
#
# ::
#
# c2sp.org/tlog-proof@v1
# extra base64                          (optional, and signed by nobody)
# index 73894
# base64 hash, from the leaf's sibling up, one per line
# (an empty line)
# the signed checkpoint

_HEAD = "c2sp.org/tlog-proof@v1"
_DEEPEST = 64
_LONGEST = 2 * MAX_NOTE


@dataclass(frozen=True, slots=True)
class LogProof:
    """An entry's place, its path to the root, and who vouches for the root; none of it checked.

    Attributes:
        index: Place of the entry, from 0.
        path: Hashes from the leaf's sibling up.
        checkpoint: The signed note, as it stands.
        extra: What an application adds; nobody signed it.
    """

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes = b""

    def encode(self) -> bytes:
        """Return the file."""
        lines = [_HEAD]
        if self.extra:
            lines.append(f"extra {b64(self.extra)}")
        lines.append(f"index {self.index}")
        lines.extend(map(b64, self.path))
        return "\n".join([*lines, "", ""]).encode() + self.checkpoint

    @classmethod
    def parse(cls, data: bytes) -> LogProof:
        """Return the proof of a file; whatever :meth:`encode` does not write is refused.

        Raises:
            VerificationError: ``proof.size``, ``proof.format``, ``proof.extra``, ``proof.index``
                or ``proof.hash``.
        """
        if len(data) > _LONGEST:
            raise VerificationError("proof.size", f"A proof has {len(data):,} bytes.")
        head, empty, checkpoint = data.partition(b"\n\n")
        try:
            lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise VerificationError("proof.format", "A proof's lines are not ASCII.") from error
        if not empty or lines.pop(0) != _HEAD:
            raise VerificationError("proof.format", f"A proof starts with the line {_HEAD}.")
        extra = b""
        if lines and lines[0].startswith("extra "):
            extra = parse_b64(lines.pop(0).removeprefix("extra "), "proof.extra")
            if not extra:
                raise VerificationError("proof.extra", "A proof has an empty line of extra data.")
        if not lines or not lines[0].startswith("index "):
            raise VerificationError("proof.format", "A proof has no line with the entry's index.")
        index = parse_u64(lines.pop(0).removeprefix("index "), "proof.index")
        if len(lines) > _DEEPEST:
            raise VerificationError("proof.size", f"A proof has {len(lines):,} hashes.")
        return cls(index, tuple(parse_hash(t, "proof.hash") for t in lines), checkpoint, extra)


def open_proof(data: bytes, entry: bytes, policy: Signers) -> tuple[LogProof, SignedCheckpoint]:
    """Check that ``entry`` is in the log, by a proof file alone.

    Args:
        data: The file.
        entry: What must be logged.
        policy: Whose signatures count.

    Returns:
        The proof, for the entry's index, and the checkpoint.

    Raises:
        VerificationError: ``proof.*`` and all that :func:`open_checkpoint` and
            :func:`~ragwitness.crypto.log.tree.verify_inclusion` raise.
    """
    # 1. The form. 2. The checkpoint's signatures. 3. The path from the entry to its root.
    proof = LogProof.parse(data)
    if proof.extra:
        raise VerificationError("proof.extra", "A proof carries data that nobody signed.")
    signed = open_checkpoint(proof.checkpoint, policy)
    found = signed.checkpoint
    verify_inclusion(entry, proof.index, found.size, proof.path, found.root)
    return proof, signed
