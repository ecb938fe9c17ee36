"""Phase B: one library call per query; every answer is logged before it is given (§5.4).

Several processes may hold one window. Under the folder's lock a query gets the next sequence of
its account, from which the key of its noise follows. Opening and record are on the disk before the
answer is given. So a process may be killed at any point: no sequence is given to two records, and a
client that sends the same request again gets the logged answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from ragwitness.attest.commit import Folder, locked, number_tree, read_rows
from ragwitness.attest.commitments import (
    checkpoint_token,
    parse_token,
    proof_shape,
)
from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
from ragwitness.attest.receipts import (
    KeptOpening,
    Opened,
    OpeningsStore,
    Receipt,
    Request,
    check_key,
    verify_request,
)
from ragwitness.attest.window_log import (
    LoggedAccount,
    WindowLog,
    check_published,
    opening_keys,
    publish,
    sign,
)
from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.core.files import read_file
from ragwitness.crypto.hashing import commit, draw_blinding, is_digest
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import LogProof
from ragwitness.crypto.records import (
    AdmitRecord,
    BeaconRecord,
    KeyedAdmitRecord,
    QueryRecord,
    SignedQueryRecord,
    decode,
    record_hash,
)
from ragwitness.privacy.release import SlotIndex, check_rows, release
from ragwitness.privacy.streams import (
    SEED_BYTES,
    NoiseRecord,
    answer_key,
    sub_seed,
    sub_seed_number,
)

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.argument import SecretColumns

# One query: the checks under the policy, and the record that it becomes (R2).

_NONCE = re.compile(r"[\x20-\x7e]{0,256}", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedAnswer:
    """The reply to the client.

    Attributes:
        ids: Slots, best first.
        sequence: Earlier queries of the account in the log.
        receipt: For the account to keep.
    """

    ids: tuple[int, ...]
    sequence: int
    receipt: Receipt


def check_request(policy: WindowPolicy, request: Request) -> None:
    """Check a request as far as the log is not needed.

    Raises:
        InputError: The tenant is unknown, the digest is wrong, the nonce is missing or unusable,
            or the vector is not an integer vector within the scale.
    """
    # Tenant, digest and text.
    mechanism = policy.tenants.get(request.tenant)
    if mechanism is None:
        raise InputError(
            f"The window has no tenant {request.tenant!r}.",
            f"Its tenants: {', '.join(policy.tenants)}.",
        )
    if not is_digest(request.query):
        raise InputError(f"{request.query[:80]!r} is not a SHA-256 in lower-case hex.")
    if request.text is not None and _digest(request.text) != request.query:
        raise InputError("The query's text has another SHA-256 than the one that is given.")
    # Nonce and vector.
    if not _NONCE.fullmatch(request.nonce):
        raise InputError("A nonce is at most 256 printable ASCII characters.")
    if policy.nonces_required and not request.nonce:
        raise InputError(
            "The policy asks for a nonce of the client with every query.",
            "Send a random one, e.g. 16 bytes in hex, and compare it with the receipt's.",
        )
    if check_rows(request.vector, mechanism).shape[0] != 1:
        raise InputError("A query has one vector.")


def account_of(policy: WindowPolicy, ledger: WindowLog, request: Request) -> LoggedAccount:
    """Return the account of a request that the log allows.

    Raises:
        InputError: The account is not admitted or has used all its queries, or the checkpoint is
            not one of this log, or is older than the account's admission.
    """
    # Admitted, with queries left.
    account = ledger.accounts.get((request.tenant, request.account))
    if account is None:
        raise InputError(
            f"{request.account!r} is not admitted to {request.tenant}.",
            "Admit it first (Window.admit): its place must be logged before its first nonce.",
        )
    if account.count >= policy.queries:
        raise InputError(
            f"{request.account} has asked all its {policy.queries:,} queries of this window.",
            "Ask in the next one.",
        )
    try:
        size, root = parse_token(request.checkpoint, "checkpoint")
    except VerificationError as error:
        raise InputError(error.message, "Name the last checkpoint that was handed out.") from error
    # The client's nonce is fresh only if it was drawn after the account's place and the beacon were
    # logged.
    log, least = ledger.log, max(account.admitted, ledger.beacon_at)
    if size > log.size or not least < size or log.root(size) != root:
        raise InputError(
            f"{request.checkpoint[:80]!r} is not a checkpoint of this log since the account was"
            " admitted and the beacon was logged.",
            "Name the last checkpoint that was handed out.",
        )
    _check_signed(policy, request, account)
    return account


def _check_signed(policy: WindowPolicy, request: Request, account: LoggedAccount) -> None:
    """Check that an account with a key has signed, and one without has not.

    Raises:
        InputError: It is otherwise, or the signature is of another request or number.
    """
    # A key and a signature, or neither.
    signed = request.signed
    if signed is None and account.key:
        raise InputError(
            f"{request.account!r} has a key in this window, and this query is not signed.",
            "Sign it: ragwitness.sign_request, or give the client the account's key.",
        )
    if signed is None:
        return
    if not account.key:
        raise InputError(
            f"{request.account!r} was admitted without a key, so its signature counts for nothing.",
            "Give the key when the account is admitted; in this window it is too late.",
        )
    if signed.sequence != account.count:
        raise InputError(
            f"The next query of {request.account!r} has number {account.count:,}, not"
            f" {signed.sequence:,}.",
            "Ask for the number again, and send what was not answered as it was.",
        )
    # The record as it would be logged: what its account must have signed.
    opened = open_request(request, ())
    try:
        record = query_record(policy, request, account, opened)
        verify_request(record, signed.signature, account.key)
    except VerificationError as error:
        raise InputError(error.message, "Sign window, account, nonce and checkpoint.") from error


def noise_record(policy: WindowPolicy, request: Request, sequence: int) -> NoiseRecord:
    """Return the inputs of an answer's noise (A2)."""
    return NoiseRecord(
        window=policy.window,
        tenant=request.tenant,
        account=request.account,
        sequence=sequence,
        nonce=request.nonce,
        checkpoint=request.checkpoint,
        query=request.query,
        mechanism=policy.tenants[request.tenant].digest,
    )


