"""Phase C: estimate, map, close record, close checkpoint; and what the map says of one account."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ragwitness.attest.coalition import Estimate, certificate, estimate
from ragwitness.attest.folder import write_whole
from ragwitness.attest.ledger import account_map
from ragwitness.attest.publishing import publish, sign
from ragwitness.attest.window import Window
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.encoding import b64, parse_b64
from ragwitness.crypto.map import Entry, MapProof, account_key, prove_entry, verify_entry
from ragwitness.crypto.notes import LogProof, open_proof
from ragwitness.crypto.notes import Policy as Signers
from ragwitness.crypto.transcript import CloseRecord, QueryRecord, decode
from ragwitness.errors import InputError, VerificationError

__all__ = ["AccountProof", "check_account", "close_window", "prove_account"]

_VERSION = "ragwitness/account/v1"
_MOST_BYTES = 1 << 20
_TEXTS = ("version", "tenant", "account", "entry", "proof", "map")


@dataclass(frozen=True, slots=True)
class AccountProof:
    """What the closed window says of an account, absence included.

    Attributes:
        tenant: Whose index.
        account: Of whom.
        entry: The close record, as it was logged.
        proof: That it is in the log: a file of C2SP tlog-proof.
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
            raise VerificationError("account.version", f"This is no proof of {_VERSION}.")
        if set(value) != set(_TEXTS) or not all(isinstance(v, str) for v in value.values()):
            raise VerificationError("account.fields", "A proof has too few or other fields.")
        return cls(
            value["tenant"],
            value["account"],
            value["entry"].encode(),
            value["proof"].encode(),
            MapProof.decode(parse_b64(value["map"], "account.fields")),
        )


def close_window(window: Window) -> Estimate:
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
        sign(ledger.log, window.keys)  # a missing key is found first
        found = _estimate(window)
        data = certificate(found)
        write_whole(window.public / "estimate.json", data)
        if ledger.closed is None:
            record = CloseRecord(
                window=policy.window,
                queries=str(len(ledger.queries)),
                map_root=account_map(policy.window, ledger.accounts).root.hex(),
                coalition=str(found.size),
                certificate=hashlib.sha256(data).hexdigest(),
            )
            ledger.append(record)
        note = publish(window.public, ledger.log, window.keys)
        path = window.public / "close.checkpoint"
        if not path.exists():  # witnesses may have signed it since
            write_whole(path, note)
    return found


def prove_account(window: Window, tenant: str, account: str) -> AccountProof:
    """Return the proof of how many records a closed window has of an account, 0 included.

    Raises:
        InputError: The window is not closed or has no such tenant, or there is no key.
    """
    ledger = window.ledger
    window.place_of(tenant)  # that another has no records would prove nothing
    if ledger.closed is None:
        raise InputError(
            "The window is still open; its map is in the close record.",
            "Close it first: ragwitness close.",
        )
    index = ledger.log.size - 1
    proof = LogProof(index, ledger.log.inclusion(index), sign(ledger.log, window.keys)).encode()
    name = window.policy.window
    found = prove_entry(account_map(name, ledger.accounts), account_key(name, tenant, account))
    return AccountProof(tenant, account, ledger.entry(index), proof, found)


def check_account(proof: AccountProof, signers: Signers) -> Entry | None:
    """Return what a closed window says of an account: count and last record, or None for nothing.

    Args:
        proof: Of :func:`prove_account`.
        signers: Whose signatures under a checkpoint count.

    Raises:
        VerificationError: ``account.record`` (not the record of a close), or by
            :func:`~ragwitness.crypto.notes.open_proof` and
            :func:`~ragwitness.crypto.map.verify_entry` ``proof.*``, ``checkpoint.*``, ``log.*``,
            ``map.*``.
    """
    record = decode(proof.entry)
    if not isinstance(record, CloseRecord):
        raise VerificationError("account.record", "The proof's record closes no window.")
    open_proof(proof.proof, proof.entry, signers)
    key = account_key(record.window, proof.tenant, proof.account)
    return verify_entry(bytes.fromhex(record.map_root), key, proof.found)


def _estimate(window: Window) -> Estimate:
    who, vectors = [], []
    for number, index in enumerate(window.ledger.queries):
        record = decode(window.ledger.entry(index))
        if isinstance(record, QueryRecord):
            who.append((record.tenant, record.account))
            vectors.append(window.kept(number).opened.vector)
    rows = np.stack(vectors) if vectors else np.zeros((0, 1), np.int16)
    return estimate(window.policy, who, rows)
