"""Checks of what was fixed before the first query: the policy and the indexes."""

from __future__ import annotations

import hmac
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
from ragwitness.attest.verdict import NotCheckedError, extends, refuse
from ragwitness.attest.verifier.bundle_evidence import VerifierCase
from ragwitness.attest.window_log import LoggedAccount, accounts_root
from ragwitness.core.errors import VerificationError
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
    evidence = case.evidence
    found, opened = evidence.policy, evidence.open
    if found.digest != opened.policy:
        raise refuse("policy.digest", "The policy is not the one that the open record commits to.")
    if not found.window == opened.window == evidence.bundle.window:
        raise refuse("policy.window", "Policy, open record and bundle name different windows.")
    if tuple(found.tenants) != tuple(index.tenant for index in opened.indexes):
        raise refuse("policy.tenants", "Policy and open record name different tenants.")
    for index, mechanism in zip(opened.indexes, found.tenants.values(), strict=True):
        if index.mechanism != mechanism.digest:
            raise refuse(
                "policy.mechanism",
                f"The open record gives {index.tenant} another mechanism than the policy.",
            )
    if int(opened.seed_count) != found.seed_count:
        raise refuse(
            "policy.seeds",
            f"The policy needs {found.seed_count:,} sub-seeds; {opened.seed_count} are committed.",
        )
    return f"k_max {found.k_max}, {found.queries:,} queries per account, delta* {found.joint_delta}"


def label(case: VerifierCase) -> str:
    """Check that the committed noise keeps the promise to a single account.

    The paper computes its verdict from the promise; one that the noise does not keep would make
    that number worthless.
    """
    found = case.evidence.policy
    worst = 0.0
    for tenant, mechanism in found.tenants.items():
        # The exact epsilon of q answers of this noise, its table's failures taken off delta.
        if mechanism.coins:
            own = mechanism.coin_epsilon(found.delta, found.queries, found.relation)
            real = float("inf") if own is None else own
        else:
            mu = Terms.of(mechanism, 1.0, found.relation).worst_mu(found.queries)
            extra = mechanism.extra_delta(found.epsilon, found.queries)
            real = epsilon_at(found.delta - extra, mu) if found.delta > extra else float("inf")
        if real > found.epsilon:
            raise refuse(
                "policy.label",
                f"{tenant} promises an account epsilon {found.epsilon:g} at delta"
                f" {found.delta:g}; its noise gives {real:.4g}.",
            )
        worst = max(worst, real)
    return f"one account: epsilon {worst:.3g} by the noise, {found.epsilon:g} promised"


def embedder(case: VerifierCase) -> str:
    """Check that the embedder's digests are those that were committed to."""
    found = case.evidence.embedder
    if found.commitment != case.evidence.open.embedder:
        raise refuse("embedder.commitment", "The embedder is not the one that was committed to.")
    return f"{len(found.artifacts)} artifacts committed"


def indexes(case: VerifierCase) -> str:
    """Check that columns and norm proofs are those that the open record commits to."""
    evidence = case.evidence
    for place, (index, mechanism) in enumerate(
        zip(evidence.open.indexes, evidence.policy.tenants.values(), strict=False)
    ):
        if place >= len(evidence.cards):
            break
        # C_V opens to the card; the card names columns, norm proof and size.
        card, columns = evidence.cards[place], evidence.columns[place]
        data = evidence.bundle.tenant(place, "index.json")
        if index_commitment(data) != index.commitment:
            raise refuse(
                "index.commitment", f"The index of {index.tenant} is not the one committed to."
            )
        if columns.digest != card.columns:
            raise refuse("index.columns", f"The columns of {index.tenant} are others.")
        if sha256(evidence.bundle.tenant(place, "norms.bin")).hexdigest() != card.norms:
            raise refuse("index.norms", f"The norm proof of {index.tenant} is another.")
        if (card.slots, card.dimension) != (mechanism.capacity, mechanism.dimension):
            raise refuse("index.size", f"The index of {index.tenant} has another size.")
        if len(columns.chunks) != evidence.shape.chunks(card.slots):
            raise refuse("index.chunks", f"The columns of {index.tenant} cover other slots.")
    if len(evidence.cards) != len(evidence.open.indexes):
        raise refuse(
            "index.missing",
            f"{len(evidence.open.indexes)} indexes are committed to; the bundle holds"
            f" {len(evidence.cards)}.",
        )
    return (
        f"{len(evidence.cards)} committed indexes, {sum(c.slots for c in evidence.cards):,} slots"
    )


