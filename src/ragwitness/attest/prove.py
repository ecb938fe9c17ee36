"""Phases C and D, the provider's side: close a window, and prove a challenge (§5.5, §5.6).

Proofs are kept in the window's secret folder, so that a stopped run resumes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from ragwitness.attest.bundle import TENANT_FILES, write_bundle
from ragwitness.attest.challenge import Challenge, Disclosure, draw_records, noise_of
from ragwitness.attest.coalition import CoalitionEstimate, certificate, estimate
from ragwitness.attest.commitments import proof_shape, vector_bytes
from ragwitness.attest.receipts import KeptOpening
from ragwitness.attest.window import Window
from ragwitness.attest.window_log import WINDOW_ENTRIES, accounts_root, publish, sign
from ragwitness.core.errors import InputError
from ragwitness.core.files import read_file, replace_file
from ragwitness.crypto.notes import Checkpoint
from ragwitness.crypto.records import CloseRecord, QueryRecord, record_hash

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.argument import SecretColumns

_MOST_FILE = 1 << 30


def prove_window(
    window: Window,
    challenge: Challenge,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    *,
    again: bool = False,
    openings: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the bundle that answers a challenge.

    A window answers one. Each challenge opens the noise of its answers; an auditor who could repeat
    it would see all of them.

    Args:
        window: Closed, with the log's keys.
        challenge: Drawn from the window's close.
        progress: Called with (what, done, all).
        again: Answer another challenge than the one that the window has answered.
        openings: The provider's log of its windows, by
            :func:`~ragwitness.attest.openings.log_opening`.

    Raises:
        InputError: The window is open, the challenge was not drawn from its close (it would open
            records that somebody picked), or the window has answered another.
    """
    # 1. Everything fixed at the close.
    files = bundle_files(window) | dict(openings or {})
    # 2. The challenge follows from the close, and is the one that this window answers.
    close = Checkpoint.of_note(files["log/close.checkpoint"])
    population, count = len(window.ledger.queries), len(challenge.records)
    if challenge.population != population or challenge.records != draw_records(
        challenge.beacon, close, population, count
    ):
        raise InputError(
            "The challenge was not drawn from this window's close; it would open records that"
            " somebody picked.",
            "Ask for one of `ragwitness attest challenge` over this window's close.checkpoint.",
        )
    _check_first(window, challenge, again=again)
    # 3. Each challenged record: what opens it, and the proof of its answer.
    columns: dict[str, SecretColumns] = {}
    for done, number in enumerate(challenge.records):
        progress("proofs", done, count)
        record, opening = window.query(number), window.kept(number)
        if record.tenant not in columns:
            columns[record.tenant] = window.secret_columns(record.tenant)
        disclosure = _disclosure(window, record, opening)
        files[f"records/{number}.json"] = disclosure.encode()
        files[f"records/{number}.proof"] = _record_proof(
            window, columns[record.tenant], record, opening, disclosure
        )
    progress("proofs", count, count)
    # 4. One file, its list signed with the log's key.
    files["challenge.json"] = challenge.encode()
    return write_bundle(window.policy.window, files, window.keys)


def bundle_files(window: Window) -> dict[str, bytes]:
    """Return the files of a bundle that do not depend on the challenge.

    Raises:
        InputError: The window is not closed, or a file of it is missing.
    """
    # Only a closed window has its final files.
    public = window.public
    window.ledger.refresh()
    if window.ledger.closed is None:
        raise InputError(
            f"The window {window.policy.window} is open: its records can still change.",
            "Close it first: ragwitness attest close.",
        )
    # Public files that were fixed at the close.
    names = ["policy.json", "embedder.json", "estimate.json", WINDOW_ENTRIES]
    names += [
        f"tenants/{i}/{name}" for i in range(len(window.policy.tenants)) for name in TENANT_FILES
    ]
    files = {name: read_file(public / name, _MOST_FILE) for name in names}
    for name in ("open.checkpoint", "close.checkpoint"):
        files[f"log/{name}"] = read_file(public / name, _MOST_FILE)
    # The verifier needs all vectors for the coalition's estimate.
    files["vectors.bin"] = b"".join(
        vector_bytes(opening.opened.vector) + opening.opened.blindings[1]
        for opening in map(window.kept, range(len(window.ledger.queries)))
    )
    return files


