"""``ragwitness attest challenge`` and ``pin``: what a verifier asks for, and what it accepts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.attest import key_at, print_values, signers
from ragwitness.cli.options import AsJson, Prompt, Trusted
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import read_file, replace_file
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.crypto.keys import KeyKind

if TYPE_CHECKING:
    from ragwitness.attest.challenge import Challenge
    from ragwitness.attest.trust import PolicyBounds, Trust
    from ragwitness.crypto.notes import Checkpoint, Signers
    from ragwitness.evidence.log_client import HttpPrefix

_NOTE = 1 << 18
_LOG = 512 << 20


def challenge(
    public: Annotated[Path, PathRole.READS, Arg()],
    output: Annotated[Path, PathRole.WRITES, Opt("--out", short="-o")],
    trust: Annotated[Path | None, PathRole.KEEPS] = None,
    beacon: Annotated[str | None, Opt(shown="drawn here")] = None,
    records: int | None = None,
    share: float | None = None,
    miss: float = 0.05,
    everything: Annotated[bool, Opt("--all")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw the records to prove.

    The provider could not foresee them. The window must be closed before the beacon is known: then
    the close fixes every record.

    Args:
        public: The public folder of the closed window, or a copy of it.
        output: The file for the provider, to be made.
        trust: Your own trust.json. The close is checked by it, and the beacon, the number of
            records and the close are written into it.
        beacon: A public random value in hex, drawn after the close.
        records: The number of records to prove.
        share: Take as many records as find this share of bad ones, e.g. 0.05.
        miss: The probability with which --share may be missed.
        everything: Take all records (Mode A of the paper).
    """
    from ragwitness.attest.challenge import make_challenge, records_for
    from ragwitness.attest.commitments import checkpoint_token
    from ragwitness.attest.trust import parse_trust

    # One way to say how many: a number, a share that is to be found, or all (Mode A of the paper).
    if (records is not None) + (share is not None) + everything != 1:
        raise InputError("Say how many records to prove.", "Give --records, --share or --all.")
    if output.exists():
        raise InputError(f"{output} exists; it is not overwritten.", "Choose another -o.")
    knowledge = None if trust is None else parse_trust(read_file(trust, 1 << 20))
    # Step 1: the close fixes the records. A challenge on an open window could be dodged.
    close, population = _close(public, knowledge)
    # Step 2: how many. For a share of bad records, as many as miss all of them with probability
    # --miss at most.
    if everything:
        count = population
    elif share is not None:
        count = records_for(population, share, miss)
    else:
        count = records or 0
    # Step 3: which ones. They follow from beacon, close and number, so anybody can draw them again.
    drawn = make_challenge(_beacon(beacon), close, population, count)
    token = checkpoint_token(close.size, close.root)
    if trust is not None and knowledge is not None:
        # First: a challenge that nobody remembers is worth nothing.
        _remember(
            trust, knowledge, replace(knowledge, beacon=drawn.beacon, records=count, close=token)
        )
    replace_file(output, drawn.encode())
    _print(drawn, token, as_json=as_json)
    if knowledge is not None and not knowledge.pins.on_policy and not as_json:
        typer.echo(
            f"{trust} pins no policy yet, so that nothing passes by it: ragwitness attest pin."
        )


def _print(made: Challenge, close: str, *, as_json: bool) -> None:
    import json

    from ragwitness.attest.verifier import sampling_of
    from ragwitness.evidence.result import sampling_line

    # The chances that these records include a bad one.
    sampling = sampling_of(made.population, len(made.records))
    if as_json:
        values = {
            "beacon": made.beacon.hex(),
            "close": close,
            "population": made.population,
            "records": list(made.records),
            "detection": [{"bad": bad, "chance": chance} for bad, chance in sampling.detection],
        }
        typer.echo(json.dumps(values, indent=2))
        return
    typer.echo(f"beacon  {made.beacon.hex()}\nclose   {close}")
    typer.echo(sampling_line(sampling).replace("were proved", "are to be proved"))


def _beacon(text: str | None) -> bytes:
    if text is None:
        return os.urandom(32)
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise InputError(
            f"The beacon {text[:40]!r} is no hex.", "Give 32 random bytes as 64 hex digits."
        ) from error


