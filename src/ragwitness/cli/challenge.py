"""``ragwitness attest challenge`` and ``pin``: what a verifier asks for, and what it accepts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.options import AsJson, Prompt
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import read_file, replace_file
from ragwitness.core.options import Arg, Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.attest.challenge import Challenge
    from ragwitness.attest.pins import PolicyBounds
    from ragwitness.attest.trust import Trust
    from ragwitness.crypto.notes.note import Checkpoint

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
    known = None if trust is None else parse_trust(read_file(trust, 1 << 20))
    # Step 1: the close fixes the records. A challenge on an open window could be dodged.
    close, population = _close(public, known)
    # Step 2: how many. For a share of bad records, as many as miss all of them with probability
    # --miss at most.
    if everything:
        count = population
    elif share is not None:
        count = records_for(population, share, miss)
    else:
        count = records or 0
    # Step 3: which ones. They follow from beacon, close and number, so anybody can draw them again.
    made = make_challenge(_beacon(beacon), close, population, count)
    shown = checkpoint_token(close.size, close.root)
    if trust is not None and known is not None:
        # First: a challenge that nobody remembers is worth nothing.
        _remember(trust, known, replace(known, beacon=made.beacon, records=count, close=shown))
    replace_file(output, made.encode())
    _print(made, shown, as_json=as_json)
    if known is not None and not known.pins.on_policy and not as_json:
        typer.echo(
            f"{trust} pins no policy yet, so that nothing passes by it: ragwitness attest pin."
        )


def _print(made: Challenge, close: str, *, as_json: bool) -> None:
    import json

    from ragwitness.attest.verifier import sampling_of
    from ragwitness.evidence.result import sampling_line

    # What so many records can and cannot find, with the drawn numbers.
    sampling = sampling_of(made.population, len(made.records))
    if as_json:
        values = {
            "beacon": made.beacon.hex(),
            "close": close,
            "population": made.population,
            "records": list(made.records),
            "detection": [{"bad": bad, "chance": found} for bad, found in sampling.detection],
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
    from ragwitness.crypto.log.tiles import read_entries
    from ragwitness.crypto.log.tree import MerkleLog
    from ragwitness.crypto.notes.note import Checkpoint, Note
    from ragwitness.crypto.notes.witness import open_checkpoint
    from ragwitness.crypto.transcript.records import CloseRecord, QueryRecord, decode

    path = public / "close.checkpoint"
    if not path.exists():
        raise InputError(
            f"{public} holds no close.checkpoint: the window is open, or this is another folder.",
            "Close it first (ragwitness attest close), and give its public folder.",
        )
    data = read_file(path, _NOTE)
    if trust is not None:
        found = open_checkpoint(data, trust.notes).checkpoint
    else:
        found = Checkpoint.parse(Note.parse(data).text)
    entries = list(read_entries(read_file(public / "log" / "entries.bin", _LOG)))
    # The whole log is rebuilt: a root that somebody names is not the root of these records.
    log = MerkleLog()
    log.extend(entries)
    if (log.size, log.root()) != (found.size, found.root):
        raise VerificationError("log.root", f"The log in {public} is not the one that was closed.")
    records = list(map(decode, entries))
    if not records or not isinstance(records[-1], CloseRecord):
        raise VerificationError("close.last", f"The log in {public} ends with no close record.")
    # Only queries can be challenged; the opening and the closing record are read in any case.
    return found, sum(isinstance(record, QueryRecord) for record in records)


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

    It shows what the window's policy promises, and where that is weak. --policy accepts this one;
    the four bounds accept every policy that keeps them, of this window and of later ones. Without
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
    from ragwitness.attest.pins import parse_pins, policy_terms, weak_points, worth_of
    from ragwitness.attest.policy import MOST_BYTES, WindowPolicy
    from ragwitness.attest.trust import Trust, parse_trust
    from ragwitness.cli.attest import print_values
    from ragwitness.cli.attest_indexes import artifacts
    from ragwitness.crypto.keys import PublicKey
    from ragwitness.crypto.notes.witness import Signers
    from ragwitness.privacy.ranges import whole

    made = log_key is not None and not trust.exists()
    if log_key is not None and not made:
        raise InputError(
            f"{trust} names the keys of a log.", "Leave --log-key out, or name another."
        )
    again = "Make it from the log's public key as you know it: --log-key KEY"
    known = (
        Trust(Signers(tuple(map(PublicKey.parse, log_key or ()))))
        if made
        else parse_trust(read_file(trust, _NOTE, again))
    )
    policy = WindowPolicy.parse(read_file(public / "policy.json", MOST_BYTES))
    bounds = _bounds(epsilon_most, delta_most, k_max_least, threshold_most, span_least)
    # What is given is added to what the file holds; nothing is taken out of it in silence.
    pins = known.pins
    if this:
        pins = replace(pins, policy=policy.digest)
    if bounds is not None:
        pins = replace(pins, bounds=bounds)
    if embedder is not None:
        own = CommittedEmbedder(artifacts(embedder, prompt), bytes(32))
        pins = replace(pins, embedder=own.digest)
    if unsigned_most is not None:
        whole("unsigned_most", unsigned_most, 0)
        pins = replace(pins, unsigned_most=unsigned_most)
    if account:
        named = dict(one.rpartition("=")[::2] for one in account)
        pins = parse_pins(pins.plain() | {"accounts": {**pins.accounts, **named}})
    if made or pins != known.pins:
        replace_file(trust, replace(known, pins=pins).encode())
    values: dict[str, object] = {
        "window": policy.window,
        "policy": policy.digest,
        "promises": policy_terms(policy),
        "worth": worth_of(policy),
        "weak": weak_points(policy) or "nothing",
        "pinned": pins.plain() or "nothing: give --policy, or the bounds",
    }
    if pins.bounds is not None:
        values["breaks"] = [what for _, what in pins.bounds.broken(policy)] or "nothing"
    print_values(values, as_json=as_json)


def _bounds(
    epsilon: float | None,
    delta: float | None,
    k_max: int | None,
    threshold: float | None,
    span: int,
) -> PolicyBounds | None:
    from ragwitness.attest.pins import PolicyBounds

    if epsilon is None and delta is None and k_max is None and threshold is None and not span:
        return None
    if epsilon is None or delta is None or k_max is None or threshold is None:
        raise InputError(
            "Four bounds belong together; one alone leaves the others to the provider.",
            "Give --epsilon-most, --delta-most, --k-max-least and --threshold-most.",
        )
    return PolicyBounds(epsilon, delta, k_max, threshold, span)
