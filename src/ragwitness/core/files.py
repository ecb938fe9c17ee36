"""The one way files are written, appended to, locked and read.

Written: whole or not at all, and on the disk before its name is (:func:`replace_file`). Appended:
a line or nothing (:class:`Appender`). Packed: compressed once nobody appends to it any more, and
read all the same (:func:`pack`). Locked: a file beside it, which an ending process frees
(:func:`only_writer`). Read: with a limit, and one line that names the file and the next command
where it is not what it should be (:func:`read_file`).
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import mmap
import os
import secrets
import stat
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from ragwitness.core.errors import InputError, RagwitnessError

if TYPE_CHECKING:
    from filelock import BaseFileLock

MOST_BYTES = 1 << 30
"""Size in bytes above which a file is not read unless its reader says so."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
_FREE = "Free some disk space; the same command resumes."
_ANOTHER = "Choose a path in a folder that exists and is writable."
_SECRET = 0o600
_LOOK = 0.2  # seconds in which another process that only looks lets go again


# Written: whole or not at all.


def replace_file(
    path: str | Path,
    data: str | bytes | Iterable[str | bytes],
    *,
    secret: bool = False,
    new: bool = False,
    hint: str = "",
) -> None:
    """Write a file whole or not at all; when this returns, the disk has it.

    A link is followed, and a file that is there keeps its mode. A device such as
    ``/dev/stdout`` is written to directly. Missing folders are made.

    Args:
        path: The file.
        data: Its content, at once or in parts; text becomes UTF-8, half a surrogate pair an escape
            that JSON reads.
        secret: Whether its owner alone may read it (mode 0600).
        new: Refuse to replace a file.
        hint: Advice where it cannot be written, instead of the usual one.

    Raises:
        FileExistsError: ``new``, and there is such a file.
        InputError: It cannot be written there.
        RagwitnessError: The disk is full or fails.
    """
    chunks = (data,) if isinstance(data, str | bytes) else data
    target = Path(os.path.realpath(path))
    draft = target if new else target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if _is_device(Path(path), target):
            with Path(path).open("wb") as device:
                device.writelines(map(_encoded, chunks))
            return
        # 1. A draft in the same folder, which no other process or thread knows.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(draft, flags, _SECRET if secret else 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                if not secret and not new and os.name == "posix" and target.exists():
                    os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
                file.writelines(map(_encoded, chunks))
                # 2. Its content reaches the disk before its name does.
                file.flush()
                os.fsync(handle)
            # 3. One step puts it in the other's place; 4. the folder remembers it.
            if not new:
                draft.replace(target)
            _sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    except FileExistsError:
        if new:
            raise
        raise InputError(f"Cannot write {path}: a file is in the way.", hint or _ANOTHER) from None
    except OSError as error:
        raise unwritable(path, error, hint) from error


def _encoded(part: str | bytes) -> bytes:
    return part.encode("utf-8", "backslashreplace") if isinstance(part, str) else part


def write_rows(path: Path, rows: Iterable[object], *, secret: bool = False, hint: str = "") -> None:
    """Write JSON lines, whole or not at all; see :func:`replace_file`."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    replace_file(path, lines, secret=secret, hint=hint)


def unwritable(
    path: str | Path, error: OSError, hint: str = "", full: str = _FREE
) -> RagwitnessError:
    """Return the error for a file that the system does not let us write.

    A path that cannot be used is the user's to change; a disk that is full or fails is not.
    """
    message = f"Cannot write {path}: {error.strerror or error}."
    if error.errno in _FULL:
        return RagwitnessError(message, full)
    return InputError(message, hint or _ANOTHER)


def private_folder(path: Path) -> None:
    """Make a folder that its owner alone can enter.

    Raises:
        InputError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise unwritable(path, error) from error


def _is_device(given: Path, target: Path) -> bool:
    """Whether a path names a device, a pipe or an open file of a process, not a file."""
    if given.absolute().parts[1:2] in (("dev",), ("proc",)):
        return True
    return target.exists() and not target.is_file() and not target.is_dir()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems, and Windows, cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Appended to: whole lines, by one process.


class Appender:
    """Appends lines to a file, each whole or not at all. Keeps other writers out.

    Args:
        path: File to append to; created with its folder.
        what: Its name for people.

    Raises:
        InputError: The file cannot be opened for writing, or another process writes it.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        # Places of lines are known to one writer only.
        self._lock = _lock_beside(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not _taken(self._lock):
                raise InputError(
                    f"Another process is at work in {path.parent}.",
                    "Wait for it, or choose another folder with --run.",
                )
            _unpack(path)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._fd = os.open(path, flags, 0o666)
        except RagwitnessError:
            self._lock.release()
            raise
        except OSError as error:
            self._lock.release()
            raise InputError(
                f"Cannot write the {what} {path}: {error.strerror}.",
                "Choose another folder with --run.",
            ) from error
        self._size = os.fstat(self._fd).st_size
        # A line cut short when a process was killed must not swallow the next.
        self._cut = False
        if self._size:
            os.lseek(self._fd, -1, os.SEEK_END)
            self._cut = os.read(self._fd, 1) != b"\n"

    def append(self, row: dict[str, Any]) -> int:
        """Append a row; return the place of its line in bytes.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        offset = self._size + self._cut
        try:
            self._size += _append_whole(self._fd, b"\n" + line if self._cut else line, self._size)
        except OSError as error:
            raise RagwitnessError(
                f"Cannot write the {self._what} {self._path}: {error.strerror}.", _FREE
            ) from error
        self._cut = False
        return offset

    def close(self) -> None:
        """Close the file and let others write it."""
        os.close(self._fd)
        self._lock.release()


