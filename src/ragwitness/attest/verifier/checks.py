"""Checks of a bundle without its proofs: policy, indexes, log, records, beacon, receipts, vectors.

Each returns the facts that hold, in words, or raises the name of the first that does not.
"""

from __future__ import annotations

import hmac
import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256

import numpy as np

from ragwitness.attest.bundle import verify_note
from ragwitness.attest.commitments import index_commitment, parse_token, vector_opening
from ragwitness.attest.receipts import Receipt, check_key, check_receipt, verify_request
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import NotCheckedError, extends
from ragwitness.attest.verifier.bundle_evidence import VerifierCase
from ragwitness.attest.window_log import LoggedAccount, accounts_root
from ragwitness.core.errors import VerificationError, require
from ragwitness.crypto.hashing import commit, leaf_hash
from ragwitness.crypto.notes import open_checkpoint
from ragwitness.crypto.records import (
    AdmitRecord,
    BeaconRecord,
    KeyedAdmitRecord,
    QueryRecord,
    SignedQueryRecord,
)
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.odometer import Terms
from ragwitness.privacy.streams import sub_seed_number


def policy(case: VerifierCase) -> str:
    """Check that the policy is the one that was committed to, for this window and its tenants."""
    # One policy, one window and the same tenants in all three.
    promise, opened = case.evidence.policy, case.evidence.open
    fault = "The policy is not the one that the open record commits to."
    require(promise.digest == opened.policy, "policy.digest", fault)
    windows = {promise.window, opened.window, case.evidence.bundle.window}
    names = "Policy, open record and bundle name different windows."
    require(len(windows) == 1, "policy.window", names)
    same = list(promise.tenants) == [index.tenant for index in opened.indexes]
    require(same, "policy.tenants", "Policy and open record name different tenants.")
    for index, mechanism in zip(opened.indexes, promise.tenants.values(), strict=True):
        fault = f"The open record gives {index.tenant} another mechanism than the policy."
        require(index.mechanism == mechanism.digest, "policy.mechanism", fault)
    # A sub-seed for every answer that the policy allows.
    count = f"The policy needs {promise.seed_count:,} sub-seeds; {opened.seed_count} are committed."
    require(int(opened.seed_count) == promise.seed_count, "policy.seeds", count)
    return (
        f"k_max {promise.k_max}, {promise.queries:,} queries per account, delta*"
        f" {promise.joint_delta}"
    )


def label(case: VerifierCase) -> str:
    """Check that the committed noise keeps the promise to a single account.

    The paper computes its verdict from the promise; one that the noise does not keep would make
    that number worthless.
    """
    promise = case.evidence.policy
    epsilons = []
    for tenant, mechanism in promise.tenants.items():
        # The exact epsilon of q answers of this noise, its table's failures taken off delta.
        mu = Terms.of(mechanism, 1.0, promise.relation).worst_mu(promise.queries)
        rest = promise.delta - mechanism.extra_delta(promise.epsilon, promise.queries)
        epsilon = epsilon_at(rest, mu) if rest > 0 else math.inf
        more = (
            f"{tenant} promises an account epsilon {promise.epsilon:g} at delta"
            f" {promise.delta:g}; its noise gives {epsilon:.4g}."
        )
        require(epsilon <= promise.epsilon, "policy.label", more)
        epsilons.append(epsilon)
    return f"one account: epsilon {max(epsilons):.3g} by the noise, {promise.epsilon:g} promised"


def embedder(case: VerifierCase) -> str:
    """Check that the embedder's digests are those that were committed to."""
    committed = case.evidence.embedder
    fault = "The embedder is not the one that was committed to."
    require(committed.commitment == case.evidence.open.embedder, "embedder.commitment", fault)
    return f"{len(committed.artifacts)} artifacts committed"


