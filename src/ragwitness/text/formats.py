"""The text of a file: the formats that documents come in, recognised by their content.

Word, OpenDocument, EPUB and HTML are markup, and one reader of markup reads them all. A format is
a row with the elements that part paragraphs and those without text of the document. No entity is
ever expanded and no address followed. ``docs/documents.md`` lists the losses of each format.
"""

from __future__ import annotations

import codecs
import logging
import posixpath
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

_MOST = 64 * 1024**2  # bytes of markup that are unpacked of one file
SAMPLE = 4 * 1024**2  # bytes by which an encoding is recognised: every text of one document
_PDF_END = 2048  # last bytes of a PDF, in which it says that it is whole

_WHOLE_COPY = "Get a whole copy of it, or save it again with the program that made it."
_UNPACK = "Unpack it, and give the folder."
_SPLIT = "Split it, and give the parts."
_TOO_MUCH = f"more than {_MOST // 1024**2} MiB of text and markup"


class UnreadableError(Exception):
    """Why a file gives no text.

    Attributes:
        why: The file's name begins the sentence.
        hint: Advice for its owner.
    """

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.why, self.hint = why, hint


class Extract(NamedTuple):
    """The text of a file, and a remark for its reader (empty for none)."""

    text: str
    note: str = ""


def extract_text(stream: BinaryIO, suffix: str, encoding: str | None, most: int) -> Extract | None:
    """Return the text of a file that is no plain text; None for plain text.

    Args:
        stream: The file, seekable.
        suffix: Of its name, in small letters.
        encoding: Of what is not in UTF-8; None to recognise it.
        most: Characters after which a long file is read no further.

    Raises:
        UnreadableError: It is in no format that is read, is damaged, locked or without text.
    """
    head = stream.read(512).removeprefix(codecs.BOM_UTF8).lstrip()
    stream.seek(0)
    if suffix in HTML_ENDINGS or head.lower().startswith((b"<!doctype html", b"<html")):
        page, note = decoded(_whole(stream), encoding)
        return Extract(_visible(page, _HTML), note)
    # Formats by their first bytes: readable ones, then those that are named and refused.
    for magic, read in _READERS.items():
        if head.startswith(magic):
            return read(stream, most)
    for magic, (kind, hint) in _REFUSED.items():
        if head.startswith(magic):
            raise UnreadableError(f"is {kind}", hint)
    if head[257:262] == b"ustar":
        raise UnreadableError("is a TAR archive", _UNPACK)
    return None


def _whole(stream: BinaryIO) -> bytes:
    if len(data := stream.read(_MOST + 1)) > _MOST:
        raise UnreadableError(f"has {_TOO_MUCH}", _SPLIT)
    return data


# Plain text: by its mark, else UTF-8, else as its owner says, else by its letters.

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LEGACY = (
    "cp1252 gb18030 big5 shift_jis euc_jp euc_kr cp1251 koi8_r cp1250 cp1253 cp1254 cp1255 cp1256"
    " mac_roman"
).split()


_MARGIN = 0.02  # of likeness to a language, in which two encodings fit a text alike


