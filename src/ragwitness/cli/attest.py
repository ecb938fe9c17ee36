"""``ragwitness attest commit``: open an audit window, phase A."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.options import (
    AsJson,
    Embedder,
    Key,
    Output,
    Prompt,
    Window,
)
from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.files import read_file, replace_file
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.crypto.keys import KeyKind, PrivateKey, read_key, write_key
from ragwitness.report.formatting import visible
from ragwitness.runner.task_options import HowRead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragwitness.attest.window import Window as HeldWindow
    from ragwitness.crypto.keys import PublicKey
    from ragwitness.crypto.notes import Signers
    from ragwitness.evidence.log_client import Gathered, WitnessAddress

Witnesses = Annotated[
    list[str] | None,
    Opt(
        "--witness",
        metavar="URL#KEY",
        help="A witness that signs the checkpoint: its address and public key. May be repeated.",
    ),
]

# Keys and the verifier's trust file, for the verbs of an audit window.

_LONGEST_SIGNING = 1 << 20


def key_at(path: Path, name: str | None, kind: KeyKind) -> PrivateKey:
    """Return the key of a file; where there is none and a name is given, make one.

    Raises:
        InputError: The file holds no key, or is missing and there is no name.
    """
    # A key that is there is never made anew: the log's name and history hang on it.
    if path.exists():
        return read_key(path)
    if name is None:
        raise InputError(
            f"There is no key in {path}.", "With --name NAME one is made, e.g. example.org/log."
        )
    key = PrivateKey.generate(name, kind)
    write_key(path, key)
    return key


def signers(path: Path, *, witnessed: bool = False) -> Signers:
    """Return whose signatures count under what a log shows while it serves, out of a trust file.

    Args:
        path: The file.
        witnessed: Ask for its quorum of witnesses, who sign later than receipts are given.
    """
    from ragwitness.attest.trust import parse_trust

    # Receipts are given before witnesses have signed, so that their quorum counts for the closed
    # window alone.
    trust = parse_trust(read_file(path, _LONGEST_SIGNING))
    return trust.notes if witnessed else trust.listeners


def new_file(path: Path, data: bytes) -> None:
    """Write a file that must not exist.

    Raises:
        InputError: It exists, or cannot be written.
    """
    if path.exists():
        raise InputError(f"{path} exists; it is not overwritten.", "Choose another file with -o.")
    replace_file(path, data)


def print_values(values: dict[str, object], *, as_json: bool) -> None:
    """Print names and values in two columns, or as JSON; what cannot be seen is named."""
    if as_json:
        import json

        typer.echo(json.dumps(values, indent=2))
        return
    width = max(map(len, values))
    for name, value in values.items():
        items = (
            [f"{key} {item}" for key, item in value.items()] if isinstance(value, dict) else value
        )
        text = ", ".join(map(str, items)) if isinstance(items, list) else items
        typer.echo(f"{name.replace('_', ' '):<{width}}  {visible(str(text), _LONGEST_SIGNING)}")


def _example(show: bool) -> None:
    if show:
        from ragwitness.attest.policy import EXAMPLE

        typer.echo(EXAMPLE, nl=False)
        raise typer.Exit


def commit(
    policy: Annotated[Path, PathRole.READS],
    key: Annotated[Path, PathRole.KEEPS],
    output: Annotated[Path, PathRole.FILLS, Opt("--out", short="-o")],
    index: Annotated[list[str], PathRole.PAIRS, Opt(metavar="TENANT=FILE")],
    embedder: Embedder = "minilm",
    name: str | None = None,
    *,
    how: HowRead,
    witness: Witnesses = None,
    prompt: Prompt = None,
    example_policy: Annotated[  # noqa: ARG001  # read before the rest
        bool,
        typer.Option(
            "--example-policy", callback=_example, is_eager=True, help="Print a policy and exit."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Open a window.

    It commits, before any query, to the indexes, the noise, the embedder and the policy. In the
    folder, public is for everybody and secret for the provider alone. KEY.openings, beside the key,
    is the public log of all windows under it. trust.json is a draft for the auditor. The auditor
    checks the log's public key in it and pins the accepted policy (ragwitness attest pin). Until
    then no bundle passes by it.

    Args:
        policy: The policy (TOML): what is promised; see --example-policy.
        key: The log's private key; it is made if --name is given.
        output: The window's folder, to be made.
        index: A tenant's documents (JSONL, CSV, text or a folder). May be repeated.
        name: The name of the log, for a new key, e.g. example.org/log.
    """
    import sys

    from ragwitness.attest.commit import open_window
    from ragwitness.attest.commitments import CommittedEmbedder
    from ragwitness.attest.policy import read_policy
    from ragwitness.attest.trust import worth_of
    from ragwitness.attest.window import Window
    from ragwitness.attest.window_log import window_key
    from ragwitness.cli.attest_indexes import artifacts, read_indexes
    from ragwitness.evidence.log_client import gather

    # Phase A, step 1: the promise. Everything below is committed to under its digest.
    promised = read_policy(policy)
    if output.exists():
        raise InputError(f"{output} exists; a window is opened once.", "Choose another -o.")
    witnesses = _witnesses(witness)
    # Step 2: the indexes.
    contents = read_indexes(promised, index, embedder, how)
    # Step 3: the log's key, bound to this window.
    provider = key_at(key, name, KeyKind.NOTE)
    signer = window_key(provider, promised.window)

    def progress(step: str) -> None:
        sys.stderr.write(f"committing: {step}\n")

    # Step 4: commit to indexes, noise, embedder and policy. The folder appears whole or not at all.
    by = CommittedEmbedder.of(artifacts(embedder, prompt))
    open_window(output, promised, contents, by, [signer], progress)
    window = Window.load(output)
    _log_opening(key, window, [signer])
    # Step 5: a draft trust file. The auditor compares it with its own knowledge; a provider's copy
    # proves nothing.
    gathered = gather(window, witnesses, ["open.checkpoint"])
    _trust(output, signer.public, gathered.signed)
    values: dict[str, object] = {
        "window": promised.window,
        "folder": str(output),
        "policy": promised.digest,
        "log": signer.public.text,
        "provider": provider.public.text,
        "openings": str(_openings(key)),
        "checkpoint": window.checkpoint,
        "tenants": list(promised.tenants),
        "worth": worth_of(promised),
    }
    if witness:
        values["witnesses"] = [key_of_witness.name for key_of_witness in gathered.signed]
    print_values(values, as_json=as_json)
    _unsigned(gathered, f"ragwitness attest close {output} --witness …")