# Checks of the log: whose it is, that it is whole, and that nobody was shown another one.


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

    The checkpoint of the open was signed before the first query record, so that what the open
    record commits to was fixed by then.
    """
    evidence, log = case.evidence, case.log
    opened, closed = evidence.checkpoints
    # 1. The close covers every entry. 2. The open covers the commitments and no query.
    if closed.size != log.size:
        raise refuse(
            "log.size",
            f"The log was closed with {closed.size:,} entries; the bundle holds {log.size:,}.",
        )
    if opened.origin != closed.origin:
        raise refuse("checkpoint.origin", "Open and close are checkpoints of two logs.")
    if not hmac.compare_digest(log.root(), closed.root):
        raise refuse("log.root", "The log's entries are not those that the close was signed for.")
    # What the open record commits to was fixed before the first query.
    first = evidence.queries[0][0] if evidence.queries else log.size
    if not 1 <= opened.size <= first:
        raise refuse(
            "log.open",
            "The checkpoint of the open does not lie between open record and first query.",
        )
    if not hmac.compare_digest(log.root(opened.size), opened.root):
        raise refuse(
            "log.open_root", "The log's first entries are not those that the open was signed for."
        )
    return f"{log.size:,} entries, {len(evidence.queries):,} of them answered queries"


def seen_elsewhere(case: VerifierCase) -> str:
    """Check that checkpoints which others were shown are prefixes of this log."""
    seen = case.seen_of_window
    if not seen:
        raise NotCheckedError("no checkpoint from elsewhere was given")
    signers = case.trusted("no one can say whose checkpoints these are").listeners
    for data in seen:
        extends(case.log, open_checkpoint(data, signers).checkpoint, "log")
    return f"{len(seen):,} checkpoints from elsewhere agree"


_YEAR_9999 = 253_370_764_800  # POSIX seconds; later times cannot be written


def _note(case: VerifierCase, name: str) -> str:
    trust = case.trusted("nothing says whose log this is")
    signed = open_checkpoint(case.evidence.bundle.files[f"log/{name}.checkpoint"], trust.notes)
    witnesses = len({who for who, _ in signed.times})
    watched = f" and {witnesses} of its witnesses" if witnesses else "; no witness"
    # An opening that was witnessed only at the close says nothing of what came first.
    if times := [time for _, time in signed.times if time is not None and time < _YEAR_9999]:
        watched += f", first at {datetime.fromtimestamp(min(times), UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"signed by {trust.notes.origin}{watched}"


# Checks of the records, one after the other, as the log has them (R2).


@dataclass
class _State:
    """Where the replay stands."""

    accounts: dict[tuple[str, str], LoggedAccount] = field(default_factory=dict)
    beacon: int = -1
    keys: set[str] = field(default_factory=set)
    nonces: set[tuple[str, str, str]] = field(default_factory=set)


def replay(case: VerifierCase) -> str:
    """Check every record against those before it and against the policy."""
    evidence, state = case.evidence, _State()
    for at, record in enumerate(evidence.records):
        try:
            if isinstance(record, AdmitRecord):
                _admit(case, state, record, at)
            elif isinstance(record, QueryRecord):
                _query(case, state, record, at)
            elif isinstance(record, BeaconRecord):
                _begin(case, state, at)
        except VerificationError as error:
            raise refuse(error.check, f"Entry {at:,} of the log: {error.message}") from error
    signed = sum(isinstance(record, SignedQueryRecord) for _, record in evidence.queries)
    said = f"; {signed:,} of them signed under the key that is logged" if signed else ""
    return f"{len(evidence.queries):,} queries of {len(state.accounts):,} accounts{said}"


def close(case: VerifierCase) -> str:
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
    # The map of accounts again, from the records themselves.
    root = accounts_root(found.window, _counted(case))
    if not hmac.compare_digest(root, bytes.fromhex(found.map_root)):
        raise refuse("close.map", "The map of accounts does not count what the log holds.")
    return f"map of the accounts recomputed: {root.hex()[:16]}…"


def _counted(case: VerifierCase) -> dict[tuple[str, str], LoggedAccount]:
    found: dict[tuple[str, str], LoggedAccount] = {}
    for at, record in case.evidence.queries:
        who = (record.tenant, record.account)
        old = found.get(who, LoggedAccount(0, 0))
        last = leaf_hash(case.evidence.entries[at])
        found[who] = replace(old, count=old.count + 1, last=last)
    return found


def _admit(case: VerifierCase, state: _State, record: AdmitRecord, at: int) -> None:
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
    key = b""
    if isinstance(record, KeyedAdmitRecord):
        # A key for two accounts: one of them could ask in the name of the other.
        if record.key in state.keys:
            raise refuse("admit.key_again", f"The key of {record.account!r} is another's, too.")
        key = bytes.fromhex(record.key)
        check_key(key)
        state.keys.add(record.key)
    state.accounts[who] = LoggedAccount(place, at, key=key)


def _begin(case: VerifierCase, state: _State, at: int) -> None:
    """The beacon stands once, and before all noise that it enters."""
    found = case.evidence.beacon
    assert found is not None  # noqa: S101  # this is one
    _window(case, found[1].window)
    if state.beacon >= 0:
        raise refuse("beacon.again", "A second beacon of the noise is logged.")
    if any(account.count for account in state.accounts.values()):
        raise refuse("beacon.late", "The beacon of the noise is logged after a query.")
    state.beacon = at


def _query(case: VerifierCase, state: _State, record: QueryRecord, at: int) -> None:
    policy = case.evidence.policy
    _window(case, record.window)
    _tenant(case, record.tenant)
    # 1. An admitted account, 2. its next sequence, 3. the sub-seed of its place,
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
    if int(record.number) != sub_seed_number(account.place, policy.queries, sequence):
        raise refuse("record.number", "The sub-seed is not that of the account's place.")
    # 4. the chain to its record before, 5. the committed mechanism, 6. a fresh nonce,
    if not hmac.compare_digest(bytes.fromhex(record.prior), account.last):
        raise refuse("record.prior", f"It does not follow the record of {record.account!r} before.")
    if record.mechanism != policy.tenants[record.tenant].digest:
        raise refuse("record.mechanism", "It was answered by another mechanism than committed.")
    said = (*who, record.nonce)
    if not record.nonce and policy.nonces_required:
        raise refuse("record.nonce", "The policy asks for a client's nonce; there is none.")
    # One that comes twice is one question answered twice, with two noises to choose from.
    if record.nonce and said in state.nonces:
        raise refuse("record.nonce", f"A nonce of {record.account!r} comes a second time.")
    state.nonces.add(said)
    # 7. and a checkpoint that covers its place. Then the state moves on.
    _shown(case, state, record, account, at)
    # 8. What the account itself has signed.
    if isinstance(record, SignedQueryRecord) and account.key:
        verify_request(record, bytes.fromhex(record.signature), account.key)
    elif isinstance(record, SignedQueryRecord) or account.key:
        had = "has a key and did not sign" if account.key else "has no key that could have signed"
        raise refuse("record.signature", f"{record.account!r} {had} it.")
    last = leaf_hash(case.evidence.entries[at])
    state.accounts[who] = replace(account, count=sequence + 1, last=last)


def _shown(
    case: VerifierCase, state: _State, record: QueryRecord, account: LoggedAccount, at: int
) -> None:
    """The checkpoint that the client named is of this log, and covers its account's place."""
    size, root = parse_token(record.checkpoint, "record.checkpoint")
    if size > at or not hmac.compare_digest(case.log.root(size), root):
        raise refuse("record.checkpoint", "The client was shown a checkpoint of another log.")
    if size <= account.admitted:
        raise refuse(
            "record.place", "The account's place was not logged when the client drew its nonce."
        )
    if size <= state.beacon:
        raise refuse("record.beacon", "The beacon was not logged when the client drew its nonce.")