def open_request(request: Request, ids: tuple[int, ...]) -> Opened:
    """Return the openings of an answered request's record, with fresh blindings.

    The blinding of a signed query is the account's own.
    """
    blinding = draw_blinding() if request.signed is None else request.signed.blinding
    return Opened(
        bytes.fromhex(request.query),
        np.asarray(request.vector).reshape(-1).astype(np.int16),
        ids,
        (blinding, draw_blinding(), draw_blinding()),
    )


def query_record(
    policy: WindowPolicy, request: Request, account: LoggedAccount, opened: Opened
) -> QueryRecord:
    """Return the record of an answered request."""
    # Commitments to query, vector and answer, then the fields in clear.
    query, vector, answer = (commit(opening).hex() for opening in opened.openings)
    fields: dict[str, Any] = {}
    if request.signed is not None:
        fields["signature"] = request.signed.signature.hex()
    record_type = SignedQueryRecord if fields else QueryRecord
    return record_type(
        window=policy.window,
        tenant=request.tenant,
        account=request.account,
        sequence=str(account.count),
        number=str(sub_seed_number(account.place, policy.queries, account.count)),
        nonce=request.nonce,
        checkpoint=request.checkpoint,
        query=query,
        vector=vector,
        mechanism=policy.tenants[request.tenant].digest,
        answer=answer,
        prior=account.last.hex(),
        **fields,
    )