def indexes(case: VerifierCase) -> str:
    """Check that columns and norm proofs are those that the open record commits to."""
    evidence = case.evidence
    # As many indexes as are committed to.
    cards, opened = evidence.cards, evidence.open.indexes
    count = f"{len(opened)} indexes are committed to; the bundle holds {len(cards)}."
    require(len(cards) == len(opened), "index.missing", count)
    rows = zip(opened, evidence.policy.tenants.values(), cards, evidence.columns, strict=False)
    for number, (index, mechanism, card, columns) in enumerate(rows):
        # C_V opens to the card; the card names columns, norm proof and size.
        tenant, data = index.tenant, evidence.bundle.tenant(number, "index.json")
        fault = f"The index of {tenant} is not the one committed to."
        require(index_commitment(data) == index.commitment, "index.commitment", fault)
        require(
            columns.digest == card.columns, "index.columns", f"The columns of {tenant} are others."
        )
        norms = sha256(evidence.bundle.tenant(number, "norms.bin")).hexdigest()
        require(norms == card.norms, "index.norms", f"The norm proof of {tenant} is another.")
        same = (card.slots, card.dimension) == (mechanism.capacity, mechanism.dimension)
        require(same, "index.size", f"The index of {tenant} has another size.")
        same = len(columns.chunks) == evidence.shape.chunks(card.slots)
        require(same, "index.chunks", f"The columns of {tenant} cover other slots.")
    return f"{len(cards)} committed indexes, {sum(card.slots for card in cards):,} slots"


# Checks of the log: its key, its entries, and its one history.


def bundle_note(case: VerifierCase) -> str:
    """Check that the log's key signed the list of the bundle's files."""
    trust = case.trusted("nothing says whose log this is")
    verify_note(case.evidence.bundle, trust.notes.log)
    return f"signed by {trust.notes.origin}"


def open_note(case: VerifierCase) -> str:
    """Check the signatures under the checkpoint of the open."""
    return _note(case, "open")


def close_note(case: VerifierCase) -> str:
    """Check the signatures under the checkpoint of the close."""
    return _note(case, "close")


def rebuilt(case: VerifierCase) -> str:
    """Check that the entries, all of them, are those under both checkpoints' roots.

    The checkpoint of the open was signed before the first query record, so the commitments of the
    open record were fixed by then.
    """
    evidence, log = case.evidence, case.log
    opened, closed = evidence.checkpoints
    # 1. The close covers every entry. 2. The open covers the commitments and no query.
    size = f"The log was closed with {closed.size:,} entries; the bundle holds {log.size:,}."
    require(closed.size == log.size, "log.size", size)
    two = "Open and close are checkpoints of two logs."
    require(opened.origin == closed.origin, "checkpoint.origin", two)
    fault = "The log's entries are not those that the close was signed for."
    require(hmac.compare_digest(log.root(), closed.root), "log.root", fault)
    first = evidence.queries[0][0] if evidence.queries else log.size
    late = "The checkpoint of the open does not lie between open record and first query."
    require(1 <= opened.size <= first, "log.open", late)
    fault = "The log's first entries are not those that the open was signed for."
    require(hmac.compare_digest(log.root(opened.size), opened.root), "log.open_root", fault)
    return f"{log.size:,} entries, {len(evidence.queries):,} of them answered queries"


def seen_elsewhere(case: VerifierCase) -> str:
    """Check that checkpoints from elsewhere are prefixes of this log."""
    notes = case.seen_of_window
    if not notes:
        raise NotCheckedError("no checkpoint from elsewhere was given")
    signers = case.trusted("no one can say whose checkpoints these are").listeners
    for data in notes:
        extends(case.log, open_checkpoint(data, signers).checkpoint, "log")
    return f"{len(notes):,} checkpoints from elsewhere agree"


_YEAR_9999 = 253_370_764_800  # POSIX seconds; later times cannot be written


def _note(case: VerifierCase, name: str) -> str:
    trust = case.trusted("nothing says whose log this is")
    signed = open_checkpoint(case.evidence.bundle.files[f"log/{name}.checkpoint"], trust.notes)
    witnesses = len({name for name, _ in signed.times})
    watched = f" and {witnesses} of its witnesses" if witnesses else "; no witness"
    # An opening that was witnessed only at the close proves no order.
    if times := [time for _, time in signed.times if time is not None and time < _YEAR_9999]:
        watched += f", first at {datetime.fromtimestamp(min(times), UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"signed by {trust.notes.origin}{watched}"


# Checks of the records, one after the other, as the log has them (R2).


@dataclass
class _State:
    """State of the replay."""

    accounts: dict[tuple[str, str], LoggedAccount] = field(default_factory=dict)
    beacon: int = -1
    keys: set[str] = field(default_factory=set)
    nonces: set[tuple[str, str, str]] = field(default_factory=set)