def _window(case: VerifierCase, window: str) -> None:
    if window != case.evidence.open.window:
        raise refuse("record.window", f"A record of the window {window[:60]!r} stands in this one.")


def _tenant(case: VerifierCase, tenant: str) -> None:
    if tenant not in case.evidence.policy.tenants:
        raise refuse("record.tenant", f"There is no tenant {tenant[:60]!r} in the policy.")


# Checks that nobody chose a noise alone, and that nobody's queries were invented.


def beacon(case: VerifierCase) -> str:
    """Check that the noise is made of a public value that came after the provider's commitment."""
    trust = case.trusted("nothing says which beacon entered the noise")
    found = case.evidence.beacon
    # 1. There is one, the verifier knows it, and each client drew a nonce beside it.
    if found is None:
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
    if not trust.noise_beacon:
        raise NotCheckedError(
            "the trust file names no beacon of the noise (noise_beacon), so that the provider may"
            " have chosen it",
            needed=True,
        )
    at, record = found
    if bytes.fromhex(record.value) != trust.noise_beacon:
        raise refuse("beacon.value", "The noise was made of another beacon than the trust file's.")
    # 2. It was not known when the provider committed to its secret, as far as can be seen.
    return f"{record.value[:16]}… ({record.source}), {_unknown(case, trust, at)}"


