"""Phase B: one library call per query; what is answered is logged before it is answered (§5.4).

Several processes may hold one window. Under the folder's lock a query gets the next sequence of
its account, the key of its noise follows, and opening and record are on the disk before anyone is
told of either. So a process may be killed at any point: no sequence is given to two records, and a
client that sends the same request again gets the answer that was logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.committing import seed_tree
from ragwitness.attest.folder import Folder, locked, read_bytes, read_rows
from ragwitness.attest.journal import Journal, Kept
from ragwitness.attest.ledger import Account, Ledger
from ragwitness.attest.openings import checkpoint_token
from ragwitness.attest.policy import MOST_BYTES, Policy
from ragwitness.attest.publishing import check_published, opening_keys, publish, sign
from ragwitness.attest.receipts import Receipt
from ragwitness.attest.requests import (
    Answered,
    Request,
    account_of,
    admission_record,
    check_request,
    noise_record,
    open_request,
    query_record,
)
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.notes import LogProof
from ragwitness.crypto.seeds import SeedOpening, SeedTree
from ragwitness.crypto.transcript import QueryRecord, decode, record_hash
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.mechanism import SlotIndex, release
from ragwitness.privacy.streams import SEED_BYTES, record_key, sub_seed

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.secret import SecretColumns

__all__ = ["Answered", "Request", "Window"]


class Window:
    """An open or closed window; make one with :meth:`load`.

    Args:
        folder: Its files.
        policy: What it is held to.
        keys: Of the log.
    """

    def __init__(self, folder: Folder, policy: Policy, keys: Sequence[PrivateKey]) -> None:
        self.folder, self.policy, self.keys = folder, policy, tuple(keys)
        self.ledger = Ledger(folder.public)
        self._journal = Journal(folder.journal)
        self._seed = read_bytes(folder.seed, SEED_BYTES)
        self._indexes: dict[str, SlotIndex] = {}
        self._tree: SeedTree | None = None

    @classmethod
    def load(cls, root: Path, keys: Sequence[PrivateKey] = ()) -> Window:
        """Return the window of a folder.

        Args:
            root: The folder that :func:`~ragwitness.attest.committing.open_window` made.
            keys: Of the log; needed to record and to close.

        Raises:
            InputError: The folder is no window's, or the keys are not those that opened it.
            VerificationError: The policy or the log is damaged, or the log is not the one whose
                checkpoint it has published: going on would sign a second history.
        """
        folder = Folder(root)
        hint = "Give a folder that ragwitness commit made."
        policy = Policy.parse(read_bytes(folder.public / "policy.json", MOST_BYTES, hint))
        window = cls(folder, policy, keys)
        with window.writing():
            opened = window.ledger.opened
            check_published(folder.public, window.ledger.log)
        if opened.policy != policy.digest:
            said = f"The policy in {root} is not the one that its log opens with."
            raise VerificationError("policy.digest", said)
        if keys:
            window.keys = opening_keys(folder.public, keys, policy.window)
        return window

    @property
    def public(self) -> Path:
        """Folder of what everybody may read."""
        return self.folder.public

    @property
    def checkpoint(self) -> str:
        """What a client names as the last checkpoint that it saw."""
        with self.writing():  # never an entry that is not on the disk yet
            return checkpoint_token(self.ledger.log.size, self.ledger.log.root())

    def admit(self, tenant: str, account: str) -> int:
        """Give an account its place, in the log, before its first query; return the place.

        An account that has one keeps it.

        Raises:
            InputError: No such tenant, an unusable name, no place left, or the window is closed.
        """
        self.place_of(tenant)
        with self.writing(open_only=True):
            known = self.ledger.accounts.get((tenant, account))
            if known is not None:
                return known.place
            place = len(self.ledger.accounts)
            if place >= self.policy.accounts_most:
                raise InputError(
                    f"All {self.policy.accounts_most:,} places of the window are taken.",
                    "The number stands in the policy; a later window can have more.",
                )
            self.ledger.append(admission_record(self.policy, tenant, account, place))
            return place

    def record(self, request: Request) -> Answered:
        """Answer a query: sequence, noise, selection, record, receipt.

        The same request again gives the same answer, out of the log.

        Raises:
            InputError: The request cannot be answered under the policy; nothing was logged.
            RagwitnessError: The disk is full or fails; nothing was answered.
        """
        check_request(self.policy, request)
        with self.writing(open_only=True):
            again = self._known(request)
            if again is not None:
                return again
            account = account_of(self.policy, self.ledger, request)
            mechanism = self.policy.tenants[request.tenant]
            vector = np.asarray(request.vector).reshape(-1)
            key = self._key(request, account)
            found = release(vector, self._index(request.tenant), key, mechanism)
            return self._log(request, account, found.ids)

    def logged(self, request: Request) -> Answered | None:
        """Check a request as :meth:`record` will, for who wants to charge for it in between.

        Returns:
            The logged answer of a request that comes again; None for one that can be recorded now.

        Raises:
            InputError: The request cannot be answered under the policy.
        """
        check_request(self.policy, request)
        with self.writing(open_only=True):
            again = self._known(request)
            if again is None:
                account_of(self.policy, self.ledger, request)
            return again

    def publish(self) -> bytes:
        """Write tiles and signed checkpoint of the log as it stands, and return that checkpoint.

        Raises:
            InputError: There is no key, or the folder cannot be written.
        """
        with self.writing():
            return publish(self.public, self.ledger.log, self.keys)

    def receipt(self, number: int) -> Receipt:
        """Return the receipt of a query record, by its place among them.

        Raises:
            InputError: There is no such record, no key, or the journal is damaged.
        """
        kept, index = self.kept(number), self.ledger.queries[number]
        log = self.ledger.log
        proof = LogProof(index, log.inclusion(index), sign(log, self.keys)).encode()
        return Receipt(self.ledger.entry(index), proof, kept.opened)

    def entries(self) -> list[bytes]:
        """Return all entries of the log."""
        return self.ledger.entries()

    def kept(self, number: int) -> Kept:
        """Return what opens a query record, by its place among them.

        Raises:
            InputError: There is no such record, or the journal is damaged.
        """
        if not 0 <= number < len(self.ledger.queries):
            raise InputError(f"The window has {len(self.ledger.queries):,} queries.")
        return self._journal.get(self.ledger.log.node(0, self.ledger.queries[number]))

    def seed_opening(self, number: int) -> SeedOpening:
        """Return the proof that a sub-seed is the one committed to before the window.

        Raises:
            InputError: There is no such sub-seed.
        """
        if self._tree is None:
            self._tree = seed_tree(self._seed, self.policy)
        return self._tree.open(number, sub_seed(self._seed, self.policy.window, number))

    def secret_columns(self, tenant: str) -> SecretColumns:
        """Return the rows and blinds behind a tenant's commitments.

        Raises:
            InputError: No such tenant, or its file is damaged.
        """
        from ragwitness.crypto.proofs.secret import SecretColumns
        from ragwitness.crypto.proofs.setup import MOST_SETUP_BYTES, VerifierSetup

        setup = VerifierSetup.parse(read_bytes(self.public / "setup.json", MOST_SETUP_BYTES))
        return SecretColumns.load(self.folder.columns(self.place_of(tenant)), setup.shape)

    def rows(self, tenant: str) -> NDArray[np.int16]:
        """Return a tenant's integer vectors, shape (capacity, dimension)."""
        return read_rows(self.folder.columns(self.place_of(tenant)))

    def place_of(self, tenant: str) -> int:
        """Return a tenant's place in the open record.

        Raises:
            InputError: The window has no such tenant.
        """
        names = list(self.policy.tenants)
        if tenant not in names:
            raise InputError(
                f"The window has no tenant {tenant!r}.", f"Its tenants: {', '.join(names)}."
            )
        return names.index(tenant)

    @contextmanager
    def writing(self, *, open_only: bool = False) -> Iterator[None]:
        """Hold the window's lock, with the log read to its end.

        Raises:
            InputError: The folder cannot be written, or the window is closed and must not be.
        """
        with locked(self.folder):
            self.ledger.refresh(repair=True)
            if open_only and self.ledger.closed is not None:
                raise InputError(
                    f"The window {self.policy.window} is closed; nothing can follow in its log.",
                    "Open the next one: ragwitness commit.",
                )
            yield

    def _index(self, tenant: str) -> SlotIndex:
        if tenant not in self._indexes:
            mechanism = self.policy.tenants[tenant]
            self._indexes[tenant] = SlotIndex(self.rows(tenant), mechanism)
        return self._indexes[tenant]

    def _key(self, request: Request, account: Account) -> bytes:
        number = account.place * self.policy.queries + account.count
        seed = sub_seed(self._seed, self.policy.window, number)
        return record_key(seed, noise_record(self.policy, request, account.count))

    def _known(self, request: Request) -> Answered | None:
        """Return the logged answer of a request that comes again.

        Raises:
            InputError: Its nonce stands under another request.
        """
        number = self.ledger.nonces.get((request.tenant, request.account, request.nonce))
        if number is None:
            return None
        kept, record = self.kept(number), decode(self.ledger.entry(self.ledger.queries[number]))
        if (
            not isinstance(record, QueryRecord)
            or record.checkpoint != request.checkpoint
            or kept.opened.query.hex() != request.query
            or not np.array_equal(kept.opened.vector, np.ravel(request.vector))
        ):
            raise InputError(
                f"{request.account} has used this nonce for another query.", "Draw a fresh one."
            )
        return Answered(kept.opened.ids, int(record.sequence), self.receipt(number))

    def _log(self, request: Request, account: Account, ids: tuple[int, ...]) -> Answered:
        """Write what opens the record, then the record; only then is there an answer."""
        opened = open_request(request, ids)
        record = query_record(self.policy, request, account, opened)
        sign(self.ledger.log, self.keys)  # a missing key is found before anything is spent
        self._journal.put(record_hash(record), Kept(opened, request.text))
        self.ledger.append(record)
        return Answered(ids, account.count, self.receipt(len(self.ledger.queries) - 1))