def append_synced(path: Path, data: bytes, full: str = _FREE) -> None:
    """Append bytes, all or none, and return once the disk has them. The caller holds the lock.

    Args:
        path: The file; made where it is missing.
        data: The bytes to append.
        full: Advice where the disk is full.

    Raises:
        InputError: The file cannot be written.
        RagwitnessError: The disk is full or fails.
    """
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        handle = os.open(path, flags, 0o666)
        try:
            _append_whole(handle, data, os.fstat(handle).st_size, sync=True)
        finally:
            os.close(handle)
    except OSError as error:
        raise unwritable(path, error, full=full) from error


def _append_whole(handle: int, data: bytes, size: int, *, sync: bool = False) -> int:
    """Append all of ``data`` or nothing to a file of ``size`` bytes; return how much."""
    try:
        if os.write(handle, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if sync:
            os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise
    return len(data)


# Packed: a file of lines that is complete lies as NAME.gz, which any gunzip reads, in members of
# some thousand lines. Where both are there, the plain one counts: it is whole whenever it is there.

PACKED = ".gz"
_BLOCK = 1 << 20  # bytes of lines in a member, and looked at together
_WORTH = 1 << 20  # smaller files stay as they are


def packed(path: Path) -> Path:
    """Return where a file lies once it is packed."""
    return path.with_name(path.name + PACKED)


def at_hand(path: Path) -> Path | None:
    """Return the form in which a file is there, plain or packed; None where it is not."""
    return next((form for form in (path, packed(path)) if form.exists()), None)


def pack(path: Path) -> None:
    """Compress a file that is complete; nothing happens to a small one, or while it is written.

    A process that is killed here leaves the plain file, the packed one, or both.

    Raises:
        InputError: It cannot be read or written.
        RagwitnessError: The disk is full or fails.
    """
    lock, small = _lock_beside(path), packed(path)
    if not path.is_file() or path.stat().st_size < _WORTH or not _taken(lock):
        return
    try:
        replace_file(small, (gzip.compress(data, 6, mtime=0) for _, _, data in blocks(path)))
        # Read back before the plain file goes: it may have been paid for.
        if not _begins_with(path, small):
            small.unlink()
            raise OSError(errno.EIO, "what was compressed does not come back")
        path.unlink()
    except OSError as error:
        raise unwritable(small, error) from error
    finally:
        lock.release()


def _unpack(path: Path) -> None:
    """Put the plain file back where it can be appended to; the caller holds the lock."""
    small = packed(path)
    if not small.exists():
        return
    # Beside a plain file: that of a killed packing is the same; one that an earlier version has
    # begun anew is added.
    sources = [small, path] if path.exists() else [small]
    if len(sources) == 1 or not _begins_with(path, small):
        replace_file(path, (data for source in sources for _, _, data in _blocks_in(source)))
    small.unlink()


def _begins_with(path: Path, small: Path) -> bool:
    with path.open("rb") as plain:
        return all(plain.read(len(data)) == data for _, _, data in _blocks_in(small))


def blocks(path: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Return a file of lines, plain or packed, in blocks of whole lines.

    Args:
        path: The file, by either of its names.
        start: Where a block begins.

    Returns:
        Place and length of each block in the file as it lies there, and its lines; only the last
        may end within a line.

    Raises:
        OSError: It is not there, cannot be read, or is damaged.
    """
    return _blocks_in(at_hand(path) or path, start)


def _blocks_in(form: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    with form.open("rb") as file:
        file.seek(start)
        if form.suffix != PACKED:
            while data := file.read(_BLOCK):
                data += file.readline()
                yield start, len(data), data
                start += len(data)
            return
        rest = b""
        while rest or (rest := file.read(_BLOCK)):
            member, lines = zlib.decompressobj(wbits=31), []
            taken = len(rest)
            try:
                lines.append(member.decompress(rest))
                while not member.eof and (more := file.read(_BLOCK)):
                    taken += len(more)
                    lines.append(member.decompress(more))
            except zlib.error:
                raise OSError(errno.EIO, "the compressed file is damaged") from None
            if not member.eof:
                raise OSError(errno.EIO, "the compressed file ends too early")
            rest = member.unused_data
            yield start, taken - len(rest), b"".join(lines)
            start += taken - len(rest)


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, plain or packed; see :func:`blocks`."""
    for _, _, data in blocks(path):
        yield from io.BytesIO(data)


def open_lines(path: Path) -> IO[bytes]:
    """Open a file of lines for reading at any place; a packed one is unpacked out of sight.

    Raises:
        OSError: It is not there, cannot be read, or is damaged.
    """
    if path.exists() or not packed(path).exists():
        return path.open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it, and it is gone
    for _, _, data in blocks(path):
        file.write(data)
    file.seek(0)
    return file


# Locked: by a file beside it, so that readers are never kept out. A process that ends, however it
# ends, lets go.

_THREADS = threading.Lock()


@contextmanager
def only_writer(lock: Path) -> Iterator[None]:
    """Wait until no other process and no other thread holds this lock, then hold it.

    Args:
        lock: The lock's own file; its owner alone can open it.

    Raises:
        OSError: The file cannot be made.
    """
    from filelock import FileLock

    with _THREADS, FileLock(lock, mode=_SECRET, thread_local=False, poll_interval=0.002):
        yield


def at_work(path: Path) -> bool:
    """Whether a process appends to a file now."""
    lock = _lock_beside(path)
    if not Path(lock.lock_file).exists():
        return False
    free = _taken(lock)
    lock.release()
    return not free


def _lock_beside(path: Path) -> BaseFileLock:
    from filelock import FileLock

    return FileLock(path.with_name(f".{path.name}.lock"), thread_local=False, poll_interval=0.01)


def _taken(lock: BaseFileLock) -> bool:
    """Take a lock unless somebody keeps it; whoever only looks lets go at once."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=_LOOK)
    except Timeout:
        return False
    except OSError as error:
        raise unwritable(lock.lock_file, error, "Choose another folder with --run.") from error
    return True


# Read: with a limit, and one line for whatever is wrong.


class Closing:
    """Closes itself at the end of a ``with`` block."""

    def close(self) -> None:
        """Give back what is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_file(path: Path, most: int = MOST_BYTES, hint: str = "", *, secret: bool = False) -> bytes:
    """Return a file's bytes.

    Args:
        path: The file.
        most: Its largest size in bytes.
        hint: Advice where it is missing or malformed.
        secret: Refuse a file that other users can open.

    Raises:
        InputError: It is missing, unreadable, longer, or ``secret`` and open to others.
    """
    try:
        with path.open("rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint) from error
    if len(data) > most:
        raise InputError(f"{path} has more than {most:,} bytes, which no such file has.", hint)
    if secret and os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"{path} is secret, and other users of this machine can open it.",
            f"Run: chmod 600 {path}",
        )
    return data


def map_file(path: Path, most: int = MOST_BYTES, hint: str = "") -> bytes | mmap.mmap:
    """Return a file as it lies on the disk, where what nobody looks at takes no memory.

    Raises:
        InputError: As :func:`read_file`, which reads what cannot be mapped, such as a pipe.
    """
    with suppress(OSError):
        if path.is_file() and 0 < path.stat().st_size <= most:
            with path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return read_file(path, most, hint)


def read_object(
    path: Path, hint: str = "", *, most: int = MOST_BYTES, secret: bool = False
) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    Raises:
        InputError: As :func:`read_file`; or it is empty, cut short, not JSON, not an object.
    """
    data = read_file(path, most, hint, secret=secret)
    if not data.strip():
        raise InputError(f"{path} is empty.", hint)
    return _object(data, str(path), hint)


def read_rows(path: Path, hint: str = "") -> list[dict[str, Any]]:
    """Return the JSON objects of a file's lines.

    Args:
        path: The file.
        hint: Advice where it is missing or malformed.

    Raises:
        InputError: As :func:`read_file`; or a line is not a JSON object.
    """
    # Not splitlines: a text may hold separators that JSON does not escape.
    lines = read_file(path, hint=hint).split(b"\n")
    return [
        _object(line, f"{path}, line {number},", hint)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def parse_json(text: str | bytes, **hooks: Any) -> Any:
    """Return the value of a JSON text; a name that occurs twice in one object is refused.

    Readers differ in which of the two they take.

    Raises:
        ValueError: It is no JSON, or a name occurs twice.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) != len(items):
            raise ValueError("a name occurs twice in an object")
        return value

    return json.loads(text, object_pairs_hook=pairs, **hooks)


def _object(data: bytes, where: str, hint: str) -> dict[str, Any]:
    try:
        value = parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text.", hint) from None
    except json.JSONDecodeError as error:
        # The end came too early where nothing but space follows the mistake.
        early = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        kind = "ends in the middle" if early else f"is not JSON: {error}"
        raise InputError(f"{where} {kind}.", hint) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON that can be read: {error}.", hint) from None
    if not isinstance(value, dict):
        raise InputError(f"{where} does not hold a JSON object.", hint)
    return value


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        InputError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(
            f"{path} cannot be read: {reason}.", "Give a file of plain text."
        ) from error


def files_digest(paths: Iterable[Path]) -> str:
    """Return the sha256 (hex) over the contents of files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
