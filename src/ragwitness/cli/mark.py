"""``ragwitness mark``: words of documents are drawn by lot before the documents are shared."""

from __future__ import annotations

from ragwitness.membership.marks.task import MarkTask


def mark(task: MarkTask) -> None:
    """Draw words of documents by lot before the documents are shared, and keep the lots.

    It writes the copies to share, and a key that you keep secret. Publish the commitment that it
    prints before you share the copies. Later, ragwitness audit --marks asks a system for the words:
    one that does not hold your copy can only guess them. Read the copies before you share them.
    """
    from ragwitness.cli.common import console, print_lines, say_error

    key = task.carry_out(say_error)
    documents, lots = key.documents, [lot for d in key.documents for lot in d.lots]
    bits = sum(len(lot.alternatives) for lot in lots) / len(lots)
    waits = key.beacon_source and not key.beacon
    print_lines(
        console(),
        f"commitment: {key.commitment.hex()}",
        f"{len(documents):,} documents, {len(lots):,} words drawn, each of {bits:.1f} on average",
        f"key: {task.key}; keep it secret, and keep a copy",
        f"next: publish the commitment; once {key.beacon_source!r} is public,"
        f" ragwitness mark --key {task.key} -o {task.out} --beacon-value HEX"
        if waits
        else f"next: publish the commitment, read the copies in {task.out}, and share them",
    )
