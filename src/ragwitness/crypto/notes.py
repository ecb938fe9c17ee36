"""Signed texts of C2SP: notes, checkpoints, cosignatures, and the proof that travels alone.

A note is a text with signatures under it (C2SP signed-note)::

    text, one or more lines
                                          (an empty line)
    — key name base64(key id ‖ signature)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.core.errors import InputError, VerificationError, require
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
"""Longest note that is read, in bytes."""

MAX_SIGNATURES = 64

_DASH = "\N{EM DASH} "
_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class Signature:
    """One line under a note.

    Attributes:
        name: Name of the key.
        key_id: 4 bytes.
        data: A bare signature, or a time and a signature.
    """

    name: str
    key_id: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text and its signatures, none of them checked.

    Attributes:
        text: Ends with a newline; it may hold empty lines.
        signatures: Signatures in the note's order.
    """

    text: str
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Return the note in UTF-8."""
        lines = (f"{_DASH}{s.name} {b64(s.key_id + s.data)}\n" for s in self.signatures)
        return (self.text + "\n" + "".join(lines)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Note:
        """Return the note of a file; only the form that :meth:`encode` writes is read.

        Raises:
            VerificationError: ``note.size``, ``note.utf8``, ``note.format`` or
                ``note.signature_line``.
        """
        size = f"A note has {len(data):,} bytes; at most {MAX_NOTE:,} are read."
        require(len(data) <= MAX_NOTE, "note.size", size)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise VerificationError("note.utf8", "A note is not valid UTF-8.") from error
        # The last empty line divides text and signatures.
        body, empty, tail = text.rpartition("\n\n")
        plain = all(c == "\n" or unicodedata.category(c) != "Cc" for c in text)
        form = "A signed note is a text, an empty line and its signatures."
        fits = bool(empty and body.strip("\n")) and tail.endswith("\n") and plain
        require(fits, "note.format", form)
        lines = tail.removesuffix("\n").split("\n")
        many = f"A note has more than {MAX_SIGNATURES} signatures."
        require(len(lines) <= MAX_SIGNATURES, "note.size", many)
        return cls(body + "\n", tuple(map(_signature, lines)))

    def signatures_of(self, keys: Sequence[PublicKey]) -> dict[PublicKey, Signature]:
        """Return the line of each of these keys that has one, unchecked.

        Lines of other keys are ignored, however many there are (C2SP signed-note). Two lines of one
        of these keys refuse the note.

        Raises:
            VerificationError: ``note.duplicate``.
        """
        by_id = {(key.name, key.key_id): key for key in keys}
        lines: dict[PublicKey, Signature] = {}
        for line in self.signatures:
            if (key := by_id.get((line.name, line.key_id))) is not None:
                require(key not in lines, "note.duplicate", f"{line.name} signed a note twice.")
                lines[key] = line
        return lines


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    spaced = not name or "+" in name or any(c.isspace() for c in name)
    fits = line.startswith(_DASH) and bool(space) and not spaced
    require(fits, "note.signature_line", f"{line[:60]!r} is no line of a signature.")
    data = parse_b64(encoded, "note.signature_line")
    filled = len(data) > _ID_BYTES
    require(filled, "note.signature_line", f"The signature of {name!r} is empty.")
    return Signature(name, data[:_ID_BYTES], data[_ID_BYTES:])


def check_signed(note: bytes, text: str, keys: Sequence[PublicKey], what: str) -> None:
    """Check that a note is the signature of keys, all of them and no other, under a text.

    Args:
        note: As it was written.
        text: The text that it must sign.
        keys: Keys that must have signed it; those that sign checkpoints alone are ignored.
        what: The signed thing, for the check's name and message.

    Raises:
        VerificationError: ``WHAT.note`` or ``WHAT.signature``.
    """
    # The note's form, then its text.
    required = [key for key in keys if key.kind is KeyKind.NOTE]
    try:
        parsed = Note.parse(note)
        lines = parsed.signatures_of(required)
    except VerificationError as error:
        raise VerificationError(f"{what}.note", error.message) from error
    require(parsed.text == text, f"{what}.note", f"The signed text is not this {what}.")
    # All required keys signed it, and no other.
    complete = bool(required) and len(required) == len(lines) == len(parsed.signatures)
    alone = f"The {what} is not signed by its key, or by others as well."
    require(complete, f"{what}.signature", alone)
    for key, line in lines.items():
        try:
            key.verify(text.encode(), line.data)
        except VerificationError as error:
            raise VerificationError(f"{what}.signature", error.message) from error


# A log's size and root in three lines (C2SP tlog-checkpoint): origin, size, base64 root.


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's own statement of its size and root, unsigned (C2SP tlog-checkpoint).

    Attributes:
        origin: Name of the log.
        size: Number of entries.
        root: 32 bytes.
        extensions: Further lines of the log, which are signed and not read.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.origin or not self.origin.isprintable():
            raise InputError(f"{self.origin!r} names no log: it is empty or not printable.")
        if len(self.root) != HASH_BYTES or (self.size == 0) != (self.root == EMPTY_ROOT):
            raise InputError(f"This cannot be the root of a log of {self.size:,} entries.")
        u64_text(self.size, "size of a log")

    @property
    def text(self) -> str:
        """The note's text."""
        return "\n".join((self.origin, f"{self.size}", b64(self.root), *self.extensions, ""))

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Return the checkpoint of a note's text.

        Raises:
            VerificationError: ``checkpoint.format``, ``checkpoint.extension``, ``checkpoint.size``
                or ``checkpoint.root``.
        """
        # Three lines at least, and none that is empty.
        lines = text.removesuffix("\n").split("\n")
        form = "A checkpoint begins with three lines: origin, size and root."
        require(text.endswith("\n") and len(lines) >= 3, "checkpoint.format", form)
        empty = "An extension line of a checkpoint is empty."
        require(all(lines[3:]), "checkpoint.extension", empty)
        size = parse_u64(lines[1], "checkpoint.size")
        root = parse_hash(lines[2], "checkpoint.root")
        wrong = f"This cannot be the root of a log of {size:,} entries."
        require((size == 0) == (root == EMPTY_ROOT), "checkpoint.root", wrong)
        try:
            return cls(lines[0], size, root, tuple(lines[3:]))
        except InputError as error:
            raise VerificationError("checkpoint.format", error.message) from error

    @classmethod
    def of_note(cls, data: bytes) -> Checkpoint:
        """Return the checkpoint of a signed note; no signature is checked.

        Raises:
            VerificationError: ``note.*`` or ``checkpoint.*``.
        """
        return cls.parse(Note.parse(data).text)


# A key's signature under a checkpoint, by its kind (C2SP signed-note and tlog-cosignature).

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
        checkpoint: Size and root of the log.
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
    elif time is None or not 0 <= time <= _LATEST:
        raise InputError(f"A cosignature by {key.name} needs a time in POSIX seconds.")
    else:
        data = time.to_bytes(_TIME_BYTES, "big") + key.sign(_cosigned(checkpoint, time))
    return Signature(key.name, key.public.key_id, data)


def verify_signature(key: PublicKey, checkpoint: Checkpoint, signature: Signature) -> int | None:
    """Check one signature line under a checkpoint.

    Returns:
        The time that a cosignature states, in POSIX seconds; None of a plain signature.

    Raises:
        VerificationError: ``signature.size``, ``signature.time`` or ``signature.invalid``.
    """
    if key.kind is KeyKind.NOTE:
        key.verify(checkpoint.text.encode(), signature.data)
        return None
    time = int.from_bytes(signature.data[:_TIME_BYTES], "big")
    require(time <= _LATEST, "signature.time", f"{key.name} states a time that cannot be.")
    key.verify(_cosigned(checkpoint, time), signature.data[_TIME_BYTES:])
    return time


def _cosigned(checkpoint: Checkpoint, time: int) -> bytes:
    """Return the bytes that a cosignature covers (C2SP tlog-cosignature, cosignature/v1)."""
    return f"cosignature/v1\ntime {time}\n{checkpoint.text}".encode()


def _read_back(note: Note) -> bytes:
    """Return the note's bytes once its own strict reader takes them."""
    data = note.encode()
    try:
        if Note.parse(data) == note:
            return data
    except VerificationError as error:
        raise InputError(f"This text cannot be signed as a note: {error.message}") from error
    raise InputError("This text cannot be signed as a note.")