def _digest(text: str) -> str:
    try:
        return sha256(text.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise InputError(
            "The query's text holds half a surrogate pair, which is not text."
        ) from error


class Window:
    """An open or closed window; make one with :meth:`load`.

    Args:
        folder: Its files.
        policy: Its promise.
        keys: Keys of the log.
    """

    def __init__(self, folder: Folder, policy: WindowPolicy, keys: Sequence[PrivateKey]) -> None:
        self.folder, self.policy, self.keys = folder, policy, tuple(keys)
        self.ledger = WindowLog(folder.public)
        self._openings = OpeningsStore(folder.openings)
        self._seed = read_file(folder.seed, SEED_BYTES)
        self._indexes: dict[str, SlotIndex] = {}
        self._tree: MerkleLog | None = None

    @classmethod
    def load(cls, root: Path, keys: Sequence[PrivateKey] = ()) -> Window:
        """Return the window of a folder.

        Args:
            root: The folder that :func:`~ragwitness.attest.commit.open_window` made.
            keys: Keys of the log; needed to record and to close.

        Raises:
            InputError: The folder does not hold a window, or the keys are not those that opened it.
            VerificationError: The policy or the log is damaged, or the log is not the one whose
                published checkpoint: going on would sign a second history.
        """
        # The policy and the log must belong together.
        folder = Folder(root)
        hint = "Give a folder that ragwitness attest commit made."
        policy = WindowPolicy.parse(read_file(folder.public / "policy.json", MOST_BYTES, hint))
        window = cls(folder, policy, keys)
        with window.writing():
            opened = window.ledger.opened
            check_published(folder.public, window.ledger.log)
        fault = f"The policy in {root} is not the one that its log opens with."
        require(opened.policy == policy.digest, "policy.digest", fault)
        if keys:
            window.keys = opening_keys(folder.public, keys, policy.window)
        return window

    @property
    def public(self) -> Path:
        """The public folder."""
        return self.folder.public

    @property
    def checkpoint(self) -> str:
        """Size and root of the log, by which a client names the last checkpoint that it saw."""
        with self.writing():  # never an entry that is not on the disk yet
            return checkpoint_token(self.ledger.log.size, self.ledger.log.root())

    def begin(self, beacon: str, source: str) -> None:
        """Log the beacon of the window's noise: before the first query, and once.

        Args:
            beacon: 32 bytes that were unknown when the window was opened, as 64 lower-case hex
                digits.
            source: Origin of the value, in words.

        Raises:
            InputError: The beacon is spelt another way, another was logged, a query was answered
                without one, or the window is closed.
        """
        # One spelling of the value.
        try:
            record = BeaconRecord(window=self.policy.window, value=beacon, source=source)
        except ValidationError as error:
            raise InputError(
                "A beacon is 64 lower-case hex digits, from a source of 1 to 256 characters, not"
                f" {beacon[:80]!r} from {source[:80]!r}.",
                "Spell it so: a value that could be written two ways could be pinned as one and"
                " logged as the other.",
            ) from error
        with self.writing(open_only=True):
            # The same beacon again changes nothing; another is refused.
            if self.ledger.beacon.hex() == beacon:
                return
            if self.ledger.beacon or self.ledger.queries:
                had = "has its beacon" if self.ledger.beacon else "has answered queries without one"
                raise InputError(
                    f"The window {self.policy.window} {had}; a second would let somebody choose.",
                    "The next window can begin with another.",
                )
            self.ledger.append(record)

    def admit(self, tenant: str, account: str, key: bytes = b"") -> int:
        """Give an account its place, in the log, before its first query; return the place.

        An account that has one keeps it.

        Args:
            tenant: Tenant of the index.
            account: Its name.
            key: Its public key (Ed25519), 32 bytes: from then on each of its queries must be
                signed. None for an account that does not sign.

        Raises:
            InputError: No such tenant, an unusable name or key, a key that this account was not
                admitted with or that another has, no place left, or the window is closed.
        """
        # Refuse a wrong tenant or key before the log is locked.
        self.place_of(tenant)
        if key:
            try:
                check_key(key)
            except VerificationError as error:
                raise InputError(error.message, "Give the 32 bytes of an Ed25519 key.") from error
        with self.writing(open_only=True):
            # A known account keeps its place and its key.
            logged = self.ledger.accounts.get((tenant, account))
            if logged is not None:
                if key and logged.key != key:
                    had = "with another key" if logged.key else "without a key"
                    raise InputError(
                        f"{account!r} was admitted to {tenant} {had}; in one window it keeps it.",
                        "Use that key, or wait for the next window.",
                    )
                return logged.place
            # A key is for one account.
            if key and any(
                account_in_log.key == key for account_in_log in self.ledger.accounts.values()
            ):
                raise InputError(
                    "Another account of this window has this key.",
                    "Make a key for each account: a signature names one of them.",
                )
            next_place = len(self.ledger.accounts)
            if next_place >= self.policy.accounts_most:
                raise InputError(
                    f"All {self.policy.accounts_most:,} places of the window are taken.",
                    "The policy sets the number; a later window can have more.",
                )
            # Log the admission.
            values: dict[str, Any] = {"window": self.policy.window, "tenant": tenant}
            values |= {"account": account, "place": str(next_place)}
            try:
                record = KeyedAdmitRecord(**values, key=key.hex()) if key else AdmitRecord(**values)
            except ValidationError as error:
                raise InputError(
                    f"{account[:80]!r} cannot name an account.",
                    "Use 1 to 256 characters, no control signs among them.",
                ) from error
            self.ledger.append(record)
            return next_place

    def record(self, request: Request) -> LoggedAnswer:
        """Answer a query: sequence, noise, selection, record, receipt.

        A repeated request gets the logged answer.

        Raises:
            InputError: The request cannot be answered under the policy; nothing was logged.
            RagwitnessError: The disk is full or fails; nothing was answered.
        """
        # 1. The checks that do not need the log.
        check_request(self.policy, request)
        with self.writing(open_only=True):
            # 2. A repeated request gets the logged answer, and no second noise.
            repeated = self._repeated(request)
            if repeated is not None:
                return repeated
            # 3. The account's place and its next sequence number.
            account = account_of(self.policy, self.ledger, request)
            vector = np.asarray(request.vector).reshape(-1)
            # 4. The key of the noise: the committed sub-seed, bound to this request (A2).
            number = sub_seed_number(account.place, self.policy.queries, account.count)
            inputs = noise_record(self.policy, request, account.count)
            # 5. Noise, then select (A3, A4).
            key = answer_key(self._seed, number, inputs, self.ledger.beacon)
            mechanism = self.policy.tenants[request.tenant]
            released = release(vector, self._index(request.tenant), key, mechanism)
            # 6. Opening, record, receipt; then the answer.
            return self._log(request, account, released.ids)

    def logged(self, request: Request) -> LoggedAnswer | None:
        """Check a request as :meth:`record` will, for a service that charges for it in between.

        Returns:
            The logged answer of a repeated request; None for one that can be recorded now.

        Raises:
            InputError: The request cannot be answered under the policy.
        """
        check_request(self.policy, request)
        with self.writing(open_only=True):
            repeated = self._repeated(request)
            if repeated is None:
                account_of(self.policy, self.ledger, request)
            return repeated

    def publish(self) -> bytes:
        """Write tiles and signed checkpoint of the log, and return that checkpoint.

        Raises:
            InputError: There is no key, or the folder cannot be written.
        """
        with self.writing():
            return publish(self.public, self.ledger.log, self.keys, self.ledger.entries)

    def receipt(self, number: int) -> Receipt:
        """Return the receipt of a query record, by its place among them.

        Raises:
            InputError: There is no such record, no key, or the openings are damaged.
        """
        opening, index = self.kept(number), self.ledger.queries[number]
        log = self.ledger.log
        proof = LogProof(index, log.inclusion(index), sign(log, self.keys)).encode()
        return Receipt(self.ledger.entry(index), proof, opening.opened)

    def query(self, number: int) -> QueryRecord:
        """Return a query record, by its place among them."""
        record = decode(self.ledger.entry(self.ledger.queries[number]))
        assert isinstance(record, QueryRecord)  # noqa: S101  # the log lists those alone
        return record

    def kept(self, number: int) -> KeptOpening:
        """Return the openings of a query record, by its place among them.

        Raises:
            InputError: There is no such record, or the openings are damaged.
        """
        if not 0 <= number < len(self.ledger.queries):
            raise InputError(f"The window has {len(self.ledger.queries):,} queries.")
        return self._openings.get(self.ledger.log.node(0, self.ledger.queries[number]))

    def seed_opening(self, number: int) -> tuple[bytes, tuple[bytes, ...]]:
        """Return a sub-seed and the proof that it was committed to before the window.

        Raises:
            InputError: There is no such sub-seed.
        """
        if self._tree is None:
            self._tree = number_tree(self._seed, self.policy)
        return sub_seed(self._seed, self.policy.window, number), self._tree.inclusion(number)

    def secret_columns(self, tenant: str) -> SecretColumns:
        """Return the rows and blinds behind a tenant's commitments.

        Raises:
            InputError: No such tenant, or its file is damaged.
        """
        from ragwitness.crypto.proofs.argument import SecretColumns

        path = self.folder.columns(self.place_of(tenant))
        return SecretColumns.load(path, proof_shape(self.policy))

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
                    "Open the next one: ragwitness attest commit.",
                )
            yield

    def _index(self, tenant: str) -> SlotIndex:
        if tenant not in self._indexes:
            mechanism = self.policy.tenants[tenant]
            self._indexes[tenant] = SlotIndex(self.rows(tenant), mechanism)
        return self._indexes[tenant]

    def _repeated(self, request: Request) -> LoggedAnswer | None:
        """Return the logged answer of a repeated request; None for a new one.

        Raises:
            InputError: Its nonce was used in another request.
        """
        # A nonce is used in one request.
        number = self.ledger.nonces.get((request.tenant, request.account, request.nonce))
        if number is None:
            return None
        opened, record = self.kept(number).opened, self.query(number)
        signature = request.signed.signature.hex() if request.signed else ""
        logged = (record.checkpoint, opened.query.hex(), getattr(record, "signature", ""))
        same = logged == (request.checkpoint, request.query, signature)
        if not same or not np.array_equal(opened.vector, np.ravel(request.vector)):
            raise InputError(
                f"{request.account} has used this nonce for another query.", "Draw a fresh one."
            )
        return LoggedAnswer(opened.ids, int(record.sequence), self.receipt(number))

    def _log(self, request: Request, account: LoggedAccount, ids: tuple[int, ...]) -> LoggedAnswer:
        """Write the openings of the record, then the record; only then is there an answer."""
        # Fresh blindings for query, vector and answer, and the record that commits to them.
        opened = open_request(request, ids)
        record = query_record(self.policy, request, account, opened)
        # Find a missing key before anything is spent.
        sign(self.ledger.log, self.keys)
        # The opening first: a record without it could never be proved.
        self._openings.put(record_hash(record), KeptOpening(opened, request.text))
        self.ledger.append(record)
        return LoggedAnswer(ids, account.count, self.receipt(len(self.ledger.queries) - 1))