def replay(case: VerifierCase) -> str:
    """Check every record against those before it and against the policy."""
    evidence, state = case.evidence, _State()
    # Each record moves the state on, or names its fault.
    for at, record in enumerate(evidence.records):
        try:
            if isinstance(record, AdmitRecord):
                _admit(case, state, record, at)
            elif isinstance(record, QueryRecord):
                _query(case, state, record, at)
            elif isinstance(record, BeaconRecord):
                _begin(case, state, record, at)
        except VerificationError as error:
            text = f"Entry {at:,} of the log: {error.message}"
            raise VerificationError(error.check, text) from error
    signed = sum(isinstance(record, SignedQueryRecord) for _, record in evidence.queries)
    more = f"; {signed:,} of them signed under the key that is logged" if signed else ""
    return f"{len(evidence.queries):,} queries of {len(state.accounts):,} accounts{more}"


def close(case: VerifierCase) -> str:
    """Check the close record's statements about the records before it."""
    # The window and the number of queries.
    evidence, closing = case.evidence, case.evidence.close
    fault = "The close record is of another window."
    require(closing.window == evidence.open.window, "close.window", fault)
    logged = len(evidence.queries)
    count = f"The close record counts {closing.queries} queries; the log has {logged:,}."
    require(int(closing.queries) == logged, "close.queries", count)
    # The map of accounts again, from the records themselves.
    accounts: dict[tuple[str, str], LoggedAccount] = {}
    for at, record in evidence.queries:
        name = (record.tenant, record.account)
        old = accounts.get(name, LoggedAccount(0, 0))
        last = leaf_hash(evidence.entries[at])
        accounts[name] = replace(old, count=old.count + 1, last=last)
    root = accounts_root(closing.window, accounts)
    fault = "The map of accounts does not count what the log holds."
    require(hmac.compare_digest(root, bytes.fromhex(closing.map_root)), "close.map", fault)
    return f"map of the accounts recomputed: {root.hex()[:16]}…"


def _admit(case: VerifierCase, state: _State, record: AdmitRecord, at: int) -> None:
    _names(case, record)
    # The next free place, for an account that has none.
    next_place, name = len(state.accounts), (record.tenant, record.account)
    again = f"{record.account!r} is admitted a second time."
    require(name not in state.accounts, "admit.again", again)
    wrong = f"The next place is {next_place}, not {record.place}."
    require(int(record.place) == next_place, "admit.place", wrong)
    limit = case.evidence.policy.accounts_most
    require(next_place < limit, "admit.count", f"The policy admits {limit:,} accounts.")
    key = b""
    if isinstance(record, KeyedAdmitRecord):
        # With one key for two accounts, one could ask in the name of the other.
        shared = f"The key of {record.account!r} is another's, too."
        require(record.key not in state.keys, "admit.key_again", shared)
        key = bytes.fromhex(record.key)
        check_key(key)
        state.keys.add(record.key)
    state.accounts[name] = LoggedAccount(next_place, at, key=key)


def _begin(case: VerifierCase, state: _State, record: BeaconRecord, at: int) -> None:
    """There is one beacon, and it precedes all noise that it enters."""
    _window(case, record.window)
    require(state.beacon < 0, "beacon.again", "A second beacon of the noise is logged.")
    unused = not any(account.count for account in state.accounts.values())
    require(unused, "beacon.late", "The beacon of the noise is logged after a query.")
    state.beacon = at