def encoding_of(sample: bytes, given: str | None, *, whole: bool = False) -> tuple[str, str]:
    """Return the encoding of a text, and a remark where it was recognised.

    Args:
        sample: Its first bytes.
        given: The encoding where it is not UTF-8; None to recognise it.
        whole: Whether the sample is all of it.

    Raises:
        UnreadableError: It is no text, or its encoding cannot be recognised.
    """
    # 1. A byte-order mark, or valid UTF-8.
    for mark, name in _MARKS.items():
        if sample.startswith(mark):
            return name, ""
    binary = b"\0" in sample
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
        if not binary:
            return "utf-8", ""
    except UnicodeDecodeError as error:
        # One letter that breaks off is where a file was cut, and not another encoding.
        if whole and error.end == len(sample) and error.reason == "unexpected end of data":
            return "utf-8", ""
    # 2. The encoding that the owner names.
    if given:
        return given, ""
    if binary:
        raise UnreadableError(
            "is binary and not text, or UTF-16 without its mark",
            "If it is UTF-16: --encoding utf-16-le",
        )
    # 3. Recognition by letters, where exactly one reading fits.
    from charset_normalizer import from_bytes

    # Around the first letter beyond ASCII: all before it looks alike in every encoding.
    start = max(0, next(at for at, byte in enumerate(sample) if byte > 127) - 10_000)
    matches = from_bytes(sample[start : start + 100_000], cp_isolation=list(_LEGACY))
    # Several may fit alike and give other letters: to choose one would be to invent a text.
    best = matches.best()
    rivals = (
        []
        if best is None
        else [
            match
            for match in matches
            if match.chaos <= best.chaos and match.coherence > best.coherence - _MARGIN
        ]
    )
    names = [next(n for n in _LEGACY if n in match.could_be_from_charset) for match in rivals]
    if len({str(match) for match in rivals}) != 1:
        raise UnreadableError(
            f"is not in UTF-8, and may be in {' or '.join(names) or 'any other encoding'}",
            "Name its encoding, e.g. --encoding windows-1252, or save it in UTF-8.",
        )
    return names[0], f"read as {names[0]}, recognised by its letters (--encoding names another)"


def decoded(data: bytes, given: str | None) -> tuple[str, str]:
    """Return bytes as text, and a remark on the encoding.

    Raises:
        UnreadableError: It is no text, or in another encoding.
    """
    encoding, note = encoding_of(data, given, whole=True)
    try:
        return data.decode(encoding), note
    except UnicodeDecodeError:
        raise not_in(encoding) from None


def not_in(encoding: str) -> UnreadableError:
    """Return why a text cannot be read in an encoding."""
    hint = "It may be cut short. Or name its encoding, e.g. --encoding windows-1252."
    return UnreadableError(f"is not valid {encoding.upper()}", hint)


# Markup.


class _Form(NamedTuple):
    """A kind of markup.

    Attributes:
        marks: Text in place of an element; a paragraph's is before and after it.
        hidden: Elements whose text is not the document's.
        text: Elements that alone hold text, as it is; empty where all do, and white space is one.
    """

    marks: Mapping[str, str]
    hidden: frozenset[str]
    text: frozenset[str] = frozenset()


_PARAGRAPH = "\n\n"
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_HTML = _Form(
    dict.fromkeys(
        "address article aside blockquote body caption dd details div dl dt fieldset figcaption"
        " figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary"
        " table ul".split(),
        _PARAGRAPH,
    )
    | {"br": "\n", "tr": "\n", "td": "\t", "th": "\t"},
    frozenset({"script", "style", "noscript", "template", "title", "svg"}),
)
_WORD = _Form(
    {"w:p": _PARAGRAPH, "w:tab": "\t", "w:br": "\n", "w:cr": "\n", "w:nobreakhyphen": "-"},
    # Text boxes and moved text occur twice in the XML (DrawingML and legacy VML).
    frozenset({"mc:fallback", "w:movefrom", "w:rt"}),
    frozenset({"w:t", "m:t"}),
)
_OPEN = _Form(
    {
        "text:p": _PARAGRAPH, "text:h": _PARAGRAPH, "table:table-cell": "\t",
        "text:tab": "\t", "text:line-break": "\n", "text:s": " ",
    },
    frozenset({"text:note", "office:annotation", "text:tracked-changes", "office:styles"}),
)  # fmt: skip


class _Visible(HTMLParser):
    """Collects the text of a markup that a reader sees."""

    def __init__(self, form: _Form) -> None:
        super().__init__()
        self._form, self._holding = form, not form.text
        self.pieces: list[str] = []
        self.hiding, self._depth = "", 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        # Within a hidden element only its own depth counts.
        if self.hiding:
            self._depth += tag == self.hiding
        elif tag in self._form.hidden or (tag not in _VOID and _unseen(attrs)):
            self.hiding, self._depth = tag, 1
        else:
            self.pieces.append(self._form.marks.get(tag, ""))
            self._holding = self._holding or tag in self._form.text

    def handle_endtag(self, tag: str) -> None:
        if self.hiding:
            self._depth -= tag == self.hiding
            self.hiding = self.hiding if self._depth else ""
            return
        if self._form.marks.get(tag) == _PARAGRAPH:
            self.pieces.append(_PARAGRAPH)
        self._holding = self._holding and tag not in self._form.text

    def handle_data(self, data: str) -> None:
        if self._holding and not self.hiding:
            self.pieces.append(data if self._form.text else re.sub(r"[ \t\r\n\f]+", " ", data))


