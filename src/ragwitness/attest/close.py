"""Phase C: estimate, map, close record, close checkpoint."""

from __future__ import annotations

import hashlib

import numpy as np

from ragwitness.attest.checkpoints import publish, sign
from ragwitness.attest.coalition import CoalitionEstimate, certificate, estimate
from ragwitness.attest.ledger import accounts_root
from ragwitness.attest.window import Window
from ragwitness.core.files import replace_file
from ragwitness.crypto.transcript.records import CloseRecord, QueryRecord, decode


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