def _check_first(window: Window, challenge: Challenge, *, again: bool) -> None:
    """Store the challenge before anything is opened, and refuse a second one."""
    # A stored challenge is answered again.
    data = challenge.encode()
    folder = window.folder.secret / "challenges"
    path = folder / f"{sha256(data).hexdigest()}.json"
    if path.exists():
        return
    if folder.exists() and any(folder.iterdir()) and not again:
        raise InputError(
            f"The window {window.policy.window} has answered another challenge; this one would"
            f" open {len(challenge.records):,} records more, and their noise.",
            "Agree on one challenge per window; --again answers this one as well.",
        )
    replace_file(path, data)


def _disclosure(window: Window, record: QueryRecord, kept: KeptOpening) -> Disclosure:
    opened, (seed, path) = kept.opened, window.seed_opening(int(record.number))
    return Disclosure(
        query=opened.query,
        query_blinding=opened.blindings[0],
        ids=opened.ids,
        answer_blinding=opened.blindings[2],
        seed=seed,
        seed_path=path,
        text=kept.text,
    )


def _record_proof(
    window: Window,
    columns: SecretColumns,
    record: QueryRecord,
    kept: KeptOpening,
    disclosure: Disclosure,
) -> bytes:
    """Return a record's proof: that of an earlier run, or a new one, which is stored."""
    from ragwitness.crypto.proofs.prove_selection import prove_answer
    from ragwitness.crypto.proofs.selection import AnswerClaim

    path = window.folder.secret / "proofs" / f"{record_hash(record).hex()}.proof"
    if path.exists():
        return read_file(path, _MOST_FILE)
    # The noise again, from the opened sub-seed, as the verifier will derive it.
    mechanism, beacon = window.policy.tenants[record.tenant], window.ledger.beacon
    noise = noise_of(mechanism, record, disclosure.seed, disclosure.query, beacon)
    # The claim, its proof, and its copy on the disk.
    vector, context = kept.opened.vector.astype(np.int16), record_hash(record)
    claim = AnswerClaim(columns.public, vector, noise, disclosure.ids, context)
    proof = prove_answer(proof_shape(window.policy), claim, columns)
    replace_file(path, proof)
    return proof


# Phase C: estimate, map, close record, close checkpoint.


def close_window(window: Window) -> CoalitionEstimate:
    """Close a window: no query can follow.

    Writes ``estimate.json``, the close record, and ``close.checkpoint``. After a crash, call it
    again.

    Returns:
        The coalition estimate; it may exceed the policy's cap, which then fails the audit.

    Raises:
        InputError: The openings are damaged, there is no key, or the folder cannot be written.
    """
    policy, ledger = window.policy, window.ledger
    with window.writing():
        # 1. Find a missing key before anything is written.
        sign(ledger.log, window.keys)
        # 2. The estimate of the coalition (R5) from all query records, and its certificate.
        numbers = range(len(ledger.queries))
        accounts = [(query.tenant, query.account) for query in map(window.query, numbers)]
        vectors = [window.kept(number).opened.vector for number in numbers]
        rows = np.stack(vectors) if vectors else np.zeros((0, 1), np.int16)
        coalition = estimate(policy, accounts, rows)
        data = certificate(coalition)
        replace_file(window.public / "estimate.json", data)
        # 3. The close record: counts, the root of the accounts' map, the estimate.
        if ledger.closed is None:
            record = CloseRecord(
                window=policy.window,
                queries=str(len(ledger.queries)),
                map_root=accounts_root(policy.window, ledger.accounts).hex(),
                coalition=str(coalition.size),
                certificate=hashlib.sha256(data).hexdigest(),
            )
            ledger.append(record)
        # 4. The signed checkpoint of the close; an earlier one may have witnesses' signatures.
        note = publish(window.public, ledger.log, window.keys, ledger.entries)
        path = window.public / "close.checkpoint"
        if not path.exists():
            replace_file(path, note)
    return coalition
