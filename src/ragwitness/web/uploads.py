"""The content of a form: texts, uploads, and paths of files on this machine.

Uploads go into a private folder, which is deleted when the pages end. Paths stay below the folder
in which the pages were started: a stolen page must not read the rest of the disk.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from ragwitness.core.errors import InputError
from ragwitness.core.types import LeftOut
from ragwitness.text.documents import Split, load_documents

MOST = 100 * 1000**2
"""Bytes that one form may bring."""

_DRAINED = 1000**3  # bytes of a refused form that are read past, so that its sender sees why
_MOST_FILES, _MOST_FIELDS, _LONGEST_FIELD = 2000, 100, 100_000
_NAME = 150  # characters of a file's name that are kept
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"|]')
_FILE_TARGET = re.compile(r"(lab:|http/|replay/)(.+)", re.DOTALL)
_NAMED_TARGET = re.compile(r"openai(-api/[\w.-]+)?/\S+")
_WITH_KEY = re.compile(r"(key|token|secret|passw|credential|auth)[^=&#]*=", re.IGNORECASE)


@dataclass(slots=True)
class Form:
    """A form that was sent.

    Attributes:
        texts: Its fields.
        files: Uploads by field, those without a name left out.
    """

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[UploadFile]] = field(default_factory=dict)


@asynccontextmanager
async def read_form(request: Request) -> AsyncIterator[Form]:
    """Read a form of at most ``MOST`` bytes; its uploads are gone once the block ends.

    Raises:
        HTTPException: It is larger, is no form, or its sender went away.
    """
    length = request.headers.get("content-length", "")
    # Refused by what its head says, before any of it is kept.
    if length.isdigit() and int(length) > MOST:
        await _drain(request)
        raise _too_large(int(length))
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await request.receive()
        read += len(message.get("body", b""))
        if read > MOST:
            raise _too_large(read)
        return message

    try:
        sent = await Request(request.scope, counted).form(
            max_files=_MOST_FILES, max_fields=_MOST_FIELDS, max_part_size=_LONGEST_FIELD
        )
    except ClientDisconnect:
        raise HTTPException(400, "The upload broke off. Nothing was kept.") from None
    form = Form()
    for name, value in sent.multi_items():
        if isinstance(value, str):
            form.texts[name] = value.replace("\r\n", "\n").strip()
        elif value.filename:
            form.files.setdefault(name, []).append(value)
    try:
        yield form
    finally:
        await sent.close()


def _too_large(size: int) -> HTTPException:
    return HTTPException(
        413,
        f"This upload has {size / 1000**2:,.0f} MB, and {MOST / 1000**2:,.0f} MB is the most that"
        " is taken. Nothing was kept. The file is on this machine: give its path instead. Or split"
        " it, and audit the parts.",
    )


async def _drain(request: Request) -> None:
    """Read past a body: browsers show no answer while they still send."""
    read = 0
    async for chunk in request.stream():
        read += len(chunk)
        if read > _DRAINED:
            return


def keep_uploads(files: Sequence[UploadFile], folder: Path) -> Path:
    """Store what was uploaded in one field; return the file, or the folder of several.

    Raises:
        InputError: One cannot be stored.
    """
    names = [file_name(upload.filename or "") for upload in files]
    # An earlier upload of this field is replaced as a whole.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        for number, (name, upload) in enumerate(zip(names, files, strict=True), 1):
            path = folder / name
            if path.exists():
                path = folder / f"{path.stem}-{number}{path.suffix}"
            with path.open("xb") as target:
                shutil.copyfileobj(upload.file, target)
    except OSError as error:
        raise InputError(f"The upload cannot be stored: {error.strerror}.") from error
    return folder if len(files) > 1 else folder / names[0]


def file_name(given: str) -> str:
    """Return a file name that cannot leave its folder and is not hidden in it."""
    # Browsers of old send a path; only what follows its last separator is a name.
    bare = _UNSAFE.sub("_", re.split(r"[/\\]", given)[-1]).strip().lstrip(".")
    stem, suffix = Path(bare).stem[:_NAME], Path(bare).suffix[:20]
    return f"{stem}{suffix}" if stem else "upload.txt"


def inside(base: Path, given: str) -> Path:
    """Return the file or folder of a path that somebody typed.

    Args:
        base: Where the pages were started; nothing beyond it is read.
        given: Relative to it, or whole.

    Raises:
        InputError: It is elsewhere, or is not there.
    """
    try:
        path = (base / Path(given).expanduser()).resolve()
        within, exists = path.is_relative_to(base.resolve()), path.exists()
    except (OSError, RuntimeError, ValueError):
        raise InputError("This is no path of a file.", "Correct it, or upload the file.") from None
    # Links and .. are followed first: where they lead decides. A path elsewhere is not looked up,
    # so that the message reveals nothing about it.
    if not within:
        raise InputError(
            f"This path leads out of {base}, the folder in which ragwitness view was started.",
            "Upload the file instead, or start ragwitness view in a folder that holds it.",
        )
    if not exists:
        raise InputError(f"There is no file or folder {path}.", "Correct the path, or upload it.")
    return path


def target_of(given: str, base: Path) -> str:
    """Return the address of a target that a page may ask.

    Raises:
        InputError: It holds a key, runs code, or names a file elsewhere.
    """
    if given.lower().startswith(("http://", "https://")):
        try:
            url = urlsplit(given)
            named, userinfo = url.hostname, "@" in url.netloc
        except ValueError:
            named, userinfo = None, False
        if not named:
            raise InputError(
                "This address has no host.", "An example: http://127.0.0.1:8000/v1#MODEL"
            )
        # The address is written into the run; a key must not be.
        if userinfo or _WITH_KEY.search(url.query):
            raise InputError(
                "This address holds what looks like a key, and it is stored with the run.",
                "Take it out of the address, and put it into the field for the key.",
            )
        return given
    if match := _FILE_TARGET.fullmatch(given):
        return match[1] + str(inside(base, match[2]))
    if _NAMED_TARGET.fullmatch(given):
        return given
    raise InputError(
        "This is no address that a page can ask.",
        "Give the URL of an OpenAI-compatible endpoint (http://host:port/v1, with #MODEL where it"
        " has several), openai/MODEL, or http/FILE.toml for another JSON service."
        " Systems in Python are for the command line: ragwitness audit --help.",
    )


@dataclass(frozen=True, slots=True)
class Source:
    """Documents that a form gave.

    Attributes:
        path: Where they are.
        name: Their name for people.
        summary: Their number and notes, or their name alone.
        uploaded: Whether they are an uploaded copy.
        left_out: Files and rows that cannot be read.
    """

    path: Path
    name: str
    summary: str
    uploaded: bool
    left_out: tuple[LeftOut, ...] = ()


def read_source(
    source: Source, text_field: str | None, encoding: str | None, *, paragraphs: bool
) -> Source:
    """Return documents with their summary and the files that were left out.

    Raises:
        InputError: None of it can be used.
    """
    try:
        split: Split = "paragraphs" if paragraphs else None
        loaded = load_documents(source.path, text_field=text_field, split=split, encoding=encoding)
    except InputError as error:
        # The copy is in a private folder; only its file name is reported.
        full, short = str(source.path), source.name
        message = error.message.replace(full, short).replace(f"{source.path.parent}/", "")
        raise InputError(message, error.hint.replace(full, short)) from None
    n = len(loaded.documents)
    summary = f"{n:,} document{'' if n == 1 else 's'}"
    summary = "; ".join((summary, *(note.removesuffix(".") for note in loaded.notes)))
    return replace(source, summary=summary, left_out=loaded.left_out)
