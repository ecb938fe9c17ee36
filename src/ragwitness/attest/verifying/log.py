"""Checks of the log: whose it is, that it is whole, and that nobody was shown another one."""

from __future__ import annotations

import hmac

from ragwitness.attest.bundle import verify_note
from ragwitness.attest.verifying.steps import Case, NotCheckedError, refuse
from ragwitness.crypto.notes import Checkpoint, open_checkpoint

__all__ = ["bundle_note", "close_note", "open_note", "rebuilt", "seen_elsewhere"]


def bundle_note(case: Case) -> str:
    """Check that the log's key signed the list of the bundle's files."""
    trust = case.trusted("nothing says whose log this is")
    verify_note(case.evidence.bundle, trust.notes.log)
    return f"signed by {trust.notes.origin}"


def open_note(case: Case) -> str:
    """Check the signatures under the checkpoint of the open."""
    return _note(case, "open")


def close_note(case: Case) -> str:
    """Check the signatures under the checkpoint of the close."""
    return _note(case, "close")


def rebuilt(case: Case) -> str:
    """Check that the entries, all of them, are those under both checkpoints' roots.

    The checkpoint of the open was signed before the first query record, so that what the open
    record commits to was fixed by then.
    """
    evidence, log = case.evidence, case.log
    opened, closed = evidence.checkpoints
    if closed.size != log.size:
        raise refuse(
            "log.size",
            f"The log was closed with {closed.size:,} entries; the bundle holds {log.size:,}.",
        )
    if opened.origin != closed.origin:
        raise refuse("checkpoint.origin", "Open and close are checkpoints of two logs.")
    if not hmac.compare_digest(log.root(), closed.root):
        raise refuse("log.root", "The log's entries are not those that the close was signed for.")
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


def seen_elsewhere(case: Case) -> str:
    """Check that checkpoints which others were shown are prefixes of this log."""
    if not case.seen:
        raise NotCheckedError("no checkpoint from elsewhere was given")
    signers = case.trusted("no one can say whose checkpoints these are").listeners
    for data in case.seen:
        compare(case, open_checkpoint(data, signers).checkpoint, "log")
    return f"{len(case.seen):,} checkpoints from elsewhere agree"


def compare(case: Case, seen: Checkpoint, family: str) -> None:
    """Check that a signed checkpoint is one of this log.

    Raises:
        VerificationError: ``<family>.rolled_back`` or ``<family>.split_view``.
    """
    log = case.log
    if seen.size > log.size:
        raise refuse(
            f"{family}.rolled_back",
            f"The log had signed for {seen.size:,} entries; it was closed with {log.size:,}.",
        )
    if not hmac.compare_digest(log.root(seen.size), seen.root):
        raise refuse(
            f"{family}.split_view",
            f"The log signed two different histories of its first {seen.size:,} entries.",
        )


def _note(case: Case, name: str) -> str:
    trust = case.trusted("nothing says whose log this is")
    signed = open_checkpoint(case.evidence.bundle.files[f"log/{name}.checkpoint"], trust.notes)
    witnesses = len({who for who, _ in signed.times})
    watched = f" and {witnesses} of its witnesses" if witnesses else "; no witness"
    return f"signed by {trust.notes.origin}{watched}"