def _unknown(case: VerifierCase, trust: Trust, at: int) -> str:
    """Say why the beacon was not known when the window was opened."""
    if trust.noise_open:
        size, root = parse_token(trust.noise_open, "beacon.open")
        if not 1 <= size <= at or not hmac.compare_digest(case.log.root(size), root):
            raise refuse(
                "beacon.open", "The window was opened otherwise when the beacon was drawn."
            )
        return "drawn after the opening was shown"
    data = case.evidence.bundle.files["log/open.checkpoint"]
    # By each witness the earliest time that it states; one without a clock states none.
    stated: dict[str, int] = {}
    for who, time in open_checkpoint(data, trust.notes).times:
        if time is not None:
            stated[who] = min(time, stated.get(who, time))
    if not (trust.noise_time and trust.notes.quorum):
        raise NotCheckedError(
            "nothing says that the beacon was unknown when the window was opened: the trust file"
            " names neither the opening that was shown before (noise_open) nor a time (noise_time)"
            " beside a quorum of witnesses",
            needed=True,
        )
    if len(stated) < trust.notes.quorum:
        raise NotCheckedError(
            f"{len(stated):,} of the witnesses say when they signed the opening, and the quorum is"
            f" {trust.notes.quorum:,}: a plain key states no time",
            needed=True,
        )
    signed = sorted(stated.values())[trust.notes.quorum - 1]
    if signed >= trust.noise_time:
        raise refuse(
            "beacon.early",
            f"Witnesses signed the opening at {signed}; the beacon was known at"
            f" {trust.noise_time}, so that the provider may have committed to noise it had seen.",
        )
    return "known only after witnesses had signed the opening"


def covered(case: VerifierCase) -> str:
    """Compare what accounts have signed, or hold receipts of, with what the log has of them.

    An account's key in the log is the provider's word: it can log one of its own, and ask under it
    until the account's next noise is one that it likes. A key that the verifier knows by itself
    binds; without one, only the account's own count of receipts shows what was invented.
    """
    pinned = {} if case.trust is None else case.trust.pins.accounts
    logged = {
        f"{one.tenant}/{one.account}": one.key
        for one in case.evidence.records
        if isinstance(one, KeyedAdmitRecord)
    }
    asked = Counter(f"{one.tenant}/{one.account}" for _, one in case.evidence.queries)
    shown = receipted(case)
    for name in pinned.keys() & asked.keys():
        if logged.get(name) != pinned[name]:
            raise refuse("terms.account_key", f"The log admits {name} without its pinned key.")
    for name in asked.keys() - pinned.keys():
        if 0 < shown[name] < asked[name]:
            raise NotCheckedError(
                f"{name} hands in {shown[name]:,} receipt{'s' * (shown[name] > 1)}, and the log"
                f" holds {asked[name]:,} queries of it: the other {asked[name] - shown[name]:,} may"
                " have been invented to choose its noise",
                needed=True,
            )
    total = asked.total()
    signed = sum(n for name, n in asked.items() if name in pinned)
    with_receipt = sum(shown[name] for name in asked.keys() - pinned.keys())
    by_log = sum(n - shown[name] for name, n in asked.items() if name in logged.keys() - pinned)
    neither = total - signed - with_receipt - by_log
    most = None if case.trust is None else case.trust.pins.unsigned_most
    if most is not None and neither > most:
        raise refuse(
            "terms.unsigned",
            f"{neither:,} queries have neither their account's signature nor a receipt; the trust"
            f" file allows {most:,}.",
        )
    if most is not None and neither + by_log > most:
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
    """Return how many queries of each account a receipt was handed in for."""
    # The log's places of which a receipt was handed in; :func:`kept` checks them.
    places = {entry: at for at, entry in enumerate(case.evidence.entries)}
    held = set[int]()
    for data in case.receipts:
        with suppress(VerificationError, KeyError):
            held.add(places[Receipt.parse(data).entry])
    return Counter(f"{one.tenant}/{one.account}" for at, one in case.evidence.queries if at in held)