def _query(case: VerifierCase, state: _State, record: QueryRecord, at: int) -> None:
    policy = case.evidence.policy
    _names(case, record)
    # 1. An admitted account, 2. its next sequence, 3. the sub-seed of its place.
    name, asker = (record.tenant, record.account), repr(record.account)
    account = state.accounts.get(name)
    if account is None:
        text = f"{asker} was not admitted to {record.tenant}."
        raise VerificationError("record.account", text)
    sequence = int(record.sequence)
    twice = f"Query {sequence} of {asker} stands twice."
    require(sequence >= account.count, "record.replayed", twice)
    skipped = f"The next query of {asker} has number {account.count}, not {sequence}."
    require(sequence == account.count, "record.sequence", skipped)
    many = f"{asker} has more than {policy.queries:,} queries."
    require(sequence < policy.queries, "record.count", many)
    number = sub_seed_number(account.place, policy.queries, sequence)
    fault = "The sub-seed is not that of the account's place."
    require(int(record.number) == number, "record.number", fault)
    # 4. The chain to its previous record, 5. the committed mechanism, 6. a fresh nonce.
    chained = hmac.compare_digest(bytes.fromhex(record.prior), account.last)
    require(chained, "record.prior", f"It does not follow the record of {asker} before.")
    same = record.mechanism == policy.tenants[record.tenant].digest
    fault = "It was answered by another mechanism than committed."
    require(same, "record.mechanism", fault)
    missing = "The policy asks for a client's nonce; there is none."
    require(bool(record.nonce) or not policy.nonces_required, "record.nonce", missing)
    # A nonce used twice is one question with two noises to choose from.
    used, twice = (*name, record.nonce), f"A nonce of {asker} comes a second time."
    require(not record.nonce or used not in state.nonces, "record.nonce", twice)
    state.nonces.add(used)
    # 7. A checkpoint of this log that covers the account's place and the beacon.
    size, root = parse_token(record.checkpoint, "record.checkpoint")
    of_this_log = size <= at and hmac.compare_digest(case.log.root(size), root)
    require(of_this_log, "record.checkpoint", "The client was shown a checkpoint of another log.")
    late = "The account's place was not logged when the client drew its nonce."
    require(size > account.admitted, "record.place", late)
    late = "The beacon was not logged when the client drew its nonce."
    require(size > state.beacon, "record.beacon", late)
    # 8. The account's own signature, where it has a key.
    if isinstance(record, SignedQueryRecord) and account.key:
        verify_request(record, bytes.fromhex(record.signature), account.key)
    elif isinstance(record, SignedQueryRecord) or account.key:
        had = "has a key and did not sign" if account.key else "has no key that could have signed"
        raise VerificationError("record.signature", f"{asker} {had} it.")
    last = leaf_hash(case.evidence.entries[at])
    state.accounts[name] = replace(account, count=sequence + 1, last=last)


def _window(case: VerifierCase, window: str) -> None:
    fault = f"A record of the window {window[:60]!r} is in this one."
    require(window == case.evidence.open.window, "record.window", fault)


def _names(case: VerifierCase, record: AdmitRecord | QueryRecord) -> None:
    _window(case, record.window)
    unknown = f"There is no tenant {record.tenant[:60]!r} in the policy."
    require(record.tenant in case.evidence.policy.tenants, "record.tenant", unknown)


# Checks that neither side chose a noise alone, and that no account's queries were invented.


def beacon(case: VerifierCase) -> str:
    """Check that the noise depends on a public value drawn after the provider's commitment."""
    trust = case.trusted("nothing says which beacon entered the noise")
    logged = case.evidence.beacon
    # 1. There is one, the verifier knows it, and each client drew a nonce.
    if logged is None:
        raise NotCheckedError(
            "the log holds no beacon of the noise, so that the provider may have chosen it",
            needed=True,
        )
    bare = sum(not record.nonce for _, record in case.evidence.queries)
    if bare:
        raise NotCheckedError(
            f"{bare:,} queries carry no nonce of their client: the provider may have known their"
            " noise when it drew its secret",
            needed=True,
        )
    # Without the verifier's own value, the log's is the provider's word.
    if not trust.noise_beacon:
        raise NotCheckedError(
            "the trust file names no beacon of the noise (noise_beacon), so that the provider may"
            " have chosen it",
            needed=True,
        )
    at, record = logged
    fault = "The noise was made of another beacon than the trust file's."
    require(bytes.fromhex(record.value) == trust.noise_beacon, "beacon.value", fault)
    # 2. Evidence that it was unknown when the provider committed to its secret.
    return f"{record.value[:16]}… ({record.source}), {_unknown(case, trust, at)}"