def _remember(path: Path, known: Trust, drawn: Trust) -> None:
    """Write a challenge into a trust file that has none, or this one.

    Raises:
        VerificationError: ``challenge.close``; the log was closed otherwise when it was drawn.
        InputError: Another was drawn before.
    """
    # A close that changed since the first challenge is two histories of one log: evidence, not a
    # mistake.
    if known.close not in ("", drawn.close):
        raise VerificationError(
            "challenge.close",
            f"The log was closed with {known.close!r} when {path} got its challenge, and now with"
            f" {drawn.close!r}: it has two histories.",
        )
    if known.beacon and known != drawn:
        raise InputError(
            f"{path} holds the beacon of a challenge; a window has one.",
            f"The same is made again by --beacon {known.beacon.hex()} --records {known.records}.",
        )
    replace_file(path, drawn.encode())


def _close(public: Path, trust: Trust | None) -> tuple[Checkpoint, int]:
    """Return the closing checkpoint and the number of query records, checked against each other.

    Raises:
        InputError: The window is not closed, or a file is missing.
        VerificationError: The checkpoint is not of this log, or not by the trusted keys.
    """
    from ragwitness.crypto.entries import read_entries
    from ragwitness.crypto.merkle import MerkleLog
    from ragwitness.crypto.notes import Checkpoint, Note, open_checkpoint
    from ragwitness.crypto.records import CloseRecord, QueryRecord, decode

    path = public / "close.checkpoint"
    if not path.exists():
        raise InputError(
            f"{public} holds no close.checkpoint: the window is open, or this is another folder.",
            "Close it first (ragwitness attest close), and give its public folder.",
        )
    data = read_file(path, _NOTE)
    if trust is not None:
        close = open_checkpoint(data, trust.notes).checkpoint
    else:
        close = Checkpoint.parse(Note.parse(data).text)
    entries = list(read_entries(read_file(public / "log" / "entries.bin", _LOG)))
    # The whole log is rebuilt: a root that somebody names is not the root of these records.
    log = MerkleLog()
    log.extend(entries)
    if (log.size, log.root()) != (close.size, close.root):
        raise VerificationError("log.root", f"The log in {public} is not the one that was closed.")
    records = list(map(decode, entries))
    if not records or not isinstance(records[-1], CloseRecord):
        raise VerificationError("close.last", f"The log in {public} ends with no close record.")
    # Only queries can be challenged; the opening and the closing record are read in any case.
    return close, sum(isinstance(record, QueryRecord) for record in records)


# ``ragwitness attest pin``: which policy a verifier accepts, written into its trust file.


