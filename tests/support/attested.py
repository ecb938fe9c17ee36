"""A whole audit window with real proofs, and its provider: honest, or free to cheat.

Sixteen slots of dimension 8, two tenants, four accounts with nine queries between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.challenge import Disclosure, make_challenge, noise_of, parse_challenge
from ragwitness.attest.coalition import certificate, estimate
from ragwitness.attest.commit import Contents, open_window
from ragwitness.attest.commitments import (
    CommittedEmbedder,
    checkpoint_token,
    proof_shape,
    vector_bytes,
)
from ragwitness.attest.policy import Estimator, WindowPolicy
from ragwitness.attest.prove import bundle_files, close_window, prove_window
from ragwitness.attest.receipts import Opened, Request, request_message, sign_request
from ragwitness.attest.trust import Pins, PolicyBounds, Trust
from ragwitness.attest.window import Window
from ragwitness.attest.window_log import LoggedAccount, accounts_root
from ragwitness.crypto.entries import read_entries
from ragwitness.crypto.hashing import HASH_BYTES
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint, Note, Signers, sign_checkpoint
from ragwitness.crypto.records import (
    CloseRecord,
    QueryRecord,
    SignedQueryRecord,
    decode,
    encode,
    record_hash,
)
from ragwitness.privacy.mechanism import Mechanism

LOG = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32)
STRANGER = PrivateKey("example.org/log", KeyKind.NOTE, bytes([2]) * 32)
BEACON = sha256(b"drawn after the close").digest()
MECHANISM = Mechanism(8, 16, 2, 1 << 22, 0, scale=16)
POLICY = WindowPolicy(
    window="2026-W47",
    tenants={"archive": MECHANISM, "clinic": MECHANISM},
    relation="replace",
    queries=3,
    accounts_most=4,
    epsilon=4.0,
    delta=1e-8,
    k_max=2,
    joint_delta=1e-6,
    estimator=Estimator("pairs", 0.95),
)
WIDE = PolicyBounds(60.0, 0.01, 1, 1.0, 0, "add-remove", nonces_required=False)
"""Bounds that every policy of these tests keeps: what it promises is not what they are about."""

ACCOUNTS = (("clinic", "ann"), ("archive", "bob"), ("clinic", "cid"), ("clinic", "dan"))


NOISE = sha256(b"drawn after the opening").hexdigest()
KEYS = {
    name: PrivateKey("account", KeyKind.NOTE, sha256(name.encode()).digest())
    for name in ("ann", "bob", "cid")
}
"""Of the accounts that sign; dan does not."""
PINNED = {
    f"{tenant}/{name}": KEYS[name].public.material.hex()
    for tenant, name in ACCOUNTS
    if name in KEYS
}
"""The same, as a verifier's own terms name them."""


def request_of(window, tenant, account, turn):
    """The question of an account in its turn, as its client sends it."""
    text = f"question {turn} of {account}"
    digest = sha256(text.encode()).hexdigest()
    nonce = f"{account}-{turn}"
    asked = Request(tenant, account, digest, quantised(text), nonce, window.checkpoint, text)
    held = window.ledger.accounts[tenant, account]
    if not held.key:
        return asked
    return sign_request(KEYS[account], window.policy.window, asked, held.count)


def rows(seed):
    """Twelve documents and four empty slots."""
    made = np.zeros((16, 8), np.int16)
    made[:12] = np.random.default_rng(seed).integers(-5, 6, (12, 8))
    return made


def embed(many):
    """A deterministic stand-in for an embedder: directions out of a hash."""
    return np.stack(
        [np.frombuffer(sha256(text.encode()).digest()[:16], "<i2").astype(float) for text in many]
    )


def quantised(text):
    from ragwitness.privacy.release import quantise

    return quantise(embed([text]), MECHANISM)[0]


