"""Sealing a run before its first query, and packing it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ragwitness.core.addresses import name_follows
from ragwitness.core.errors import InputError
from ragwitness.evidence.subject import SealSubject
from ragwitness.runner.task_options import Sealing


def seal_run(
    sealing: Sealing,
    folder: Path | None,
    target: object,
    system: str,
    subject: Callable[[Path], SealSubject],
) -> str:
    """Commit to what is asked about before the first query; return the digest of the seal.

    Args:
        sealing: With which key, log and timestamp authority.
        folder: Of the run.
        target: Its address.
        system: Its name, once it is opened.
        subject: Returns what is committed to.

    Raises:
        InputError: The run has no folder or no address, or was sealed for something else.
        TargetError: The timestamp authority cannot be reached.
    """
    from ragwitness.evidence.seal import SealWish, begin

    if folder is None or not isinstance(target, str) or sealing.seal is None:
        raise InputError("A sealed run has an address and a folder.", "Give run=FOLDER.")
    if target and name_follows(target, system) is None:
        raise InputError(
            f"{target} does not say which system it is: it calls itself {system!r}, and whoever"
            " reads the seal could not tell.",
            "Give the system's own URL, e.g. https://HOST/v1#MODEL, or leave out --seal.",
        )
    wish = SealWish(Path(sealing.seal), sealing.runs_log, sealing.timestamp)
    return begin(folder, subject(folder), wish, system)


def pack_of(
    run: Path, out: Path, *, hide: bool = False, opened: Sequence[str] = (), key: Path | None = None
) -> tuple[bytes, str, bool]:
    """Make the evidence pack of a sealed run.

    Args:
        run: Its folder.
        out: Where the pack goes.
        hide: Show commitments in place of documents, questions and answers.
        opened: Documents that are shown all the same.
        key: The key that sealed the run; None for where it was then.

    Returns:
        The pack, the public key that checks it, and whether it opens a draw of canaries, of which
        no further look decides.

    Raises:
        InputError: The run was not sealed, or its answers were changed.
    """
    from ragwitness.crypto.keys import read_key
    from ragwitness.evidence.code import task_named
    from ragwitness.evidence.seal import make_pack, read_sealed

    # The answers must be those that were linked as they arrived.
    sealed = read_sealed(run)
    signer = read_key(key or sealed.key)
    data = make_pack(sealed, signer, hide=hide, opened=opened)
    draw = sealed.home is not None and (not hide or "draw" in opened)
    mark_opened = task_named(sealed.task).opened
    if sealed.home is not None and draw and mark_opened is not None:
        mark_opened(sealed.home, out)
    return data, signer.public.text, draw