def pin(
    public: Annotated[Path, PathRole.READS, Arg()],
    trust: Annotated[Path, PathRole.KEEPS],
    this: Annotated[bool, Opt("--policy")] = False,
    epsilon_most: float | None = None,
    delta_most: float | None = None,
    k_max_least: int | None = None,
    threshold_most: float | None = None,
    span_least: Annotated[int, Opt(shown="all")] = 0,
    unsigned_most: Annotated[int | None, Opt(shown="any number")] = None,
    account: Annotated[list[str] | None, Opt(metavar="TENANT/NAME=KEY")] = None,
    log_key: Annotated[list[str] | None, Opt(metavar="KEY")] = None,
    embedder: Annotated[str | None, PathRole.ADDRESS] = None,
    prompt: Prompt = None,
    as_json: AsJson = False,
) -> None:
    """Say which policy you accept.

    It shows the promise of the window's policy and its weak points. --policy accepts this one; the
    four bounds accept every policy that keeps them, of this and later windows. Without
    either nothing is written, and `ragwitness verify` gives no PASS: the provider wrote the policy.

    Args:
        public: The public folder of the window, or a copy.
        trust: Your own trust.json, into which your terms are written; --log-key makes one.
        this: Accept this window's policy as it is, by its digest.
        epsilon_most: The largest joint epsilon, of k_max accounts with all their queries.
        delta_most: The largest delta* of it.
        k_max_least: The smallest k_max.
        threshold_most: The largest cosine from which two queries join their accounts.
        span_least: The shortest span in which queries are compared.
        unsigned_most: The most queries without a receipt or the signature of a key that --account
            names, which the provider may have invented.
        account: The public key of an account, as the account told you. May be repeated.
        log_key: The public key of the log, as you know it from elsewhere, where --trust is not
            there yet. May be repeated.
        embedder: The embedder that must have been committed to, from your own copy.
    """
    from ragwitness.attest.commitments import CommittedEmbedder
    from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
    from ragwitness.attest.trust import (
        Trust,
        parse_pins,
        parse_trust,
        policy_terms,
        weak_points,
        worth_of,
    )
    from ragwitness.cli.attest import print_values
    from ragwitness.cli.attest_indexes import artifacts
    from ragwitness.crypto.keys import PublicKey
    from ragwitness.crypto.notes import Signers
    from ragwitness.privacy.ranges import whole

    new = log_key is not None and not trust.exists()
    if log_key is not None and not new:
        raise InputError(
            f"{trust} names the keys of a log.", "Leave --log-key out, or name another."
        )
    again = "Make it from the log's public key as you know it: --log-key KEY"
    knowledge = (
        Trust(Signers(tuple(map(PublicKey.parse, log_key or ()))))
        if new
        else parse_trust(read_file(trust, _NOTE, again))
    )
    policy = WindowPolicy.parse(read_file(public / "policy.json", MOST_BYTES))
    bounds = _bounds(epsilon_most, delta_most, k_max_least, threshold_most, span_least)
    # Options are added to the file's pins; no pin is removed.
    pins = knowledge.pins
    if this:
        pins = replace(pins, policy=policy.digest)
    if bounds is not None:
        pins = replace(pins, bounds=bounds)
    if embedder is not None:
        committed = CommittedEmbedder(artifacts(embedder, prompt), bytes(32))
        pins = replace(pins, embedder=committed.digest)
    if unsigned_most is not None:
        whole("unsigned_most", unsigned_most, 0)
        pins = replace(pins, unsigned_most=unsigned_most)
    if account:
        named = dict(pair.rpartition("=")[::2] for pair in account)
        pins = parse_pins(pins.plain() | {"accounts": {**pins.accounts, **named}})
    if new or pins != knowledge.pins:
        replace_file(trust, replace(knowledge, pins=pins).encode())
    values: dict[str, object] = {
        "window": policy.window,
        "policy": policy.digest,
        "promises": policy_terms(policy),
        "worth": worth_of(policy),
        "weak": weak_points(policy) or "nothing",
        "pinned": pins.plain() or "nothing: give --policy, or the bounds",
    }
    if pins.bounds is not None:
        values["breaks"] = [text for _, text in pins.bounds.broken(policy)] or "nothing"
    print_values(values, as_json=as_json)


def _bounds(
    epsilon: float | None,
    delta: float | None,
    k_max: int | None,
    threshold: float | None,
    span: int,
) -> PolicyBounds | None:
    from ragwitness.attest.trust import PolicyBounds

    if epsilon is None and delta is None and k_max is None and threshold is None and not span:
        return None
    if epsilon is None or delta is None or k_max is None or threshold is None:
        raise InputError(
            "Four bounds belong together; one alone leaves the others to the provider.",
            "Give --epsilon-most, --delta-most, --k-max-least and --threshold-most.",
        )
    return PolicyBounds(epsilon, delta, k_max, threshold, span)


# ``ragwitness attest beacon`` and ``begin``: a public value enters the noise before any answer.


_LONGEST_TRUST = 1 << 20