def _unseen(attrs: Sequence[tuple[str, str | None]]) -> bool:
    style = "".join((dict(attrs).get("style") or "").split()).lower()
    return any(name == "hidden" for name, _ in attrs) or "display:none" in style


def _visible(markup: str, form: _Form) -> str:
    reader = _Visible(form)
    reader.feed(markup)
    reader.close()
    if reader.hiding:
        raise UnreadableError(f"is cut short: <{reader.hiding}> is never closed", _WHOLE_COPY)
    lines = (line.strip(" \t") for line in "".join(reader.pieces).split("\n"))
    return re.sub(r"\n{3,}", _PARAGRAPH, "\n".join(lines)).strip()


class _Tags(HTMLParser):
    """Collects elements with their attributes, their prefix left out."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag.rpartition(":")[2], dict(attrs)))

    def named(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of each element of a name."""
        return [attributes for tag, attributes in self.tags if tag == name]


# Word, OpenDocument and EPUB: markup in a ZIP archive.

_WORD_PARTS = re.compile(r"word/(document|endnotes|footnotes)\d*\.xml")
_NO_TEXTS = {
    "xl/workbook.xml": ("an Excel workbook", "Save the sheet with the texts as CSV."),
    "ppt/presentation.xml": ("a PowerPoint presentation", "Save it as PDF, and give that."),
}


_BROKEN = (
    BadZipFile, EOFError, LookupError, NotImplementedError, OSError, ValueError, zlib.error
)  # fmt: skip


def _zipped(stream: BinaryIO, most: int) -> Extract:  # noqa: ARG001
    try:
        with ZipFile(stream) as archive:
            return Extract(_of_archive(archive))
    except _BROKEN as e:
        raise UnreadableError(
            "is damaged or cut short: its ZIP archive cannot be read", _WHOLE_COPY
        ) from e
    except RuntimeError as error:  # as zipfile refuses a member with a password
        raise UnreadableError("is locked with a password", "Save it without one.") from error


def _of_archive(archive: ZipFile) -> str:
    names = sorted(archive.namelist())
    # Word by its parts, the others by their declared type.
    if sources := [name for name in names if _WORD_PARTS.fullmatch(name)]:
        return _joined(_unpacked(archive, sources), _WORD)
    kind = next(_unpacked(archive, ["mimetype"])).strip() if "mimetype" in names else ""
    if kind == "application/epub+zip":
        return _joined(_unpacked(archive, _chapters(archive, names)), _HTML)
    if kind.startswith("application/vnd.oasis.opendocument.text"):
        return _joined(_unpacked(archive, ["content.xml"]), _OPEN)
    format_, hint = next((_NO_TEXTS[name] for name in names if name in _NO_TEXTS), ("", _UNPACK))
    raise UnreadableError(f"is {format_ or 'a ZIP archive'}", hint)


def _chapters(archive: ZipFile, names: Sequence[str]) -> list[str]:
    """The files of a book in the order of reading (EPUB 3, section 5.7: the spine)."""
    # 1. The package, and the file of each item.
    container = _Tags(next(_unpacked(archive, ["META-INF/container.xml"])))
    package = container.named("rootfile")[0]["full-path"] or ""
    book = _Tags(next(_unpacked(archive, [package])))
    hrefs = {item["id"]: item.get("href") or "" for item in book.named("item")}
    home = posixpath.dirname(package)
    # 2. The spine: the order of reading.
    files = (unquote(hrefs[item["idref"]]) for item in book.named("itemref"))
    chapters = [posixpath.normpath(posixpath.join(home, file)) for file in files]
    # 3. A locked chapter would be read as noise.
    locked = "META-INF/encryption.xml"
    if locked in names and set(chapters) & {
        unquote(reference.get("uri") or "")
        for reference in _Tags(next(_unpacked(archive, [locked]))).named("cipherreference")
    }:
        raise UnreadableError("is locked by its seller (DRM)", "Give the text without the lock.")
    return chapters


