"""One check of the paths that a verb reads and writes, before it runs, so that nothing is lost.

Every parameter that names a file or a folder carries a :class:`PathRole` in its annotation. The
command class (:class:`~ragwitness.cli.config_files.Configurable`) collects what was given and calls
:func:`check_paths`; a verb does nothing for it, and a new verb is covered by its annotations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ragwitness.core.errors import InputError
from ragwitness.core.options import MODEL_ADDRESS, PathRole, is_pasted, map_paths
from ragwitness.core.run_files import (
    EVALUATION,
    KEPT,
    LEDGER,
    MARKS,
    REPORT,
    RESULT,
    keep_others,
    names_of,
)


@dataclass(frozen=True, slots=True)
class PathUse:
    """One path of a command.

    Attributes:
        option: As users write it, such as ``--json``.
        role: How the command uses it.
        path: Where it is.
        chosen: Whether a user named it; the name of a run folder may follow from the inputs.
    """

    option: str
    role: PathRole
    path: Path
    chosen: bool = True


_PAGES = frozenset({REPORT, EVALUATION})
_OWN = frozenset(names_of())
"""Names of files that commands keep in the folders they fill."""

_READ = (PathRole.READS, PathRole.DOCUMENTS, PathRole.ADDRESS, PathRole.PAIRS)
_READ_WHOLE = (PathRole.DOCUMENTS, PathRole.ADDRESS, PathRole.PAIRS)
"""Of a folder, every file is read: what is put there would be read the next time."""
_WRITTEN = (PathRole.WRITES, PathRole.PAGE)

_uses: ContextVar[tuple[PathUse, ...]] = ContextVar("paths of the command under way", default=())


def check_paths(uses: Iterable[PathUse]) -> None:
    """Refuse a command that would lose a file, before it touches anything.

    Args:
        uses: All paths of the command.

    Raises:
        InputError: An output is an input (by another name, too), another output, or a file of the
            run folder. Or a run folder is or holds an input. Or a path cannot be written.
    """
    # Pass 1: every pair of paths, by their roles.
    all_uses = tuple(uses)
    _uses.set(all_uses)
    for index, path_use in enumerate(all_uses):
        for other_use in (*all_uses[:index], *all_uses[index + 1 :]):
            if path_use.role in _WRITTEN:
                _check_file(path_use, other_use)
            elif path_use.role is PathRole.FILLS:
                _check_folder(path_use, other_use)
            elif path_use.role is PathRole.KEEPS:
                _check_kept(path_use, other_use)
    # Pass 2: each must be writable, and must not be a privacy ledger.
    owned = {_real(use.path) for use in all_uses if use.role in (PathRole.FILLS, PathRole.KEEPS)}
    for path_use in all_uses:
        if path_use.role in _WRITTEN and path_use.path.resolve().name == LEDGER:
            raise InputError(
                f"{path_use.option} {path_use.path} has the name of a privacy ledger, which adds"
                " up what private runs spent.",
                "Choose another name.",
            )
        path = _real(path_use.path)
        page = path_use.role is PathRole.PAGE and path.name in _PAGES
        page = page and bool(owned & {path.parent, path.parent / RESULT})
        if path_use.role in _WRITTEN and not page and _is_kept(path):
            raise _refused(path_use, f"would replace a file of the run in {path.parent}")
        _check_writable(path_use)


def make_places(uses: Iterable[PathUse]) -> None:
    """Make the folders of the files to be written; keep what a run would replace in its folder.

    Raises:
        InputError: One cannot be made or kept.
    """
    for use in uses:
        try:
            if use.role in _WRITTEN:
                use.path.parent.mkdir(parents=True, exist_ok=True)
            for copy in keep_others(use.path) if use.role is PathRole.FILLS else ():
                typer.echo(f"kept: {copy}", err=True)
        except OSError as error:
            raise _unwritable(use, error.strerror or str(error)) from error


def check_run_folder(folder: Path) -> None:
    """Check a run folder whose name follows from the inputs, as :func:`check_paths` does.

    Raises:
        InputError: An output is a file that it keeps, or it is or holds an input.
    """
    run_use = PathUse("the run folder", PathRole.FILLS, folder, chosen=False)
    others = [use for use in _uses.get() if not (use.role is PathRole.FILLS and use.path == folder)]
    check_paths([*others, run_use])


def _check_file(one: PathUse, other: PathUse) -> None:
    """Refuse a file to be written that something else of the command is, or lies in."""
    # The same file, by this name or another one.
    if _same(one.path, other.path):
        raise _refused(one, f"would replace what {other.option} {other.path} {other.role.verb}")
    # A file within a folder that is read: replaced, or read as an input the next time.
    if other.role is PathRole.READS and one.path.exists() and _inside(one.path, other.path):
        raise _refused(one, f"would replace a file of what {other.option} reads, {other.path}")
    if other.role in _READ_WHOLE and _inside(one.path, other.path):
        raise _refused(one, f"would lie in the folder that {other.option} reads, {other.path}")
    # A file within a run folder: allowed beside its own files, never in the place of one.
    if other.role in (PathRole.FILLS, PathRole.KEEPS) and _inside(one.path, other.path):
        inner = _real(one.path).relative_to(_real(other.path))
        if one.role is PathRole.PAGE and str(inner) in _PAGES:
            return
        if len(inner.parts) > 1 or inner.name in _OWN or KEPT.fullmatch(inner.name):
            raise _refused(one, f"would replace a file that {other.option} {other.path} keeps")


def _is_kept(path: Path) -> bool:
    """Whether a run keeps this file, also one that the command does not name."""
    named = path.name in _OWN or KEPT.fullmatch(path.name)
    return bool(named) and any((path.parent / mark).exists() for mark in MARKS)


def _check_folder(one: PathUse, other: PathUse) -> None:
    """Refuse a folder to be filled that is or holds an input, or lies in a folder of inputs."""
    if other.role not in (*_READ, PathRole.KEEPS, PathRole.FILLS):
        return
    if _same(one.path, other.path):
        raise _refused(one, f"is what {other.option} {other.role.verb}")
    if other.role is PathRole.FILLS:
        return
    # An input inside a folder to be filled could be taken for, or replaced by, a file of the run.
    if _inside(other.path, one.path):
        raise _refused(one, f"holds {other.path}, which {other.option} {other.role.verb}")
    if one.chosen and other.role in _READ_WHOLE and _inside(one.path, other.path):
        raise _refused(one, f"would lie in the folder that {other.option} reads, {other.path}")


def _check_kept(one: PathUse, other: PathUse) -> None:
    """Refuse a file that is read and written, where the same file has another part to play."""
    if other.role in (*_READ, PathRole.KEEPS) and _same(one.path, other.path):
        raise _refused(one, f"is what {other.option} {other.role.verb}")
    if other.role in _READ_WHOLE and not one.path.is_dir() and _inside(one.path, other.path):
        raise _refused(one, f"would lie in the folder that {other.option} reads, {other.path}")


def _check_writable(one: PathUse) -> None:
    """Refuse a place that cannot be written; nothing is made here."""
    if one.role in _WRITTEN:
        if one.path.is_dir():
            raise _unwritable(one, "it is a folder")
        if one.path.exists():
            if not os.access(one.path, os.W_OK):
                raise _unwritable(one, "no permission")
            return
        folder = one.path.parent
    elif one.role is PathRole.FILLS:
        folder = one.path
    else:
        return
    # Up to the first folder that is there: it decides whether the missing ones can be made.
    while not (folder.exists() or folder.is_symlink()) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise _unwritable(one, f"{folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(one, f"no permission to write in {folder}")


def _refused(one: PathUse, why: str) -> InputError:
    named = "The run folder" if not one.chosen else one.option
    noun = "folder" if one.role is PathRole.FILLS else "file"
    return InputError(f"{named} {one.path} {why}.", f"Choose another {noun} for {one.option}.")


def _unwritable(one: PathUse, why: str) -> InputError:
    return InputError(f"Cannot write {one.option} {one.path}: {why}.", "Choose another place.")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file or folder: by their targets, or by a hard link."""
    if _real(one) == _real(other):
        return not one.exists() or one.is_file() or one.is_dir()  # a device takes everything
    with suppress(OSError):
        return os.path.samefile(one, other) and one.is_file()
    return False


def _inside(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder, at any depth."""
    return not folder.is_file() and _real(folder) in _real(path).parents


def uses_of(option: str, role: PathRole, value: object) -> Iterator[PathUse]:
    """Yield the paths that one value of the command line names; of a list, by its entries."""
    if isinstance(value, list | tuple):
        for entry in value:
            yield from uses_of(option, role, entry)
        return
    if not str(value) or (role is PathRole.DOCUMENTS and is_pasted(str(value), str(value))):
        return
    paths: list[str] = []

    def note(path: str) -> str:
        paths.append(path)
        return path

    map_paths(role, str(value), note)
    if role is PathRole.ADDRESS and (model := MODEL_ADDRESS.fullmatch(str(value).strip())):
        paths += [model[2]] if os.path.exists(model[2]) else []
    for path in paths:
        yield PathUse(option, role, Path(path))


def roles_of(hints: Mapping[str, Any]) -> dict[str, PathRole]:
    """Return the role of each parameter that names paths, from annotations with their extras."""
    roles_by_name = {}
    for name, hint in hints.items():
        roles = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, PathRole)]
        if roles:
            roles_by_name[name] = roles[0]
    return roles_by_name
