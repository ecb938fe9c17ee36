"""Phase C: estimate, map, close record, close checkpoint; and what the map says of one account."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ragwitness.attest.checkpoints import publish, sign
from ragwitness.attest.coalition import CoalitionEstimate, certificate, estimate
from ragwitness.attest.ledger import account_map
from ragwitness.attest.window import Window
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.hashing import b64, parse_b64
from ragwitness.crypto.map import MapEntry, MapProof, account_key, prove_entry, verify_entry
from ragwitness.crypto.notes.witness import LogProof, Signers, open_proof
from ragwitness.crypto.transcript.records import CloseRecord, QueryRecord, decode
from ragwitness.errors import InputError, VerificationError
from ragwitness.kit.files import replace_file

_VERSION = "ragwitness/account/v1"
_MOST_BYTES = 1 << 20
_TEXTS = ("version", "tenant", "account", "entry", "proof", "map")


@dataclass(frozen=True, slots=True)
class AccountProof:
    """What the closed window says of an account, absence included.

    Attributes:
        tenant: Whose index.
        account: Whose account it is.
        entry: The close record, as it was logged.
        proof: Proof that it is in the log: a file of C2SP tlog-proof.
        found: The map's answer, with its path.
    """

    tenant: str
    account: str
    entry: bytes
    proof: bytes
    found: MapProof

    def encode(self) -> bytes:
        """Return the file: canonical JSON."""
        values = (
            _VERSION,
            self.tenant,
            self.account,
            self.entry.decode(),
            self.proof.decode(),
            b64(self.found.encode()),
        )
        return canonical(dict(zip(_TEXTS, values, strict=True)))

    @classmethod
    def parse(cls, data: bytes) -> AccountProof:
        """Return the proof of a file; nothing is checked but its form.

        Raises:
            VerificationError: ``account.version``, ``account.fields``, ``map.format``, or by
                :func:`~ragwitness.crypto.canonical.parse` ``account.*``.
        """
        value = parse(data, _MOST_BYTES, "account")
        if not isinstance(value, dict) or value.get("version") != _VERSION:
            raise VerificationError("account.version", f"This is not a proof of {_VERSION}.")
        if set(value) != set(_TEXTS) or not all(isinstance(v, str) for v in value.values()):
            raise VerificationError("account.fields", "A proof has too few or other fields.")
        return cls(
            value["tenant"],
            value["account"],
            value["entry"].encode(),
            value["proof"].encode(),
            MapProof.decode(parse_b64(value["map"], "account.fields")),
        )


def close_window(window: Window) -> CoalitionEstimate:
    """Close a window: no query can follow.

    Writes ``estimate.json``, the close record, and ``close.checkpoint``. A crash in between is
    mended by calling it again.

    Returns:
        The coalition estimate; it may exceed the policy's cap, which then fails the audit.

    Raises:
        InputError: The journal is damaged, there is no key, or the folder cannot be written.
    """
    policy, ledger = window.policy, window.ledger
    with window.writing():
        # 1. A missing key is found before anything is written.
        sign(ledger.log, window.keys)
        # 2. The estimate of the coalition (R5) from all query records, and its certificate.
        who, vectors = [], []
        for number, index in enumerate(ledger.queries):
            query = decode(ledger.entry(index))
            if isinstance(query, QueryRecord):
                who.append((query.tenant, query.account))
                vectors.append(window.kept(number).opened.vector)
        found = estimate(policy, who, np.stack(vectors) if vectors else np.zeros((0, 1), np.int16))
        data = certificate(found)
        replace_file(window.public / "estimate.json", data)
        # 3. The close record: counts, the root of the accounts' map, the estimate.
        if ledger.closed is None:
            record = CloseRecord(
                window=policy.window,
                queries=str(len(ledger.queries)),
                map_root=account_map(policy.window, ledger.accounts).root.hex(),
                coalition=str(found.size),
                certificate=hashlib.sha256(data).hexdigest(),
            )
            ledger.append(record)
        # 4. The signed checkpoint of the close; one that witnesses have signed since is kept.
        note = publish(window.public, ledger.log, window.keys, ledger.entries)
        path = window.public / "close.checkpoint"
        if not path.exists():
            replace_file(path, note)
    return found


def prove_account(window: Window, tenant: str, account: str) -> AccountProof:
    """Return the proof of how many records a closed window has of an account, 0 included.

    Raises:
        InputError: The window is not closed or has no such tenant, or there is no key.
    """
    ledger = window.ledger
    # That a tenant which does not exist has no records would prove nothing.
    window.place_of(tenant)
    if ledger.closed is None:
        raise InputError(
            "The window is still open; its map is in the close record.",
            "Close it first: ragwitness close.",
        )
    # The close record and its place in the log, then the map's answer under its root.
    index = ledger.log.size - 1
    proof = LogProof(index, ledger.log.inclusion(index), sign(ledger.log, window.keys)).encode()
    name = window.policy.window
    found = prove_entry(account_map(name, ledger.accounts), account_key(name, tenant, account))
    return AccountProof(tenant, account, ledger.entry(index), proof, found)


def check_account(proof: AccountProof, signers: Signers) -> MapEntry | None:
    """Return what a closed window says of an account: count and last record, or None for nothing.

    Args:
        proof: Proof from :func:`prove_account`.
        signers: Whose signatures under a checkpoint count.

    Raises:
        VerificationError: ``account.record`` (not the record of a close), or by
            :func:`~ragwitness.crypto.notes.witness.open_proof` and
            :func:`~ragwitness.crypto.map.verify_entry` ``proof.*``, ``checkpoint.*``, ``log.*``,
            ``map.*``.
    """
    # 1. It is a close record. 2. It is logged, under a trusted signature. 3. Its map says so.
    record = decode(proof.entry)
    if not isinstance(record, CloseRecord):
        raise VerificationError("account.record", "The proof's record does not close a window.")
    open_proof(proof.proof, proof.entry, signers)
    key = account_key(record.window, proof.tenant, proof.account)
    return verify_entry(bytes.fromhex(record.map_root), key, proof.found)
