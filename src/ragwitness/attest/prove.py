"""Phase D, the provider's side: from a closed window and a challenge to the bundle (§5.6).

Proofs are kept in the window's secret folder as they are made, so that a run which was stopped goes
on where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from ragwitness.attest.bundle import TENANT_FILES, write_bundle
from ragwitness.attest.challenge import (
    Challenge,
    Disclosure,
    draw_records,
    noise_of,
    noise_record_of,
)
from ragwitness.attest.coalition import CoalitionEstimate, certificate, estimate
from ragwitness.attest.commitments import (
    coins_of,
    link_context,
    proof_shape,
    public_coins_of,
    public_numbers,
    secret_coins,
    vector_bytes,
)
from ragwitness.attest.receipts import KeptOpening
from ragwitness.attest.window import Window
from ragwitness.attest.window_log import accounts_root, publish, sign
from ragwitness.core.errors import InputError
from ragwitness.core.files import read_file, replace_file
from ragwitness.crypto.notes import Checkpoint, Note
from ragwitness.crypto.records import CloseRecord, QueryRecord, decode, record_hash

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

    A window answers one: each takes the noise off the answers that it draws, and an auditor who may
    ask until all are drawn sees all of them.

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
    # 1. Everything that was fixed at the close.
    files = bundle_files(window) | dict(openings or {})
    # 2. The challenge follows from the close, and is the one that this window answers.
    close = Checkpoint.parse(Note.parse(files["log/close.checkpoint"]).text)
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
    rows: dict[str, SecretColumns] = {}
    for done, place in enumerate(challenge.records):
        progress("proofs", done, count)
        record, kept = decode(window.ledger.entry(window.ledger.queries[place])), window.kept(place)
        assert isinstance(record, QueryRecord)  # noqa: S101  # the log lists those alone
        if record.tenant not in rows:
            rows[record.tenant] = window.secret_columns(record.tenant)
        opened = _disclosure(window, record, kept)
        files[f"records/{place}.json"] = opened.encode()
        made = _record_proofs(window, rows[record.tenant], record, kept, opened)
        files |= {f"records/{place}.{end}": data for end, data in made.items()}
    progress("proofs", count, count)
    # 4. One file, its list signed with the log's key.
    files["challenge.json"] = challenge.encode()
    return write_bundle(window.policy.window, files, window.keys)


def bundle_files(window: Window) -> dict[str, bytes]:
    """Return everything in a bundle that does not depend on the challenge.

    Raises:
        InputError: The window is not closed, or a file of it is missing.
    """
    public = window.public
    window.ledger.refresh()
    if window.ledger.closed is None:
        raise InputError(
            f"The window {window.policy.window} is open: its records can still change.",
            "Close it first: ragwitness attest close.",
        )
    names = ("policy.json", "embedder.json", "estimate.json")
    files = {name: read_file(public / name, _MOST_FILE) for name in names}
    for place in range(len(window.policy.tenants)):
        for name in TENANT_FILES:
            path = f"tenants/{place}/{name}"
            files[path] = read_file(public / path, _MOST_FILE)
    files["log/entries.bin"] = read_file(public / "log" / "entries.bin", _MOST_FILE)
    for name in ("open", "close"):
        note = read_file(public / f"{name}.checkpoint", _MOST_FILE)
        files[f"log/{name}.checkpoint"] = note
    files["vectors.bin"] = b"".join(
        vector_bytes(kept.opened.vector) + kept.opened.blindings[1]
        for kept in map(window.kept, range(len(window.ledger.queries)))
    )
    return files


def _check_first(window: Window, challenge: Challenge, *, again: bool) -> None:
    """Remember the challenges that were answered, before anything is opened."""
    data = challenge.encode()
    folder = window.folder.secret / "challenges"
    path = folder / f"{sha256(data).hexdigest()}.json"
    if path.exists():
        return
    if folder.exists() and any(folder.iterdir()) and not again:
        raise InputError(
            f"The window {window.policy.window} has answered another challenge; this one would"
            f" open {len(challenge.records):,} records more"
            + ("." if coins_of(window.policy) else ", and their noise."),
            "Agree on one challenge per window; --again answers this one as well.",
        )
    replace_file(path, data)


def _disclosure(window: Window, record: QueryRecord, kept: KeptOpening) -> Disclosure:
    opened, seed = kept.opened, window.seed_opening(int(record.number))
    return Disclosure(
        query=opened.query,
        query_blinding=opened.blindings[0],
        ids=opened.ids,
        answer_blinding=opened.blindings[2],
        seed=seed.seed,
        seed_path=seed.path,
        text=kept.text,
    )


def _record_proofs(
    window: Window,
    rows: SecretColumns,
    record: QueryRecord,
    kept: KeptOpening,
    opened: Disclosure,
) -> dict[str, bytes]:
    """Return a record's proof, with what commits to its noise where that stays closed.

    It is kept from an earlier run, or made and kept.
    """
    from ragwitness.crypto.proofs.prove_selection import SecretCoins, prove_answer
    from ragwitness.crypto.proofs.selection import AnswerClaim

    mechanism, beacon = window.policy.tenants[record.tenant], window.ledger.beacon
    coins, number = mechanism.coins, int(record.number)
    made = {"coins": window.coin_points(number)} if coins else {}
    path = window.folder.secret / "proofs" / f"{record_hash(record).hex()}.proof"
    if path.exists():
        return made | {"proof": read_file(path, _MOST_FILE)}
    shape, slots = proof_shape(window.policy), mechanism.capacity
    secret = public = None
    if coins:
        # The noise stays closed: it is read off bits that are proved.
        noise = np.full(slots, -coins.centre, np.int64)
        asked = noise_record_of(record, opened.query)
        limbs = public_numbers(coins, beacon, asked, number, slots)
        public = public_coins_of(coins, made["coins"], limbs, shape)
        secret = secret_coins(window.policy, window.sub_seed(number))
        kept_slots = secret.numbers[: shape.slots * len(public.committed)]
        secret = SecretCoins(kept_slots, secret.seed)
    else:
        # The noise again, from the sub-seed that is opened: the same that the verifier will derive.
        noise = noise_of(mechanism, record, opened.seed, opened.query, beacon)
    vector, context = kept.opened.vector.astype(np.int16), link_context(record)
    claim = AnswerClaim(rows.public, vector, noise, opened.ids, context, public)
    made["proof"] = prove_answer(shape, claim, rows, secret)
    replace_file(path, made["proof"])
    return made


# Phase C: estimate, map, close record, close checkpoint.


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
                map_root=accounts_root(policy.window, ledger.accounts).hex(),
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