# Signatures that make a checkpoint count: all of the log's keys, and a quorum of witnesses.


@dataclass(frozen=True, slots=True)
class Signers:
    """Keys that a verifier trusts, fixed before any evidence is read.

    Attributes:
        log: The log's keys; every one of them must have signed. Their name is the log's origin.
        witnesses: Keys of witnesses, who watch that all see one log.
        quorum: Number of witnesses that must have signed. A log without witnesses can show two
            people two logs; 0 takes its word.
    """

    log: tuple[PublicKey, ...]
    witnesses: tuple[PublicKey, ...] = ()
    quorum: int = 0

    def __post_init__(self) -> None:
        # One name of the log, and one key for each name.
        keys = self.log + self.witnesses
        if not self.log or len({key.name for key in self.log}) != 1:
            raise InputError("A policy needs the log's keys, all of one name, the log's origin.")
        if len({(key.name, key.key_id) for key in keys}) != len(keys):
            raise InputError("A policy names one key twice.")
        if len({(key.name, key.material) for key in keys}) != len({key.material for key in keys}):
            raise InputError(
                "A policy has one key under two names: one signer would count as two.",
                "The log and each witness need a key of their own.",
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
        times: Name of each witness that signed, with its stated time in POSIX seconds; None for a
            witness with a plain key.
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
    # 1. The form. 2. The origin.
    note = Note.parse(data)
    checkpoint = Checkpoint.parse(note.text)
    fault = f"The checkpoint is of the log {checkpoint.origin!r}, not {policy.origin!r}."
    require(checkpoint.origin == policy.origin, "checkpoint.origin", fault)
    # 3. Every signature by a known key; others are ignored (C2SP).
    lines = note.signatures_of(policy.log + policy.witnesses)
    signed = {key: verify_signature(key, checkpoint, line) for key, line in lines.items()}
    # 4. All keys of the log. 5. The quorum of witnesses.
    unsigned = f"The log {policy.origin!r} did not sign its checkpoint."
    require(all(key in signed for key in policy.log), "checkpoint.log_signature", unsigned)
    times = tuple((key.name, signed[key]) for key in policy.witnesses if key in signed)
    few = f"{len(times)} of the witnesses signed the checkpoint; {policy.quorum} must."
    require(len({name for name, _ in times}) >= policy.quorum, "checkpoint.quorum", few)
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
    fault = f"{new.origin!r} is another log than {old.origin!r}."
    require(old.origin == new.origin, "checkpoint.origin", fault)
    verify_consistency(old.size, old.root, new.size, new.root, path)


def cosign(
    old: Checkpoint | None,
    data: bytes,
    path: Sequence[bytes],
    policy: Signers,
    key: PrivateKey,
    time: int,
) -> bytes:
    """Return a checkpoint with a witness's signature added, once it extends the last one signed.

    The witness must store the result before it hands the signature out, and give its checkpoint as
    ``old`` next time. A witness that forgets could sign two histories.

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
    else:
        require(not path, "log.path_length", "There is no earlier checkpoint to extend.")
    # Replace an earlier line of this witness.
    note = Note.parse(data)
    line = signature_of(key, new, time)
    others = tuple(s for s in note.signatures if (s.name, s.key_id) != (line.name, line.key_id))
    return Note(note.text, (*others, line)).encode()


# A file that proves one entry of a log offline (C2SP tlog-proof@v1), such as a query's receipt.
#
#     c2sp.org/tlog-proof@v1
#     index 73894
#     base64 hash, from the leaf's sibling up, one per line
#     (an empty line)
#     the signed checkpoint
#
# The optional line "extra", which no key signs, is refused.

_HEAD = "c2sp.org/tlog-proof@v1"
_DEEPEST = 64
_LONGEST = 2 * MAX_NOTE


@dataclass(frozen=True, slots=True)
class LogProof:
    """An entry's index, its path to the root, and the signed root; none of it checked.

    Attributes:
        index: Index of the entry, from 0.
        path: Hashes from the leaf's sibling up.
        checkpoint: The signed note as bytes.
    """

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes

    def encode(self) -> bytes:
        """Return the file."""
        lines = [_HEAD, f"index {self.index}", *map(b64, self.path), "", ""]
        return "\n".join(lines).encode() + self.checkpoint

    @classmethod
    def parse(cls, data: bytes) -> LogProof:
        """Return the proof of a file; only the form that :meth:`encode` writes is read.

        Raises:
            VerificationError: ``proof.size``, ``proof.format``, ``proof.extra``, ``proof.index``
                or ``proof.hash``.
        """
        require(len(data) <= _LONGEST, "proof.size", f"A proof has {len(data):,} bytes.")
        # The lines above the empty line, then the checkpoint below it.
        head, empty, checkpoint = data.partition(b"\n\n")
        try:
            first, *lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise VerificationError("proof.format", "A proof's lines are not ASCII.") from error
        form = f"A proof starts with the line {_HEAD}, and one with the entry's index."
        require(bool(empty and lines) and first == _HEAD, "proof.format", form)
        unsigned = "A proof carries data that no key signed."
        require(not lines[0].startswith("extra"), "proof.extra", unsigned)
        require(lines[0].startswith("index "), "proof.format", form)
        index = parse_u64(lines[0].removeprefix("index "), "proof.index")
        many = f"A proof has {len(lines) - 1:,} hashes."
        require(len(lines) - 1 <= _DEEPEST, "proof.size", many)
        return cls(index, tuple(parse_hash(t, "proof.hash") for t in lines[1:]), checkpoint)


def open_proof(data: bytes, entry: bytes, policy: Signers) -> tuple[LogProof, SignedCheckpoint]:
    """Check that ``entry`` is in the log, by a proof file alone.

    Args:
        data: The file.
        entry: The entry that must be in the log.
        policy: Keys whose signatures count.

    Returns:
        The proof, for the entry's index, and the checkpoint.

    Raises:
        VerificationError: ``proof.*`` and all that :func:`open_checkpoint` and
            :func:`~ragwitness.crypto.merkle.verify_inclusion` raise.
    """
    # 1. The form. 2. The checkpoint's signatures. 3. The path from the entry to its root.
    proof = LogProof.parse(data)
    signed = open_checkpoint(proof.checkpoint, policy)
    checkpoint = signed.checkpoint
    verify_inclusion(entry, proof.index, checkpoint.size, proof.path, checkpoint.root)
    return proof, signed
