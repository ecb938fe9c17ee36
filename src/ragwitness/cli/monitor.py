"""``ragwitness attest monitor``: does a log still hold what it showed before?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.attest import key_at, print_values, signers
from ragwitness.cli.options import AsJson, Trusted
from ragwitness.core.errors import InputError
from ragwitness.core.files import read_file, replace_file
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.crypto.keys import KeyKind

if TYPE_CHECKING:
    from ragwitness.evidence.log_client import HttpPrefix

_NOTE = 1 << 18


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

    from ragwitness.attest.checkpoints import count_queries, watch

    who = signers(trust, witnessed=cosign is None)
    with _prefix(public) as (prefix, note):
        # The usual round: the newest checkpoint against the last one that was accepted.
        known = read_file(state, _NOTE) if state.exists() else None
        key = key_at(cosign, name, KeyKind.COSIGNATURE) if cosign is not None else None
        seen = watch(prefix, note, who, known, key, int(time.time()), entries=entries)
        counted = None
        if account is not None:
            tenant, _, who_asks = account.partition("/")
            counted = count_queries(prefix, seen.new.checkpoint, tenant, who_asks)
    # Kept only after every check has held: a state that follows a rolled-back log would forgive it.
    replace_file(state, seen.note)
    values: dict[str, object] = {
        "holds": True,
        "log": seen.new.checkpoint.origin,
        "before": seen.old.size if seen.old else None,
        "now": seen.new.checkpoint.size,
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
        yield prefix, read_file(public / "checkpoint", _NOTE)
        return
    from ragwitness.evidence.log_client import HttpPrefix

    with HttpPrefix(place) as remote:
        try:
            note = remote("checkpoint", _NOTE + 1)
        except FileNotFoundError:
            raise InputError(
                f"There is no checkpoint under {place}.",
                "Give the URL at which a window's public folder is served.",
            ) from None
        yield remote, note