# Checks of the accounts' receipts: what was promised at the answer stands in the log (M5).


def kept(case: VerifierCase) -> str:
    """Check each receipt against the log; one that contradicts it convicts the log's key.

    One that does not hold in itself says nothing of the provider: anybody can have written it.
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
            raise refuse(
                error.check,
                f"Receipt {number:,} of {len(case.receipts):,} does not hold in itself, which tells"
                f" of who handed it in, not of the log: {error.message}",
            ) from error
        if proof.index >= len(entries):
            raise refuse(
                "receipt.missing",
                f"A receipt is for entry {proof.index:,}; the log was closed with"
                f" {len(entries):,}.",
            )
        if entries[proof.index] != receipt.entry:
            raise refuse(
                "receipt.contradicted", f"The log has another entry {proof.index:,} than a receipt."
            )
        extends(case.log, signed.checkpoint, "receipt")
    return f"{len(case.receipts):,} receipts stand in the log"


# Checks of what was asked: the committed vectors, and the coalition estimated from them (R5).


def committed(case: VerifierCase) -> str:
    """Check that every vector is the one committed to, and no longer than the scale."""
    evidence = case.evidence
    # 1. Each vector opens its record's commitment. 2. None is longer than the scale.
    rows = zip(evidence.queries, evidence.vectors, evidence.blindings, strict=True)
    for place, ((_, record), vector, blinding) in enumerate(rows):
        found = commit(vector_opening(vector, blinding))
        if not hmac.compare_digest(found, bytes.fromhex(record.vector)):
            raise refuse(
                "vectors.commitment", f"The vector of record {place:,} is not the committed one."
            )
    wide = evidence.vectors.astype(np.int64)
    sizes = np.einsum("nd,nd->n", wide, wide)
    for place, (_, record) in enumerate(evidence.queries):
        if sizes[place] > evidence.mechanism(record).scale ** 2:
            raise refuse("vectors.norm", f"The vector of record {place:,} is above the scale.")
    return f"{len(evidence.vectors):,} vectors opened, none above the scale"


def coalition(case: VerifierCase) -> str:
    """Estimate the coalition again and hold it against the certificate and the policy's cap."""
    from ragwitness.attest.coalition import certificate, estimate

    evidence = case.evidence
    policy, said = evidence.policy, evidence.close
    asked = [(record.tenant, record.account) for _, record in evidence.queries]
    # The estimate again, to the byte, against the certificate, the close record and the cap.
    found = estimate(policy, asked, evidence.vectors)
    data = evidence.bundle.files["estimate.json"]
    if sha256(data).hexdigest() != said.certificate:
        raise refuse("estimate.digest", "The certificate is not the one that the close states.")
    if certificate(found) != data:
        raise refuse(
            "estimate.certificate", "The policy's estimator gives another result on these queries."
        )
    if int(said.coalition) != found.size:
        raise refuse(
            "estimate.size", f"The estimate is {found.size}; the close states {said.coalition}."
        )
    if found.size > policy.k_max:
        raise refuse(
            "estimate.cap",
            f"{found.size} accounts ask like one; the policy declares at most {policy.k_max}.",
        )
    # Which queries were compared.
    used = policy.estimator
    near = f", at most {used.span:,} queries apart" if used.span else ""
    apart = "" if used.together else "; each tenant by itself, as version 1 has it"
    return (
        f"{found.size} of at most {policy.k_max} ask alike (estimator {used.name},"
        f" cosine {used.threshold:g} or more{near}{apart})"
    )