def _unknown(case: VerifierCase, trust: Trust, at: int) -> str:
    """Return the evidence that the beacon was unknown when the window was opened."""
    if trust.noise_open:
        size, root = parse_token(trust.noise_open, "beacon.open")
        same = 1 <= size <= at and hmac.compare_digest(case.log.root(size), root)
        fault = "The window was opened otherwise when the beacon was drawn."
        require(same, "beacon.open", fault)
        return "drawn after the opening was shown"
    data = case.evidence.bundle.files["log/open.checkpoint"]
    # The earliest time that each witness states; a plain key states none.
    stated: dict[str, int] = {}
    for name, time in open_checkpoint(data, trust.notes).times:
        if time is not None:
            stated[name] = min(time, stated.get(name, time))
    # Without an earlier opening, a quorum's times must precede the beacon's.
    if not (trust.noise_time and trust.notes.quorum):
        raise NotCheckedError(
            "nothing says that the beacon was unknown when the window was opened: the trust file"
            " has neither the earlier opening (noise_open) nor a time (noise_time) with a quorum of"
            " witnesses",
            needed=True,
        )
    if len(stated) < trust.notes.quorum:
        raise NotCheckedError(
            f"{len(stated):,} of the witnesses say when they signed the opening, and the quorum is"
            f" {trust.notes.quorum:,}: a plain key states no time",
            needed=True,
        )
    # The time at which the quorum was complete.
    signed = sorted(stated.values())[trust.notes.quorum - 1]
    early = (
        f"Witnesses signed the opening at {signed}; the beacon was known at"
        f" {trust.noise_time}, so that the provider may have committed to noise it had seen."
    )
    require(signed < trust.noise_time, "beacon.early", early)
    return "known only after witnesses had signed the opening"


def covered(case: VerifierCase) -> str:
    """Compare the log's queries of each account with its signatures and receipts.

    An account's key in the log is the provider's word: it can log another key, and ask under that
    until it likes the account's next noise. A key that the verifier knows by itself binds.
    Without one, only the account's own count of receipts shows invented queries.
    """
    # Keys by the verifier, keys by the log, and receipts.
    pinned = {} if case.trust is None else case.trust.pins.accounts
    logged = {
        f"{record.tenant}/{record.account}": record.key
        for record in case.evidence.records
        if isinstance(record, KeyedAdmitRecord)
    }
    queries, receipts = case.evidence.queries_of, receipted(case)
    # A pinned key must be the logged one, and its account must be in the log.
    admitted = {
        f"{record.tenant}/{record.account}"
        for record in case.evidence.records
        if isinstance(record, AdmitRecord)
    }
    for name in pinned.keys() & admitted:
        fault = f"The log admits {name} without its pinned key."
        require(logged.get(name) == pinned[name], "terms.account_key", fault)
    if missing := sorted(pinned.keys() - admitted):
        raise NotCheckedError(
            f"the log admits no account {missing[0]}"
            + (f", nor {len(missing) - 1:,} others" if len(missing) > 1 else "")
            + ", whose key your terms name: another log may hold its answers (ask the account"
            " for its receipts, or correct the name in pins.accounts)",
            needed=True,
        )
    # An account without a pinned key counts its own receipts.
    for name in queries.keys() - pinned.keys():
        if 0 < receipts[name] < queries[name]:
            raise NotCheckedError(
                f"{name} hands in {receipts[name]:,} receipt{'s' * (receipts[name] > 1)}, and the"
                f" log holds {queries[name]:,} queries of it: the other"
                f" {queries[name] - receipts[name]:,} may have been invented to choose its noise",
                needed=True,
            )
    # Every query by its best evidence.
    total = queries.total()
    signed = sum(n for name, n in queries.items() if name in pinned)
    with_receipt = sum(receipts[name] for name in queries.keys() - pinned.keys())
    by_log = sum(
        n - receipts[name] for name, n in queries.items() if name in logged.keys() - pinned
    )
    neither = total - signed - with_receipt - by_log
    # The verifier's limit on queries that the provider may have invented.
    limit = None if case.trust is None else case.trust.pins.unsigned_most
    many = (
        f"{neither:,} queries have neither their account's signature nor a receipt; the trust"
        f" file allows {limit}."
    )
    require(limit is None or neither <= limit, "terms.unsigned", many)
    if limit is not None and neither + by_log > limit:
        raise NotCheckedError(
            f"{by_log:,} queries are signed by keys that the provider logged, and neither your"
            " terms (attest pin --account) nor receipts say that these are the accounts' own",
            needed=True,
        )
    return (
        f"of {total:,} queries {signed:,} are signed by keys that your terms name, {by_log:,} by"
        f" keys that the provider logged, {with_receipt:,} have a receipt, {neither:,} neither"
    )