def _openings(key: Path) -> Path:
    """The folder of the provider's log of its windows, beside its key."""
    return key.with_name(f"{key.name}.openings")


def _log_opening(key: Path, window: HeldWindow, keys: Sequence[PrivateKey]) -> dict[str, bytes]:
    """Log the opening in the provider's own log, and return that log's files."""
    from ragwitness.attest.openings import log_opening
    from ragwitness.crypto.hashing import leaf_hash

    folder = _openings(key)
    return log_opening(folder, keys, leaf_hash(window.ledger.entry(0)), window.policy)


def _witnesses(given: list[str] | None) -> list[WitnessAddress]:
    from ragwitness.evidence.log_client import WitnessAddress

    return [WitnessAddress.parse(address) for address in given or ()]


def _unsigned(gathered: Gathered, again: str) -> None:
    """Name the witnesses that did not sign; what was done stays done.

    Raises:
        RagwitnessError: There is one.
    """
    for name, reason in gathered.failed.items():
        raise RagwitnessError(f"{name} did not sign: {reason}", f"They are asked again by: {again}")


def _trust(folder: Path, key: PublicKey, witnesses: Sequence[PublicKey]) -> None:
    """Write what an auditor has to compare."""
    from ragwitness.attest.trust import Trust
    from ragwitness.crypto.notes import Signers

    # It pins no policy and no embedder: what the provider wrote there would be its own word.
    trust = Trust(Signers((key,), tuple(witnesses), len(witnesses)))
    replace_file(folder / "trust.json", trust.encode())


# ``ragwitness attest close``: end an audit window, phase C.


