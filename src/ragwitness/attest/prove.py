"""Phase D, the provider's side: from a closed window and a challenge to the bundle (§5.6).

Proofs are kept in the window's secret folder as they are made, so that a run which was stopped goes
on where it was.
"""

from __future__ import annotations

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
from ragwitness.attest.commitments import link_context, proof_shape, vector_bytes
from ragwitness.attest.noise import coins_of, public_coins_of, public_numbers, secret_coins
from ragwitness.attest.receipts import KeptOpening
from ragwitness.attest.window import Window
from ragwitness.core.errors import InputError
from ragwitness.core.files import read_file, replace_file
from ragwitness.crypto.notes.note import Checkpoint, Note
from ragwitness.crypto.transcript.records import QueryRecord, decode, record_hash

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.columns import SecretColumns

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
        made = _proofs(window, rows[record.tenant], record, kept, opened)
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
            "Close it first: ragwitness close.",
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


def _proofs(
    window: Window,
    rows: SecretColumns,
    record: QueryRecord,
    kept: KeptOpening,
    opened: Disclosure,
) -> dict[str, bytes]:
    """Return a record's proof, with what commits to its noise where that stays closed.

    It is kept from an earlier run, or made and kept.
    """
    from ragwitness.crypto.proofs.answers import AnswerClaim
    from ragwitness.crypto.proofs.prove_answers import SecretCoins, prove_answer

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