def _unpacked(archive: ZipFile, names: Iterable[str]) -> Iterator[str]:
    """Yield members as text; the size that they declare is not trusted."""
    room = _MOST
    for name in names:
        with archive.open(name) as member:
            data = member.read(room + 1)
        if (room := room - len(data)) < 0:
            raise UnreadableError(f"unpacks to {_TOO_MUCH}", _SPLIT)
        mark = next((name for sign, name in _MARKS.items() if data.startswith(sign)), "utf-8")
        yield data.decode(mark)


def _joined(pages: Iterable[str], form: _Form) -> str:
    return _PARAGRAPH.join(filter(None, (_visible(page, form) for page in pages)))


# PDF and RTF, by libraries.


def _pdf(stream: BinaryIO, most: int) -> Extract:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its repairs need no remark
    stream.seek(max(0, stream.seek(0, 2) - _PDF_END))
    if b"%%EOF" not in stream.read():
        raise UnreadableError("is cut short: the end of the PDF is missing", _WHOLE_COPY)
    # A limit of characters bounds the work on a long book.
    try:
        reader = PdfReader(stream)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(
                "is an encrypted PDF that opens with a password alone",
                "Save a copy without the password.",
            )
        pages, size = [], 0
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            if (size := size + len(pages[-1])) > most:
                break
    except UnreadableError:
        raise
    except Exception as error:  # a hostile or broken file may raise anything in there
        message = f"is a damaged PDF ({type(error).__name__})"
        raise UnreadableError(message, _WHOLE_COPY) from error
    # Pages without text are scans.
    blank = sum(not page for page in pages)
    if blank == len(pages):
        raise UnreadableError(
            f"has no text on any of its {len(pages)} pages, as a scan has none",
            "Recognise its text first, e.g. ocrmypdf IN.pdf OUT.pdf, and give that.",
        )
    note = f"read without {blank} of its {len(pages)} pages, which hold no text" if blank else ""
    return Extract(_PARAGRAPH.join(filter(None, pages)), note)


def _rtf(stream: BinaryIO, most: int) -> Extract:  # noqa: ARG001
    from striprtf.striprtf import rtf_to_text

    data = _whole(stream).rstrip(b"\0 \r\n")
    if not data.endswith(b"}"):
        raise UnreadableError("is cut short: the end of the RTF is missing", _WHOLE_COPY)
    try:
        return Extract(str(rtf_to_text(data.decode("cp1252", "replace"), errors="replace")))  # type: ignore[no-untyped-call]
    except Exception as error:  # it expects a sound file
        raise UnreadableError("is a damaged RTF file", _WHOLE_COPY) from error


HTML_ENDINGS = (".html", ".htm", ".xhtml")
_READERS: Mapping[bytes, Callable[[BinaryIO, int], Extract]] = {
    b"%PDF": _pdf,
    b"{\\rtf": _rtf,
    b"PK\x03\x04": _zipped,
}
_REFUSED = {
    b"\xd0\xcf\x11\xe0": (
        "an old Word file, or an Office file with a password",
        "Save it as .docx without a password, and give that.",
    ),
    b"PK\x05\x06": ("an empty ZIP archive", _UNPACK),
    b"\x1f\x8b": ("a gzip archive", _UNPACK),
    b"BZh": ("a bzip2 archive", _UNPACK),
    b"\xfd7zXZ": ("an xz archive", _UNPACK),
    b"7z\xbc\xaf": ("a 7z archive", _UNPACK),
    b"Rar!": ("a RAR archive", _UNPACK),
}