def receipted(case: VerifierCase) -> Counter[str]:
    """Return the number of each account's queries with a receipt; :func:`kept` checks them."""
    indices = {entry: at for at, entry in enumerate(case.evidence.entries)}
    covered = set[int]()
    for data in case.receipts:
        with suppress(VerificationError, KeyError):
            covered.add(indices[Receipt.parse(data).entry])
    queries = (record for at, record in case.evidence.queries if at in covered)
    return Counter(f"{record.tenant}/{record.account}" for record in queries)


# Checks of the accounts' receipts: the log holds every answer that was receipted (M5).


def kept(case: VerifierCase) -> str:
    """Check each receipt against the log; one that contradicts it convicts the log's key.

    A receipt that does not hold in itself proves nothing: anybody can write one.
    """
    if not case.receipts:
        raise NotCheckedError("none was given, so that a dropped record would go unseen")
    signers = case.trusted("no one can say whose receipts these are").listeners
    entries = case.evidence.entries
    for number, data in enumerate(case.receipts, 1):
        try:
            # 1. The receipt holds in itself. 2. Its entry is in the log, 3. under one history.
            receipt = Receipt.parse(data)
            _, proof, signed = check_receipt(receipt, signers)
        except VerificationError as error:
            raise VerificationError(
                error.check,
                f"Receipt {number:,} of {len(case.receipts):,} does not hold in itself, which"
                f" proves nothing about the log: {error.message}",
            ) from error
        at, size = proof.index, len(entries)
        gone = f"A receipt is for entry {at:,}; the log was closed with {size:,}."
        require(at < size, "receipt.missing", gone)
        fault = f"The log has another entry {at:,} than a receipt."
        require(entries[at] == receipt.entry, "receipt.contradicted", fault)
        extends(case.log, signed.checkpoint, "receipt")
    return f"{len(case.receipts):,} receipts are in the log"


# Checks of the queries: the committed vectors, and the coalition estimated from them (R5).


def committed(case: VerifierCase) -> str:
    """Check that every vector is the one committed to, and no longer than the scale."""
    evidence = case.evidence
    # 1. Each vector opens its record's commitment. 2. None is longer than the scale.
    rows = zip(evidence.queries, evidence.vectors, evidence.blindings, strict=True)
    for number, ((_, record), vector, blinding) in enumerate(rows):
        commitment = commit(vector_opening(vector, blinding))
        same = hmac.compare_digest(commitment, bytes.fromhex(record.vector))
        fault = f"The vector of record {number:,} is not the committed one."
        require(same, "vectors.commitment", fault)
    # Exact squared lengths.
    wide = evidence.vectors.astype(np.int64)
    sizes = np.einsum("nd,nd->n", wide, wide)
    for number, (_, record) in enumerate(evidence.queries):
        short = bool(sizes[number] <= evidence.mechanism(record).scale ** 2)
        require(short, "vectors.norm", f"The vector of record {number:,} is above the scale.")
    return f"{len(evidence.vectors):,} vectors opened, none above the scale"


def coalition(case: VerifierCase) -> str:
    """Estimate the coalition again and hold it against the certificate and the policy's cap."""
    from ragwitness.attest.coalition import certificate, estimate

    evidence = case.evidence
    policy, closing = evidence.policy, evidence.close
    accounts = [(record.tenant, record.account) for _, record in evidence.queries]
    # The estimate again, to the byte, against the certificate, the close record and the cap.
    again = estimate(policy, accounts, evidence.vectors)
    size, data = again.size, evidence.bundle.files["estimate.json"]
    fault = "The certificate is not the one that the close states."
    require(sha256(data).hexdigest() == closing.certificate, "estimate.digest", fault)
    fault = "The policy's estimator gives another result on these queries."
    require(certificate(again) == data, "estimate.certificate", fault)
    fault = f"The estimate is {size}; the close states {closing.coalition}."
    require(int(closing.coalition) == size, "estimate.size", fault)
    large = f"{size} accounts ask like one; the policy declares at most {policy.k_max}."
    require(size <= policy.k_max, "estimate.cap", large)
    # Name the estimator and its parameters.
    estimator = policy.estimator
    near = f", at most {estimator.span:,} queries apart" if estimator.span else ""
    return (
        f"{size} of at most {policy.k_max} ask alike (estimator {estimator.name},"
        f" cosine {estimator.threshold:g} or more{near})"
    )