def close(window: Window, key: Key, witness: Witnesses = None, as_json: AsJson = False) -> None:
    """Close a window.

    It estimates the coalition, writes it into the log and signs the last checkpoint,
    public/close.checkpoint, from which a challenge is drawn. No query can follow.
    """
    from ragwitness.attest.prove import close_window
    from ragwitness.attest.window import Window
    from ragwitness.evidence.log_client import gather

    witnesses, open_window = _witnesses(witness), Window.load(window, [read_key(key)])
    # Phase C: the coalition is estimated, written as the last record and signed; no query can
    # follow it.
    coalition = close_window(open_window)
    gathered = gather(open_window, witnesses, ["open.checkpoint", "close.checkpoint"])
    cap = open_window.policy.k_max
    values: dict[str, object] = {
        "window": open_window.policy.window,
        "queries": coalition.queries,
        "accounts": len(open_window.ledger.accounts),
        "coalition": coalition.size,
        "k_max": cap,
        "within_policy": coalition.size <= cap,
        "checkpoint": open_window.checkpoint,
    }
    if witness:
        values["witnesses"] = [signer.name for signer in gathered.signed]
    print_values(values, as_json=as_json)
    # Said at once, although the close succeeds: the provider should not learn it from the auditor.
    if coalition.size > cap and not as_json:
        typer.echo(
            f"An audit will fail: {coalition.size} accounts asked alike, {cap} are declared."
        )
    _unsigned(gathered, f"ragwitness attest close {window} --key {key} --witness …")


# ``ragwitness attest prove``: answer a challenge with a bundle, phase D of the provider.

_LONGEST = 1 << 20


def prove(
    window: Window,
    challenge: Annotated[Path, PathRole.READS, Arg()],
    key: Key,
    output: Output,
    again: bool = False,
    as_json: AsJson = False,
) -> None:
    """Prove the challenged records.

    It writes the bundle, and a verifier needs nothing else from the provider. The noise of these
    records is opened, and their queries where the provider keeps them. The same command goes on
    where it was stopped.

    Args:
        challenge: The file that ragwitness attest challenge wrote.
        again: Answer a second challenge. It opens the noise of more answers, for good.
    """
    from ragwitness.attest.challenge import parse_challenge
    from ragwitness.attest.prove import prove_window
    from ragwitness.attest.window import Window
    from ragwitness.cli.common import console, progress_bars

    if output.exists():
        raise InputError(f"{output} exists; it is not overwritten.", "Choose another file with -o.")
    # Phase D, step 1: the challenge, drawn by the auditor after the close.
    request = parse_challenge(read_file(challenge, _LONGEST))
    closed = Window.load(window, [read_key(key)])
    # Step 2: prove record by record. Finished proofs are kept, so that the same command goes on.
    with progress_bars(console(), items="records") as progress:
        # A second log under the key's name would be a second history: none is begun here.
        openings = _log_opening(key, closed, closed.keys) if _openings(key).exists() else None
        data = prove_window(closed, request, progress, again=again, openings=openings)
    # Step 3: one file. A bundle is evidence and never replaces another one.
    new_file(output, data)
    values: dict[str, object] = {
        "bundle": str(output),
        "bytes": len(data),
        "records": len(request.records),
    }
    print_values(values, as_json=as_json)


def begin(
    window: Window,
    file: Annotated[Path, PathRole.READS, Arg()],
    key: Key,
    as_json: AsJson = False,
) -> None:
    """Log the value that enters the noise of a window.

    Do it before the first query: a window whose noise you could have chosen alone passes no
    verification. It is logged once.

    Args:
        file: The file that ragwitness attest beacon wrote.
    """
    from ragwitness.attest.window import Window
    from ragwitness.crypto.records import BeaconRecord, decode

    open_window = Window.load(window, [read_key(key)])
    record = decode(read_file(file, _LONGEST))
    if not isinstance(record, BeaconRecord) or record.window != open_window.policy.window:
        raise InputError(
            f"{file} is no beacon of the window {open_window.policy.window}.",
            "Ask the auditor for one: ragwitness attest beacon.",
        )
    open_window.begin(record.value, record.source)
    open_window.publish()
    print_values({"beacon": record.value, "checkpoint": open_window.checkpoint}, as_json=as_json)
