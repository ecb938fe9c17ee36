"""Steps that all tasks share in Python: read documents, open a target, ask, close."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, LeftOut, Target
from ragwitness.runner.task_options import HowRead, Texts

if TYPE_CHECKING:
    from ragwitness.targets.form import ShownForm
    from ragwitness.targets.transport import TransportOptions

Note = Callable[[str], object]
"""Called with remarks about the reading of documents."""

_T = TypeVar("_T")


def warn(line: str) -> None:
    """Warn the calling program about the reading of documents."""
    warnings.warn(line, stacklevel=2)


def as_documents(
    given: Texts | None,
    how: HowRead | None = None,
    left_out: list[LeftOut | str] | None = None,
    note: Note = warn,
    *,
    paragraphs: bool = False,
    group_field: str | None = None,
) -> tuple[Document, ...]:
    """Return documents however they were given; plain texts are numbered.

    Args:
        given: Values, texts, or the path of a file or folder; None is none.
        how: How a file is read.
        left_out: Skipped parts are added to this list.
        note: Called with each remark, line by line.
        paragraphs: Whether each paragraph of a text file is a document.
        group_field: Field or column that names the group of a document.

    Raises:
        InputError: A file cannot be read, or nothing in it can be used.
    """
    from ragwitness.text.documents import Split, load_documents

    # A path: read the file or folder, and report its remarks.
    if isinstance(given, str | Path):
        named = {entry.name: getattr(how, entry.name) for entry in fields(HowRead)} if how else {}
        split: Split = "paragraphs" if paragraphs else None
        loaded = load_documents(str(given), **named, group_field=group_field, split=split)
        for line in loaded.remarks:
            note(line)
        if left_out is not None:
            left_out += (*loaded.left_out, *loaded.notes)
        return loaded.documents
    # A mapping is one document, not a series of them.
    series = isinstance(given, Iterable) and not isinstance(given, Mapping)
    listed: list[Any] = list(given or ()) if series or given is None else [given]
    for n, entry in enumerate(listed, start=1):
        if isinstance(entry, str):
            listed[n - 1] = Document(str(n), entry)
        elif not isinstance(getattr(entry, "text", None), str):
            how_to = "Give texts or ragwitness.Document(id, text), or the path of a file."
            raise InputError(f"Document {n} is of the type {type(entry).__name__}.", how_to)
    return tuple(listed)


def check_target(target: object) -> None:
    """Refuse an address that cannot be opened, before anything is read or computed.

    Raises:
        InputError: As for :func:`ragwitness.targets.resolve.check_address`.
    """
    from ragwitness.targets.resolve import check_address

    if isinstance(target, str) and target:
        check_address(target)


def own_folder(run: Path | str | None, *given: object) -> Path | None:
    """Return the run folder, in which nothing that was ``given`` may lie: its files are replaced.

    Raises:
        InputError: It is no folder, or holds an input.
    """
    if run is None:
        return None
    if not isinstance(run, str | Path) or run == "" or "\0" in str(run):
        raise InputError(f"run names no folder: {run!r}.", "Name one, or '.' for the current one.")
    folder = Path(run).resolve()
    for source in given:
        with suppress(OSError, ValueError):  # a text and no path
            path = Path(source) if isinstance(source, str | Path) else None
            if path and path.exists() and folder in path.resolve().parents:
                raise InputError(f"run {run} holds the input {source}.", "Name another folder.")
    return Path(run)


def with_target(
    target: object,
    ask: Callable[[Target], Coroutine[Any, Any, _T]],
    options: TransportOptions | None = None,
    form: ShownForm | None = None,
) -> _T:
    """Open a target, ask, and close it again; a target that was handed in stays open.

    Raises:
        TargetError: It cannot be reached or does not speak the protocol.
    """
    from ragwitness.targets.conversation import open_deployed
    from ragwitness.targets.objects import wrap

    async def work() -> _T:
        named = isinstance(target, str)
        opened = await open_deployed(str(target), options, form) if named else wrap(target)
        try:
            return await ask(opened)
        finally:
            if opened is not target:
                await opened.close()

    return to_end(work())


def to_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Run work to its end, also where a loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A notebook runs a loop already: the work gets another one in a thread.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def key_values(pairs: Mapping[str, object] | Sequence[str] | None) -> Mapping[str, object]:
    """Return fields by name, given so or as ``NAME=VALUE`` pairs.

    Raises:
        InputError: A pair has no ``=``.
    """
    if isinstance(pairs, Mapping):
        return pairs
    fields = {}
    for pair in pairs or ():
        name, equals, value = str(pair).partition("=")
        if not equals:
            raise InputError(f"--set {pair!r} has no value.", "Write --set NAME=VALUE.")
        fields[name.strip().replace("-", "_")] = value.strip()
    return fields


def per_method(
    pairs: Mapping[str, Mapping[str, object]] | Sequence[str] | None,
) -> Mapping[str, Mapping[str, object]]:
    """Return fields by method, given so or as ``METHOD.NAME=VALUE`` pairs.

    Raises:
        InputError: A pair has no ``=`` or names no audit.
    """
    if isinstance(pairs, Mapping):
        return pairs
    settings: dict[str, dict[str, object]] = {}
    for key, value in key_values(pairs).items():
        audit, dot, name = key.rpartition(".")
        if not dot:
            raise InputError(f"--set {key} names no audit.", "Write --set AUDIT.NAME=VALUE.")
        settings.setdefault(audit.replace("_", "-"), {})[name] = value
    return settings