def beacon(
    public: Annotated[Path, PathRole.READS, Arg()],
    trust: Annotated[Path, PathRole.KEEPS],
    output: Annotated[Path, PathRole.WRITES, Opt("--out", short="-o")],
    value: Annotated[str | None, Opt(shown="drawn here")] = None,
    source: str = "drawn by the auditor",
    as_json: AsJson = False,
) -> None:
    """Draw the value that enters the noise of a window.

    The provider has committed to its secret, so that neither of you chooses the noise alone. It
    must be logged (ragwitness attest begin) before the first query is answered.

    Args:
        public: The public folder of the opened window, or a copy of it.
        trust: Your own trust.json. The opening is checked by it, and the value and the opening are
            written into it.
        output: The file for the provider, to be made.
        value: A public random value that came after the opening: 64 lower-case hex digits.
        source: Where the value comes from, e.g. the round of a public beacon.
    """
    import os
    from dataclasses import replace

    from pydantic import ValidationError

    from ragwitness.attest.commitments import checkpoint_token
    from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
    from ragwitness.attest.trust import parse_trust
    from ragwitness.crypto.notes import MAX_NOTE, open_checkpoint
    from ragwitness.crypto.records import BeaconRecord, encode

    if output.exists():
        raise InputError(f"{output} exists; it is not overwritten.", "Choose another -o.")
    knowledge = parse_trust(read_file(trust, _LONGEST_TRUST))
    # Step 1: the opening, signed: what the provider committed to before this value was drawn.
    opened = open_checkpoint(read_file(public / "open.checkpoint", MAX_NOTE), knowledge.listeners)
    token = checkpoint_token(opened.checkpoint.size, opened.checkpoint.root)
    window = WindowPolicy.parse(read_file(public / "policy.json", MOST_BYTES)).window
    # Step 2: the value, in its one spelling.
    drawn = os.urandom(32).hex() if value is None else value
    try:
        record = BeaconRecord(window=window, value=drawn, source=source)
    except ValidationError as error:
        raise InputError(
            f"{drawn[:80]!r} is no beacon, or {source[:80]!r} no source of one.",
            "Give 32 bytes as 64 lower-case hex digits, and a source of 1 to 256 characters.",
        ) from error
    # Step 3: into the trust file first: a value that nobody remembers binds nobody.
    if knowledge.noise_beacon and knowledge.noise_beacon.hex() != drawn:
        raise InputError(
            f"{trust} holds another beacon of the noise; a window has one.",
            f"The same is made again by --value {knowledge.noise_beacon.hex()}.",
        )
    replace_file(
        trust, replace(knowledge, noise_beacon=bytes.fromhex(drawn), noise_open=token).encode()
    )
    replace_file(output, encode(record))
    print_values(
        {"window": window, "beacon": drawn, "source": source, "opening": token}, as_json=as_json
    )


# ``ragwitness attest monitor``: does a log still hold what it showed before?


_NOTE_BYTES = 1 << 18


