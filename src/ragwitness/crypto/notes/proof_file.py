"""A file that proves one entry of a log offline (C2SP tlog-proof@v1): the receipt of a query.

::

    c2sp.org/tlog-proof@v1
    extra base64                          (optional, and signed by nobody)
    index 73894
    base64 hash, from the leaf's sibling up, one per line
                                          (an empty line)
    the signed checkpoint
"""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.crypto.canonical import parse_u64
from ragwitness.crypto.encoding import b64, parse_b64, parse_hash
from ragwitness.crypto.log.verify import verify_inclusion
from ragwitness.crypto.notes.policy import Policy, SignedCheckpoint, open_checkpoint
from ragwitness.crypto.notes.signed import MAX_NOTE
from ragwitness.errors import VerificationError

__all__ = ["LogProof", "open_proof"]

_HEAD = "c2sp.org/tlog-proof@v1"
_DEEPEST = 64
_LONGEST = 2 * MAX_NOTE


@dataclass(frozen=True, slots=True)
class LogProof:
    """An entry's place, its path to the root, and who vouches for the root; none of it checked.

    Attributes:
        index: Of the entry, from 0.
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


def open_proof(
    data: bytes, entry: bytes, policy: Policy, *, extra: bool = False
) -> tuple[LogProof, SignedCheckpoint]:
    """Check that ``entry`` is in the log, by a proof file alone.

    Args:
        data: The file.
        entry: What must be logged.
        policy: Whose signatures count.
        extra: Accept extra data, which nobody signed.

    Returns:
        The proof, for the entry's index, and the checkpoint.

    Raises:
        VerificationError: ``proof.*`` and all that :func:`open_checkpoint` and
            :func:`~ragwitness.crypto.log.verify.verify_inclusion` raise.
    """
    proof = LogProof.parse(data)
    if proof.extra and not extra:
        raise VerificationError("proof.extra", "A proof carries data that nobody signed.")
    signed = open_checkpoint(proof.checkpoint, policy)
    found = signed.checkpoint
    verify_inclusion(entry, proof.index, found.size, proof.path, found.root)
    return proof, signed
