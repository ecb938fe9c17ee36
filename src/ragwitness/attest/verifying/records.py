"""Checks of the records, one after the other, as the log has them (R2)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace

from ragwitness.attest.ledger import Account, account_map
from ragwitness.attest.openings import parse_token
from ragwitness.attest.verifying.steps import Case, refuse
from ragwitness.crypto.hashing import leaf_hash
from ragwitness.crypto.transcript import AdmitRecord, QueryRecord
from ragwitness.errors import VerificationError

__all__ = ["close", "replay"]


@dataclass
class _State:
    """Where the replay stands."""

    accounts: dict[tuple[str, str], Account] = field(default_factory=dict)
    nonces: set[tuple[str, str, str]] = field(default_factory=set)


def replay(case: Case) -> str:
    """Check every record against those before it and against the policy."""
    evidence, state = case.evidence, _State()
    for at, record in enumerate(evidence.records):
        try:
            if isinstance(record, AdmitRecord):
                _admit(case, state, record, at)
            elif isinstance(record, QueryRecord):
                _query(case, state, record, at)
        except VerificationError as error:
            raise refuse(error.check, f"Entry {at:,} of the log: {error.message}") from error
    bare = sum(not record.nonce for _, record in evidence.queries)
    said = f"; {bare:,} of them without a client's nonce" if bare else ""
    return f"{len(evidence.queries):,} queries of {len(state.accounts):,} accounts{said}"


def close(case: Case) -> str:
    """Check what the close record says of the records before it."""
    evidence, found = case.evidence, case.evidence.close
    if found.window != evidence.open.window:
        raise refuse("close.window", "The close record is of another window.")
    if int(found.queries) != len(evidence.queries):
        raise refuse(
            "close.queries",
            f"The close record counts {found.queries} queries; the log has"
            f" {len(evidence.queries):,}.",
        )
    root = account_map(found.window, _counted(case)).root
    if not hmac.compare_digest(root, bytes.fromhex(found.map_root)):
        raise refuse("close.map", "The map of accounts does not count what the log holds.")
    return f"map of the accounts recomputed: {root.hex()[:16]}…"


def _counted(case: Case) -> dict[tuple[str, str], Account]:
    found: dict[tuple[str, str], Account] = {}
    for at, record in case.evidence.queries:
        who = (record.tenant, record.account)
        old = found.get(who, Account(0, 0))
        last = leaf_hash(case.evidence.entries[at])
        found[who] = replace(old, count=old.count + 1, last=last)
    return found


def _admit(case: Case, state: _State, record: AdmitRecord, at: int) -> None:
    _window(case, record.window)
    _tenant(case, record.tenant)
    place, who = len(state.accounts), (record.tenant, record.account)
    if who in state.accounts:
        raise refuse("admit.again", f"{record.account!r} is admitted a second time.")
    if int(record.place) != place:
        raise refuse("admit.place", f"The next place is {place}, not {record.place}.")
    if place >= case.evidence.policy.accounts_most:
        raise refuse(
            "admit.count", f"The policy admits {case.evidence.policy.accounts_most:,} accounts."
        )
    state.accounts[who] = Account(place, at)


def _query(case: Case, state: _State, record: QueryRecord, at: int) -> None:
    policy = case.evidence.policy
    _window(case, record.window)
    _tenant(case, record.tenant)
    who = (record.tenant, record.account)
    account = state.accounts.get(who)
    if account is None:
        raise refuse("record.account", f"{record.account!r} was not admitted to {record.tenant}.")
    sequence = int(record.sequence)
    if sequence < account.count:
        raise refuse("record.replayed", f"Query {sequence} of {record.account!r} stands twice.")
    if sequence > account.count:
        raise refuse(
            "record.sequence",
            f"The next query of {record.account!r} has number {account.count}, not {sequence}.",
        )
    if sequence >= policy.queries:
        raise refuse(
            "record.count", f"{record.account!r} has more than {policy.queries:,} queries."
        )
    if int(record.number) != account.place * policy.queries + sequence:
        raise refuse("record.number", "The sub-seed is not that of the account's place.")
    if not hmac.compare_digest(bytes.fromhex(record.prior), account.last):
        raise refuse("record.prior", f"It does not follow the record of {record.account!r} before.")
    if record.mechanism != policy.tenants[record.tenant].digest:
        raise refuse("record.mechanism", "It was answered by another mechanism than committed.")
    _nonce(case, state, record)
    _shown(case, record, account, at)
    last = leaf_hash(case.evidence.entries[at])
    state.accounts[who] = replace(account, count=sequence + 1, last=last)


def _nonce(case: Case, state: _State, record: QueryRecord) -> None:
    """A nonce that comes twice is one question answered twice, with two noises to choose from."""
    if not record.nonce:
        if case.evidence.policy.nonces_required:
            raise refuse("record.nonce", "The policy asks for a client's nonce; there is none.")
        return
    said = (record.tenant, record.account, record.nonce)
    if said in state.nonces:
        raise refuse("record.nonce", f"A nonce of {record.account!r} comes a second time.")
    state.nonces.add(said)


def _shown(case: Case, record: QueryRecord, account: Account, at: int) -> None:
    """The checkpoint that the client named is of this log, and covers its account's place."""
    size, root = parse_token(record.checkpoint, "record.checkpoint")
    if size > at or not hmac.compare_digest(case.log.root(size), root):
        raise refuse("record.checkpoint", "The client was shown a checkpoint of another log.")
    if size <= account.admitted:
        raise refuse(
            "record.place", "The account's place was not logged when the client drew its nonce."
        )


def _window(case: Case, window: str) -> None:
    if window != case.evidence.open.window:
        raise refuse("record.window", f"A record of the window {window[:60]!r} stands in this one.")


def _tenant(case: Case, tenant: str) -> None:
    if tenant not in case.evidence.policy.tenants:
        raise refuse("record.tenant", f"There is no tenant {tenant[:60]!r} in the policy.")