def monitor(
    public: Annotated[str, PathRole.READS, Arg()],
    trust: Trusted,
    state: Annotated[Path, PathRole.KEEPS],
    cosign: Annotated[Path | None, PathRole.KEEPS] = None,
    name: str | None = None,
    entries: bool = False,
    account: Annotated[str | None, Opt(metavar="TENANT/NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a log only grew.

    It compares the log with the last checkpoint in --state. With --cosign you sign, as a witness,
    that it holds; then --state holds the checkpoint with your signature, for the provider to
    publish. It exits with 3 if the log was changed (log.rolled_back, log.split_view,
    log.consistency); then --state and the checkpoint, both signed by the log, are the
    evidence.

    Args:
        public: The public folder of a window, a copy of it, or the URL at which it is served.
        state: The file in which you keep the last checkpoint that you accepted, or a copy of one
            that somebody else was shown: the log must have grown from it.
        cosign: Your key as a witness; it is made if --name is given.
        name: Your name as a witness, for a new key.
        account: Count the queries that the log has of this account, 0 included. All records are
            read.
        entries: Read the new records too, and check that they are those whose hashes are logged.
    """
    import time

    from ragwitness.attest.window_log import count_queries, watch

    keys = signers(trust, witnessed=cosign is None)
    with _prefix(public) as (prefix, note):
        # The usual round: the newest checkpoint against the last one that was accepted.
        stored = read_file(state, _NOTE_BYTES) if state.exists() else None
        key = key_at(cosign, name, KeyKind.COSIGNATURE) if cosign is not None else None
        step = watch(prefix, note, keys, stored, key, int(time.time()), entries=entries)
        counted = None
        if account is not None:
            tenant, _, who_asks = account.partition("/")
            counted = count_queries(prefix, step.new.checkpoint, tenant, who_asks)
    # Kept only after every check has held: a state that follows a rolled-back log would forgive it.
    replace_file(state, step.note)
    values: dict[str, object] = {
        "holds": True,
        "log": step.new.checkpoint.origin,
        "before": step.old.size if step.old else None,
        "now": step.new.checkpoint.size,
        "witness": key.public.text if key else None,
    }
    if counted is not None:
        values |= {"account": account, "admitted": counted[0], "queries": counted[1]}
    print_values(values, as_json=as_json)


@contextmanager
def _prefix(place: str) -> Iterator[tuple[Path | HttpPrefix, bytes]]:
    """Yield what reads a log's tiles, and the checkpoint that the log shows."""
    if "://" not in place:
        public = Path(place)
        # Windows of earlier versions have their tiles beside the entries.
        prefix = public if (public / "tile").is_dir() else public / "log"
        yield prefix, read_file(public / "checkpoint", _NOTE_BYTES)
        return
    from ragwitness.evidence.log_client import HttpPrefix

    with HttpPrefix(place) as remote:
        try:
            note = remote("checkpoint", _NOTE_BYTES + 1)
        except FileNotFoundError:
            raise InputError(
                f"There is no checkpoint under {place}.",
                "Give the URL at which a window's public folder is served.",
            ) from None
        yield remote, note


# ``ragwitness attest receipt``: what an account keeps.


def check(
    file: Annotated[Path, PathRole.READS, Arg()],
    trust: Trusted,
    query: str | None = None,
    nonce: str | None = None,
    checkpoint: str | None = None,
    account: str | None = None,
    sequence: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Check a receipt offline.

    It must be signed, in the log, and of this query, vector and answer. Give all that you know: the
    noise depends on query, nonce, checkpoint, account and sequence. A provider that changed one of
    them, or asked in your name, could have chosen it. It exits with 3 and the name of the
    check that fails.

    Args:
        file: The receipt.
        query: The query as you sent it; - reads standard input.
        nonce: The nonce that you sent.
        checkpoint: The checkpoint that you named, as text: its size and root.
        account: Your name as an account.
        sequence: The number of queries that you had sent before.
    """
    from ragwitness.attest.receipts import MOST_RECEIPT
    from ragwitness.core.files import read_file

    data = read_file(file, MOST_RECEIPT)
    keys = signers(trust)
    expected = {"account": account, "nonce": nonce, "checkpoint": checkpoint, "sequence": sequence}
    facts = _query(data, keys, query)
    # Compare the user's values with the signed ones: they determine the noise.
    for field, value in expected.items():
        if value is None:
            continue
        logged = facts[field]
        if logged != value:
            fault = f"The record is of another {field} than yours."
            if field == "sequence":
                fault = f"You had sent {value:,} queries before; the log has {logged:,} of yours."
            raise VerificationError(f"receipt.{field}", fault)
    print_values({"holds": True, **facts}, as_json=as_json)


def _query(data: bytes, who: Signers, query: str | None) -> dict[str, object]:
    from ragwitness.attest.receipts import Receipt, check_receipt
    from ragwitness.crypto.records import SignedQueryRecord

    receipt = Receipt.parse(data)
    # Signature, inclusion in the log and the record's own digests; then the query, which only the
    # user knows.
    record, proof, signed = check_receipt(receipt, who)
    _compare(receipt.opened.query, query)
    return {
        "window": record.window,
        "tenant": record.tenant,
        "account": record.account,
        "sequence": int(record.sequence),
        "number": int(record.number),
        "nonce": record.nonce,
        "checkpoint": record.checkpoint,
        "signed": isinstance(record, SignedQueryRecord),
        "ids": list(receipt.opened.ids),
        "index": proof.index,
        "log_size": signed.checkpoint.size,
        "witnesses": [name for name, _ in signed.times],
    }


def _compare(digest: bytes, query: str | None) -> None:
    """Compare the receipt's query with the account's."""
    import sys
    from hashlib import sha256

    if query is not None:
        text = sys.stdin.read() if query == "-" else query
        if sha256(text.encode()).digest() != digest:
            raise VerificationError("receipt.query", "The receipt is of another query than this.")