@dataclass
class Audited:
    """A closed window and all that its provider knows.

    Attributes:
        window: Of the honest provider.
        receipts: What the accounts kept.
        bundle: The honest bundle over all records.
    """

    window: Window
    receipts: list[bytes]
    bundle: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> Audited:
        """Return what :func:`make_audited` left in a folder."""
        window = Window.load(folder / "window", (LOG,))
        receipts = [(folder / f"receipt-{turn}.json").read_bytes() for turn in range(9)]
        bundle = (folder / "bundle.zip").read_bytes()
        return cls(window, receipts, bundle, bundle_files(window))

    @property
    def trust(self):
        """Of an auditor who drew the honest bundle's challenge."""
        signers, close = Signers((LOG.public,)), self.close()
        token = checkpoint_token(close.size, close.root)
        count = len(read_bundle(self.bundle).records)
        pins = Pins(bounds=WIDE)
        opened = checkpoint_token(1, self.window.ledger.log.root(1))
        noise = bytes.fromhex(NOISE)
        return Trust(signers, BEACON, count, token, pins, noise, opened)

    @property
    def records(self):
        return [decode(entry) for entry in self.window.ledger.entries()]

    @property
    def opened(self):
        return [self.window.kept(i).opened for i in range(len(self.window.ledger.queries))]

    @property
    def any_proof(self):
        """The proof of some record."""
        bundle = read_bundle(self.bundle)
        return bundle.files[f"records/{bundle.records[0]}.proof"]

    def close(self):
        log = self.window.ledger.log
        return Checkpoint(LOG.name, log.size, log.root())


def believing(audited, data):
    """The trust of an auditor to whom the log of this bundle was shown at its close."""
    files = read_bundle(data).files
    close = Checkpoint.parse(Note.parse(files["log/close.checkpoint"]).text)
    count = len(parse_challenge(files["challenge.json"]).records)
    token = checkpoint_token(close.size, close.root)
    entries = list(read_entries(files["log/entries.bin"]))
    log = MerkleLog()
    log.extend(entries[:1])
    opened = checkpoint_token(1, log.root())
    return replace(audited.trust, close=token, records=count, noise_open=opened)


def make_audited(folder: Path, count=9, policy=POLICY) -> Audited:
    """Serve a window from open to close and prove ``count`` of its nine records."""
    contents = {
        name: Contents(rows(seed), ["5e" * 32] * 12 + [""] * 4)
        for seed, name in enumerate(policy.tenants)
    }
    embedder = CommittedEmbedder({"weights": "5e" * 32}, bytes(32))
    open_window(folder / "window", policy, contents, embedder, (LOG,))
    window = Window.load(folder / "window", (LOG,))
    receipts = []
    window.begin(NOISE, "a test")
    for tenant, account in ACCOUNTS:
        key = KEYS[account].public.material if account in KEYS else b""
        window.admit(tenant, account, key)
    for turn in range(3):
        for tenant, account in ACCOUNTS[: 4 if turn == 0 else 3 if turn == 1 else 2]:
            receipts.append(
                window.record(request_of(window, tenant, account, turn)).receipt.encode()
            )
    close_window(window)
    made = Audited(window, receipts)
    challenge = make_challenge(BEACON, made.close(), 9, count)
    made.bundle = prove_window(window, challenge)
    made.files = bundle_files(window)
    (folder / "bundle.zip").write_bytes(made.bundle)
    for turn, receipt in enumerate(receipts):
        (folder / f"receipt-{turn}.json").write_bytes(receipt)
    return made


def signed(record):
    """A record that its account signs as it is, where the account has a key: both of them lie."""
    if not isinstance(record, SignedQueryRecord):
        return record
    names = ("window", "tenant", "account", "sequence", "nonce", "checkpoint", "query")
    said = {name: getattr(record, name) for name in names}
    key = KEYS.get(record.account, STRANGER)
    message = request_message(**(said | {"sequence": int(record.sequence)}))
    return record.model_copy(update={"signature": key.sign(message).hex()})


