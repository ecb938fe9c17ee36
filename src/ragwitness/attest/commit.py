"""Phase A: draw the secrets, commit to everything, log the open record (§5.3, eq. 5.1)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.commitments import (
    CommittedEmbedder,
    IndexCard,
    documents_root,
    index_commitment,
    norm_context,
    proof_shape,
    sha256_hex,
)
from ragwitness.attest.policy import WindowPolicy
from ragwitness.attest.window_log import WindowLog, publish
from ragwitness.core.errors import InputError
from ragwitness.core.files import only_writer, replace_file
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import MerkleLog, seed_tree
from ragwitness.crypto.records import IndexCommitment, OpenRecord
from ragwitness.privacy.release import SlotIndex
from ragwitness.privacy.streams import SEED_BYTES, canonical, hkdf_sha256, sub_seed

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.arithmetic import Shape

_LEAST_VALUES = 12


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Contents of a tenant's index.

    Attributes:
        rows: Integer vectors, shape (capacity, dimension); zeros for an empty slot.
        documents: SHA-256 of the text in each slot, in hex; empty for an empty slot.
        names: The provider's name of the document in each slot; kept in secret, optional.
    """

    rows: NDArray[np.int16]
    documents: Sequence[str]
    names: Sequence[str] = ()


def open_window(
    root: Path,
    policy: WindowPolicy,
    contents: Mapping[str, Contents],
    embedder: CommittedEmbedder,
    keys: Sequence[PrivateKey],
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Make a window's folder: all commitments, their secrets, and the signed open checkpoint.

    The folder appears complete or not at all. Its indexes never change; new documents wait for the
    next window, which draws new blinds: two proofs of norms over the same blinds would open them.

    Args:
        root: The folder; must not exist.
        policy: The promise.
        contents: Contents of every tenant of the policy.
        embedder: The embedder of the vectors.
        keys: Keys of the log.
        progress: Called with each step's name.

    Raises:
        InputError: The folder exists, or contents and policy do not fit.
        MissingExtraError: The prover is not installed.
    """
    # 1. Refuse bad input before anything is drawn.
    if root.exists():
        raise InputError(f"{root} exists; a window is opened once.", "Choose another folder.")
    _check(policy, contents)
    if not keys:
        raise InputError("A window without the log's key cannot be signed.", "Give a key.")
    shape = proof_shape(policy)
    # 2. A draft beside the folder: it gets its name when it is complete.
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
    except OSError as error:
        raise InputError(f"{root.parent} cannot be written: {error.strerror}.") from error
    try:
        folder = Folder(draft)
        folder.secret.mkdir(mode=0o700)
        replace_file(folder.seed, draw_seed(policy.window, keys))
        folder.seed.chmod(0o600)
        # 3. C_V of every tenant: columns, norms, documents.
        cards = [
            _index(folder, number, name, contents[name], policy, shape, progress)
            for number, name in enumerate(policy.tenants)
        ]
        # 4. C_Π and C_E.
        replace_file(folder.public / "policy.json", policy.encode())
        replace_file(folder.public / "embedder.json", embedder.encode())
        # 5. The root over all sub-seeds (in place of the paper's C_s), and the open record.
        progress("sub-seeds")
        _log(folder, policy, cards, embedder, keys)
        # 6. From here on the window is open.
        draft.chmod(0o755)
        draft.rename(root)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def document_blinding(seed: bytes, window: str, tenant: str, slot: int) -> bytes:
    """Return the blinding of one slot's leaf; it shows nothing of any other."""
    fields = {
        "domain": "ragwitness/document-blinding/v1",
        "slot": str(slot),
        "tenant": tenant,
        "window": window,
    }
    return hkdf_sha256(seed, canonical(fields))


def number_tree(seed: bytes, policy: WindowPolicy) -> MerkleLog:
    """Return the tree over the sub-seeds of every answer of a window (G4)."""
    return seed_tree(sub_seed(seed, policy.window, number) for number in range(policy.seed_count))


def _check(policy: WindowPolicy, contents: Mapping[str, Contents]) -> None:
    # Every tenant has one index.
    if set(contents) != set(policy.tenants):
        [name, *_] = sorted(set(contents) ^ set(policy.tenants))
        raise InputError(
            f"The tenant {name!r} has a policy and no index, or an index and no policy.",
            "Give each tenant of the policy one index, by its name.",
        )
    for name, mechanism in policy.tenants.items():
        # Every index fits its mechanism, slot by slot.
        index = contents[name]
        SlotIndex(index.rows, mechanism)  # types, dimension, norms
        if not len(index.rows) == len(index.documents) == mechanism.capacity:
            raise InputError(
                f"The index of {name} has {len(index.rows):,} rows and {len(index.documents):,}"
                f" documents for {mechanism.capacity:,} slots.",
                "Fill the rest with rows of zeros and empty digests.",
            )


def _index(
    folder: Folder,
    place: int,
    tenant: str,
    index: Contents,
    policy: WindowPolicy,
    shape: Shape,
    progress: Callable[[str], None],
) -> IndexCommitment:
    """Commit to one index and write both sides of it."""
    from ragwitness.crypto.proofs.argument import commit_columns
    from ragwitness.crypto.proofs.prove_norms import prove_norms

    # KZG commitments to the columns, each with two fresh blinds (R6).
    seed = folder.seed.read_bytes()
    progress(f"columns of {tenant}")
    secret = commit_columns(np.ascontiguousarray(index.rows, np.int16), shape)
    # Every row is within the scale: the noise of every later answer rests on it.
    progress(f"norms of {tenant}")
    norms = prove_norms(shape, secret, norm_context(policy.window, tenant))
    # One leaf per slot: which text lies there, blinded.
    blindings = [
        document_blinding(seed, policy.window, tenant, slot) for slot in range(len(index.rows))
    ]
    mechanism = policy.tenants[tenant]
    card = IndexCard(
        columns=secret.public.digest,
        norms=sha256_hex(norms),
        documents=documents_root(index.documents, blindings),
        slots=mechanism.capacity,
        dimension=mechanism.dimension,
    ).encode()
    # Write the public side, then the secret one.
    files = (("columns.bin", secret.public.encode()), ("norms.bin", norms), ("index.json", card))
    for name, data in files:
        replace_file(folder.tenant(place) / name, data)
    folder.columns(place).parent.mkdir(parents=True)
    secret.save(folder.columns(place))
    replace_file(folder.documents(place), _slots(index))
    return IndexCommitment(
        tenant=tenant, commitment=index_commitment(card), mechanism=mechanism.digest
    )


def _slots(index: Contents) -> bytes:
    """Return the provider's own table of its documents: one JSON object per full slot."""
    names = index.names or [""] * len(index.documents)
    rows = (
        {"slot": slot, "sha256": digest, "name": name}
        for slot, (digest, name) in enumerate(zip(index.documents, names, strict=True))
        if digest
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def draw_seed(window: str, keys: Sequence[PrivateKey]) -> bytes:
    """Return the seed of a window: fresh randomness under the log's private keys.

    A weak random generator alone does not give the noise away (as in RFC 8937): the keys are needed
    too. Draws that repeat themselves are refused.

    Raises:
        InputError: Two draws are the same, or one of them has few values.
    """
    drawn, again = os.urandom(SEED_BYTES), os.urandom(SEED_BYTES)
    # Of 32 random bytes fewer than 12 are distinct once in 2^82 draws.
    if drawn == again or min(len(set(drawn)), len(set(again))) < _LEAST_VALUES:
        raise InputError(
            "This system's random bytes repeat themselves; with them the noise can be taken off"
            " every answer.",
            "Open the window on a system whose os.urandom works.",
        )
    salt = sha256(b"".join(key.seed for key in keys)).digest()
    info = {"domain": "ragwitness/window-seed/v2", "window": window}
    return hkdf_sha256(drawn, canonical(info), salt=salt)


def _log(
    folder: Folder,
    policy: WindowPolicy,
    cards: Sequence[IndexCommitment],
    embedder: CommittedEmbedder,
    keys: Sequence[PrivateKey],
) -> None:
    """Log the open record and sign the checkpoint that covers it."""
    # Sub-seeds are committed to before the first query: none can be chosen later (A2).
    tree = number_tree(folder.seed.read_bytes(), policy)
    record = OpenRecord(
        window=policy.window,
        embedder=embedder.commitment,
        indexes=tuple(cards),
        seed_root=tree.root().hex(),
        seed_count=str(tree.size),
        policy=policy.digest,
    )
    # The first entry of the log, under its signed checkpoint.
    ledger = WindowLog(folder.public)
    replace_file(ledger.path, b"")
    replace_file(folder.openings, b"")
    ledger.append(record)
    note = publish(folder.public, ledger.log, keys, ledger.entries)
    replace_file(folder.public / "open.checkpoint", note)


# A window's files, and the lock of those who write them.


class Folder:
    """A window's folder.

    Attributes:
        public: For everybody; a static server can hand it out.
        secret: For the provider alone.
        openings: The openings of the query records.
        seed: The window's seed, 32 bytes.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.public, self.secret = root, root / "public", root / "secret"
        self.openings = self.secret / "records.jsonl"
        self.seed = self.secret / "seed"

    def tenant(self, place: int) -> Path:
        """Return the public folder of one tenant's index, by its place in the open record."""
        return self.public / "tenants" / str(place)

    def columns(self, place: int) -> Path:
        """Return the file of the rows and blinds behind a tenant's commitments."""
        return self.secret / "tenants" / str(place) / "columns.npz"

    def documents(self, place: int) -> Path:
        """Return the provider's table of the documents in the slots."""
        return self.secret / "tenants" / str(place) / "documents.jsonl"


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Keep other processes, and other threads of this one, out while the log changes.

    Raises:
        InputError: The folder is no window's, or cannot be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(only_writer(folder.secret / "lock"))
        except OSError as error:
            raise InputError(
                f"{folder.root} is no window that can be written: {error.strerror}.",
                "Give a folder that ragwitness attest commit made.",
            ) from error
        yield


def read_rows(path: Path) -> NDArray[np.int16]:
    """Return the integer vectors of a file of secret columns, without its blinds.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return np.asarray(stored["rows"], np.int16)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} holds no committed vectors: {error}.", "Restore it from a backup."
        ) from error
