"""A text and the signatures under it (C2SP signed-note); no signature is checked here.

::

    text, one or more lines
                                          (an empty line)
    — key name base64(key id ‖ signature)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import (
    EMPTY_ROOT,
    HASH_BYTES,
    b64,
    parse_b64,
    parse_hash,
    parse_u64,
    u64_text,
)
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.merkle import verify_consistency, verify_inclusion

MAX_NOTE = 1 << 18
"""Longest note that is read, in bytes: far above 64 signatures of ML-DSA-44."""

MAX_SIGNATURES = 64

_DASH = "\N{EM DASH} "
_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class Signature:
    """One line under a note.

    Attributes:
        name: Name of the key.
        key_id: 4 bytes.
        data: What the key made; a bare signature, or a time and a signature.
    """

    name: str
    key_id: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text and its signatures, none of them checked.

    Attributes:
        text: Ends with a newline; empty lines may stand in it.
        signatures: Signatures in the order in which they stand.
    """

    text: str
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Return the note in UTF-8."""
        lines = (f"{_DASH}{s.name} {b64(s.key_id + s.data)}\n" for s in self.signatures)
        return (self.text + "\n" + "".join(lines)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Note:
        """Return the note of a file; whatever :meth:`encode` does not write is refused.

        Raises:
            VerificationError: ``note.size``, ``note.utf8``, ``note.format`` or
                ``note.signature_line``.
        """
        if len(data) > MAX_NOTE:
            raise VerificationError(
                "note.size", f"A note has {len(data):,} bytes; at most {MAX_NOTE:,} are read."
            )
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise VerificationError("note.utf8", "A note is not valid UTF-8.") from error
        # The last empty line divides text and signatures.
        body, empty, tail = text.rpartition("\n\n")
        plain = all(c == "\n" or unicodedata.category(c) != "Cc" for c in text)
        if not empty or not body.strip("\n") or not tail.endswith("\n") or not plain:
            raise VerificationError(
                "note.format", "A signed note is a text, an empty line and its signatures."
            )
        lines = tail.removesuffix("\n").split("\n")
        if len(lines) > MAX_SIGNATURES:
            raise VerificationError(
                "note.size", f"A note has more than {MAX_SIGNATURES} signatures."
            )
        return cls(body + "\n", tuple(map(_signature, lines)))

    def signatures_of(self, keys: Sequence[PublicKey]) -> dict[PublicKey, Signature]:
        """Return the line of each of these keys that has one, unchecked.

        Lines of other keys are passed over, whatever they hold and however often they stand
        there (C2SP signed-note); two lines of one of these keys refuse the note.

        Raises:
            VerificationError: ``note.duplicate``.
        """
        known = {(key.name, key.key_id): key for key in keys}
        found: dict[PublicKey, Signature] = {}
        for line in self.signatures:
            key = known.get((line.name, line.key_id))
            if key in found:
                raise VerificationError("note.duplicate", f"{line.name} signed a note twice.")
            if key is not None:
                found[key] = line
        return found


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    spaced = not name or "+" in name or any(c.isspace() for c in name)
    if not line.startswith(_DASH) or not space or spaced:
        raise VerificationError("note.signature_line", f"{line[:60]!r} is no line of a signature.")
    data = parse_b64(encoded, "note.signature_line")
    if len(data) <= _ID_BYTES:
        raise VerificationError("note.signature_line", f"The signature of {name!r} is empty.")
    return Signature(name, data[:_ID_BYTES], data[_ID_BYTES:])


def check_signed(note: bytes, text: str, keys: Sequence[PublicKey], what: str) -> None:
    """Check that a note is the signature of keys, all of them and no other, under a text.

    Args:
        note: As it was written.
        text: What it must sign.
        keys: That must have signed it; those that sign checkpoints alone are passed over.
        what: Begins the name of the check, and stands in its message.

    Raises:
        VerificationError: ``WHAT.note`` or ``WHAT.signature``.
    """
    wanted = [key for key in keys if key.kind is KeyKind.NOTE]
    try:
        parsed = Note.parse(note)
        lines = parsed.signatures_of(wanted)
    except VerificationError as error:
        raise VerificationError(f"{what}.note", error.message) from error
    if parsed.text != text:
        raise VerificationError(f"{what}.note", f"What is signed is not this {what}.")
    if not wanted or not len(wanted) == len(lines) == len(parsed.signatures):
        raise VerificationError(
            f"{what}.signature", f"The {what} is not signed by its key, or by others as well."
        )
    for key, line in lines.items():
        try:
            key.verify(text.encode(), line.data)
        except VerificationError as error:
            raise VerificationError(f"{what}.signature", error.message) from error


# The log's size and root in three lines (C2SP tlog-checkpoint): origin, size, base64 root.


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a log says of itself, unsigned.

    Extension lines, which C2SP allows and advises against, are not read: ML-DSA-44 signatures do
    not cover them, and nothing here needs them.

    Attributes:
        origin: Name of the log.
        size: Number of entries.
        root: 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    def __post_init__(self) -> None:
        if not self.origin or not self.origin.isprintable():
            raise InputError(f"{self.origin!r} names no log: it is empty or not printable.")
        if len(self.root) != HASH_BYTES or (self.size == 0) != (self.root == EMPTY_ROOT):
            raise InputError(f"This cannot be the root of a log of {self.size:,} entries.")
        u64_text(self.size, "size of a log")

    @property
    def text(self) -> str:
        """The note's text."""
        return f"{self.origin}\n{self.size}\n{b64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Return the checkpoint of a note's text.

        Raises:
            VerificationError: ``checkpoint.format``, ``checkpoint.extension``, ``checkpoint.size``
                or ``checkpoint.root``.
        """
        lines = text.removesuffix("\n").split("\n")
        if not text.endswith("\n") or len(lines) < 3:
            raise VerificationError(
                "checkpoint.format", "A checkpoint has three lines: origin, size and root."
            )
        if len(lines) > 3:
            raise VerificationError(
                "checkpoint.extension", "A checkpoint has more than three lines; no log here does."
            )
        size = parse_u64(lines[1], "checkpoint.size")
        root = parse_hash(lines[2], "checkpoint.root")
        if (size == 0) != (root == EMPTY_ROOT):
            raise VerificationError(
                "checkpoint.root", f"This cannot be the root of a log of {size:,} entries."
            )
        try:
            return cls(lines[0], size, root)
        except InputError as error:
            raise VerificationError("checkpoint.format", error.message) from error


# What a key signs of a checkpoint, by its kind (C2SP signed-note and tlog-cosignature).

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
    # cosignature/v1 covers the text; subtree/v1 covers origin, range and root in binary.
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


# Watching a log: what it shows now must extend what it showed before.


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
            :func:`~ragwitness.crypto.merkle.verify_consistency` ``log.rolled_back``,
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
            :func:`~ragwitness.crypto.merkle.verify_inclusion` raise.
    """
    # 1. The form. 2. The checkpoint's signatures. 3. The path from the entry to its root.
    proof = LogProof.parse(data)
    if proof.extra:
        raise VerificationError("proof.extra", "A proof carries data that nobody signed.")
    signed = open_checkpoint(proof.checkpoint, policy)
    found = signed.checkpoint
    verify_inclusion(entry, proof.index, found.size, proof.path, found.root)
    return proof, signed