@dataclass
class Story:
    """What a provider tells: change any part, and everything that follows is told to fit.

    Attributes:
        audited: The truth.
        records: Of the log, open record first, close record last.
        opened: What opens each query record.
        files: Of the bundle, where they do not follow from the rest.
        keys: That sign.
        proofs: Of challenged records, by place; others get one that proves something else.
        disclosures: Changes to what is opened, by place.
        seal: Whether close record and certificate are made anew.
        count: Records to challenge.
    """

    audited: Audited
    records: list = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    keys: tuple[PrivateKey, ...] = (LOG,)
    proofs: dict[int, bytes] = field(default_factory=dict)
    disclosures: dict[int, dict] = field(default_factory=dict)
    seal: bool = True
    count: int = 9

    @classmethod
    def of(cls, audited):
        return cls(audited, audited.records, audited.opened, dict(audited.files))

    @property
    def places(self):
        """Indexes of the query records in the log."""
        return [i for i, record in enumerate(self.records) if isinstance(record, QueryRecord)]

    def change(self, place, /, **fields):
        """Change fields of a query record, by its place among them; its account signs them."""
        at = self.places[place]
        changed = self.records[at].model_copy(update=fields)
        self.records[at] = changed if "signature" in fields else signed(changed)

    def relink(self):
        """Let all that follows fit, as if the lie had been told from the start.

        The records of an account follow each other, and clients were shown this log.
        """
        last: dict = {}
        log = MerkleLog()
        for at, record in enumerate(self.records):
            if isinstance(record, QueryRecord):
                who = (record.tenant, record.account)
                size = min(int(record.checkpoint.split()[0]), log.size)
                shown = {"checkpoint": checkpoint_token(size, log.root(size))}
                prior = {"prior": last.get(who, bytes(HASH_BYTES)).hex()}
                self.records[at] = signed(record.model_copy(update=prior | shown))
                last[who] = record_hash(self.records[at])
            log.append(encode(self.records[at]))

    def reopen(self, place, /, **fields):
        """Commit to something else in a query record, and open that."""
        from ragwitness.crypto.hashing import commit

        self.opened[place] = replace(self.opened[place], **fields)
        names = ("query", "vector", "answer")
        hashes = (commit(opening).hex() for opening in self.opened[place].openings)
        self.change(place, **dict(zip(names, hashes, strict=True)))

    def tell(self):
        """Return the bundle of this story, signed by its keys."""
        if self.seal:
            self._seal()
        entries = [encode(record) for record in self.records]
        log = MerkleLog()
        log.extend(entries)
        checkpoint = Checkpoint(LOG.name, log.size, log.root())
        files = self.files
        files["log/entries.bin"] = b"".join(len(e).to_bytes(2, "big") + e for e in entries)
        files["log/close.checkpoint"] = sign_checkpoint(checkpoint, self.keys)
        opened = Checkpoint(LOG.name, 1, log.root(1))
        files["log/open.checkpoint"] = sign_checkpoint(opened, self.keys)
        files["vectors.bin"] = b"".join(
            vector_bytes(one.vector) + one.blindings[1] for one in self.opened
        )
        population = len(self.places)
        count = min(self.count, population)
        challenge = make_challenge(BEACON, checkpoint, population, count)
        files.setdefault("challenge.json", challenge.encode())
        for place in challenge.records:
            files[f"records/{place}.json"], files[f"records/{place}.proof"] = self._record(place)
        return write_bundle(self.records[0].window, files, self.keys)

    def _seal(self):
        policy = WindowPolicy.parse(self.files["policy.json"])
        queries = [self.records[at] for at in self.places]
        accounts: dict = {}
        for record in queries:
            who = (record.tenant, record.account)
            old = accounts.get(who, LoggedAccount(0, 0))
            accounts[who] = replace(old, count=old.count + 1, last=record_hash(record))
        asked = [(record.tenant, record.account) for record in queries]
        found = estimate(policy, asked, np.stack([one.vector for one in self.opened]))
        self.files["estimate.json"] = certificate(found)
        self.records[-1] = CloseRecord(
            window=policy.window,
            queries=str(len(queries)),
            map_root=accounts_root(policy.window, accounts).hex(),
            coalition=str(found.size),
            certificate=sha256(self.files["estimate.json"]).hexdigest(),
        )

    def drawn(self):
        """Which records the challenge over this story draws."""
        entries = [encode(record) for record in self.records]
        log = MerkleLog()
        log.extend(entries)
        checkpoint = Checkpoint(LOG.name, log.size, log.root())
        return make_challenge(BEACON, checkpoint, len(self.places), self.count).records

    def prove(self, place, *, columns=None, noise=None):
        """Make a proof of a record as it is told, with other secrets where they are given."""
        from ragwitness.crypto.proofs.prove_selection import prove_answer
        from ragwitness.crypto.proofs.selection import AnswerClaim

        window, record, opened = self.audited.window, self.records[self.places[place]], self.opened
        columns = columns or window.secret_columns(record.tenant)
        if noise is None:
            seed = self.disclosures.get(place, {}).get("seed")
            seed = seed or window.seed_opening(int(record.number))[0]
            noise = noise_of(MECHANISM, record, seed, opened[place].query, window.ledger.beacon)
        vector, ids = opened[place].vector.astype(np.int16), opened[place].ids
        claim = AnswerClaim(columns.public, vector, noise, ids, record_hash(record))
        return prove_answer(proof_shape(POLICY), claim, columns)

    def _record(self, place):
        record, opened = self.records[self.places[place]], self.opened[place]
        seed, path = self.audited.window.seed_opening(int(record.number))
        query, _, answer = opened.blindings
        found = Disclosure(opened.query, query, opened.ids, answer, seed, path)
        found = replace(found, **self.disclosures.get(place, {}))
        return found.encode(), self.proofs.get(place) or self.audited.any_proof
