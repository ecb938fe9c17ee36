"""The text of a file: the formats that documents come in, recognised by their content.

Word, OpenDocument, EPUB and HTML are markup, which lxml parses: a format is a row with the elements
that part paragraphs and those without text of the document. No entity is ever expanded and no
address followed. ``docs/documents.md`` lists the losses of each format. A parser may be slow or
greedy on a hostile file: :mod:`ragwitness.text.worker` calls this module in a separate process.
"""

from __future__ import annotations

import codecs
import logging
import math
import posixpath
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from html.entities import html5
from typing import Any, BinaryIO, NamedTuple, TypeAlias
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


_Reader: TypeAlias = Callable[[BinaryIO, int], Extract]


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
    head = _head(stream)
    if _is_html(head, suffix):
        data = _whole(stream)
        page, note = decoded(data, encoding or _declared(data))
        return Extract(_visible(_page(page), _HTML), note)
    # Formats by their first bytes: readable ones, then those that are named and refused.
    if reader := _reader(head, suffix):
        return reader(stream, most)
    for magic, (kind, hint) in _REFUSED.items():
        if head.startswith(magic):
            raise UnreadableError(f"is {kind}", hint)
    if head[257:262] == b"ustar":
        raise UnreadableError("is a TAR archive", _UNPACK)
    return None


def is_plain(stream: BinaryIO, suffix: str) -> bool:
    """Whether a file is in none of the formats that a parser reads."""
    head = _head(stream)
    return not (_is_html(head, suffix) or _reader(head, suffix))


def _reader(head: bytes, suffix: str) -> _Reader | None:
    if suffix == ".pdf" and b"%PDF-" in head:  # some have other bytes in front
        return _pdf
    return next((reader for magic, reader in _READERS.items() if head.startswith(magic)), None)


def _head(stream: BinaryIO) -> bytes:
    head = stream.read(512).removeprefix(codecs.BOM_UTF8).lstrip()
    stream.seek(0)
    return head


def _is_html(head: bytes, suffix: str) -> bool:
    return suffix in HTML_ENDINGS or head.lower().startswith((b"<!doctype html", b"<html"))


_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,100}?encoding=["']([\w.-]+)""",
    re.IGNORECASE,
)


def _declared(data: bytes) -> str | None:
    """The encoding that a page declares, as browsers read its name (WHATWG, section 4.2)."""
    import webencodings

    match = _CHARSET.search(re.sub(rb"(?s)<!--.*?(?:-->|\Z)", b"", data[:65536]))
    encoding = match and webencodings.lookup((match[1] or match[2]).decode("ascii", "replace"))
    # A page whose bytes can be searched for this is in no encoding of two bytes a letter.
    return encoding.codec_info.name if encoding and "utf-" not in encoding.name else None


def _whole(stream: BinaryIO) -> bytes:
    if len(data := stream.read(_MOST + 1)) > _MOST:
        raise UnreadableError(f"has {_TOO_MUCH}", _SPLIT)
    return data


# Plain text: by its mark, else UTF-8, else as its owner says, else by its letters.

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LEGACY = (
    "cp1252 gb18030 big5 shift_jis euc_jp euc_kr cp1251 koi8_r cp1250 cp1253 cp1254 cp1255 cp1256"
    " mac_roman cp874 iso8859_2 iso8859_5 iso8859_6 iso8859_7 cp850 cp852 cp866 mac_cyrillic"
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
            return "iso2022_jp" if b"\x1b$" in sample else "utf-8", ""
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
    rivals = [
        match
        for match in matches
        if best and match.chaos <= best.chaos and match.coherence > best.coherence - _MARGIN
    ]
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
    {"p": _PARAGRAPH, "tab": "\t", "br": "\n", "cr": "\n", "nobreakhyphen": "-"},
    # Text boxes and moved text occur twice in the XML (DrawingML and legacy VML); the properties of
    # a paragraph hold tabs too.
    frozenset({"movefrom", "rt", "ppr"}),
    frozenset({"t"}),
)
_OPEN = _Form(
    {
        "p": _PARAGRAPH, "h": _PARAGRAPH, "table-cell": "\t",
        "tab": "\t", "line-break": "\n", "s": " ",
    },
    frozenset({"note", "annotation", "tracked-changes", "styles"}),
)  # fmt: skip


_NAMED = re.compile(r"&([A-Za-z]\w{1,31};)")
_XML = frozenset({"amp;", "lt;", "gt;", "quot;", "apos;"})
_EMPTY = re.compile(r"<((?!(?:area|base|br|col|embed|hr|img|input|link|meta|wbr)\b)\w+)([^<>]*)/>")


# Left open, these hide all that follows.
_SWALLOWING = {"<!--": "-->", "<script>": "</script", "<style>": "</style"}


def _parser(kind: Callable[..., Any], **options: Any) -> Any:
    """A parser that loads nothing and keeps only what a reader may see."""
    return kind(
        encoding="utf-8",
        no_network=True,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
        **options,
    )


def _xml(markup: str) -> Any:
    """Parse XML; entities other than characters stay references.

    Raises:
        ValueError: It is no XML.
    """
    from lxml import etree

    named = _NAMED.sub(lambda m: m[0] if m[1] in _XML else html5.get(m[1], m[0]), markup)
    parser = _parser(etree.XMLParser, resolve_entities=False, load_dtd=False, recover=True)
    root = etree.fromstring(named.encode("utf-8", "surrogatepass"), parser)
    # Programs write prefixes that they do not declare, and entities that nobody does.
    forgiven = ("ERR_UNDECLARED_ENTITY", "WAR_UNDECLARED_ENTITY")
    for entry in parser.error_log:
        if entry.domain_name != "NAMESPACE" and entry.type_name not in forgiven:
            raise ValueError(entry.message)
    if root is None:
        raise ValueError("no element")
    return root


def _page(markup: str) -> Any:
    """Parse a page: as XML where it is some, else as browsers read HTML."""
    from lxml import etree

    if markup.lstrip("\ufeff \t\r\n").startswith("<?xml"):
        with suppress(ValueError):
            return _xml(markup)
        markup = _EMPTY.sub(r"<\1\2></\1>", markup)
    small = markup.lower()
    for opens, closes in _SWALLOWING.items():
        if small.rfind(opens.rstrip(">")) > small.rfind(closes):
            raise UnreadableError(f"is cut short: {opens} is never closed", _WHOLE_COPY)
    parser = _parser(etree.HTMLParser)
    try:
        page = etree.fromstring(markup.encode("utf-8", "surrogatepass"), parser)
    except etree.ParserError:
        return None
    # A parser of HTML forgives every other fault.
    if any(entry.level_name == "FATAL" for entry in parser.error_log):
        raise UnreadableError("has elements within elements too deep to be read", _WHOLE_COPY)
    return page


def _name(node: Any) -> str:
    """The name of an element without its namespace; empty for references."""
    tag = node.tag if isinstance(node.tag, str) else ""
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def _visible(root: Any, form: _Form) -> str:
    """The text of a markup that a reader sees."""
    from lxml import etree

    pieces: list[str] = []
    hiding: Any = None

    def add(text: str | None) -> None:
        if text:
            pieces.append(text if form.text else re.sub(r"[ \t\r\n\f]+", " ", text))

    def holds(node: Any) -> bool:
        return node is not None and (not form.text or _name(node) in form.text)

    # Without recursion: a hostile file may nest elements by the thousand.
    for event, node in () if root is None else etree.iterwalk(root, ("start", "end")):
        if event == "start" and hiding is None:
            if _name(node) in form.hidden or _unseen(node):
                hiding = node
                continue
            pieces.append(form.marks.get(_name(node), ""))
            if holds(node if _name(node) else node.getparent()):
                add(node.text)
        elif event == "end" and hiding in (None, node):
            if hiding is None and form.marks.get(_name(node)) == _PARAGRAPH:
                pieces.append(_PARAGRAPH)
            hiding = None
            if holds(node.getparent()):
                add(node.tail)
    lines = (line.strip(" \t") for line in "".join(pieces).split("\n"))
    return re.sub(r"\n{3,}", _PARAGRAPH, "\n".join(lines)).strip()


def _unseen(node: Any) -> bool:
    if _name(node) == "fallback":  # a program shows a choice before it that has text
        return any(
            "".join(choice.itertext()).strip() for choice in node.itersiblings(preceding=True)
        )
    style = "".join((node.get("style") or "").split()).lower() if _name(node) else ""
    styled = "display:none" in style or "visibility:hidden" in style
    return styled or (bool(_name(node)) and node.get("hidden") is not None)


# Word, OpenDocument and EPUB: markup in a ZIP archive.

_CONTAINER = "meta-inf/container.xml"
_NOTES = re.compile(r"(?:.*/)?(?:endnotes|footnotes)\d*\.xml", re.IGNORECASE)
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
            return _of_archive(archive)
    except _BROKEN as e:
        raise UnreadableError(
            "is damaged or cut short: its ZIP archive cannot be read", _WHOLE_COPY
        ) from e
    except RuntimeError as error:  # as zipfile refuses a member with a password
        raise UnreadableError("is locked with a password", "Save it without one.") from error


def _of_archive(archive: ZipFile) -> Extract:
    # Readers find a member whatever the case of its name and the slashes in it.
    names = {name.replace("\\", "/").lstrip("/").lower(): name for name in archive.namelist()}
    kind = next(_unpacked(archive, [names["mimetype"]])).strip() if "mimetype" in names else ""
    main = _main_part(archive, names)
    form, hint = next((_NO_TEXTS[name] for name in (main, *names) if name in _NO_TEXTS), ("", ""))
    if kind.startswith("application/vnd.oasis.opendocument.text"):
        return _joined(_unpacked(archive, [names["content.xml"]]), _OPEN)
    if _CONTAINER in names and not kind.startswith("application/vnd.oasis"):
        chapters, missing = _chapters(archive, names)
        book = _joined(_unpacked(archive, chapters), _HTML)
        note = f"read without {missing} of its {len(chapters) + missing} chapters, which it lacks"
        return book._replace(note=note if missing else "")
    if main in names and not form:
        notes = [name for lower, name in names.items() if _NOTES.fullmatch(lower)]
        return _joined(_unpacked(archive, [names[main], *sorted(notes)]), _WORD)
    raise UnreadableError(f"is {form or 'a ZIP archive'}", hint or _UNPACK)


def _main_part(archive: ZipFile, names: Mapping[str, str]) -> str:
    """The document of an Office file: the target of its package's first relationship."""
    if "_rels/.rels" in names:
        for item in _xml(next(_unpacked(archive, [names["_rels/.rels"]]))).iter():
            if (item.get("Type") or "").endswith("/officeDocument"):
                return (item.get("Target") or "").lstrip("/").lower()
    return "word/document.xml"


def _chapters(archive: ZipFile, names: Mapping[str, str]) -> tuple[list[str], int]:
    """The files of a book in the order of reading (EPUB 3, section 5.7), and how many it lacks."""

    def parse(name: str) -> dict[str, list[Any]]:
        """The elements of a file by their names."""
        elements: dict[str, list[Any]] = {}
        for node in _xml(next(_unpacked(archive, [names[name.lower()]]))).iter():
            elements.setdefault(_name(node), []).append(node)
        return elements

    # 1. The package, and the file of each item.
    packages = [node.get("full-path") or "" for node in parse(_CONTAINER).get("rootfile", ())]
    package = next((path for path in packages if path.lower() in names), "")
    book = parse(package) if package else {}
    hrefs = {item.get("id"): item.get("href") or "" for item in book.get("item", ())}
    home = posixpath.dirname(package)
    # 2. The spine: the order of reading. Readers leave out a chapter that is not there.
    paths = [
        posixpath.normpath(posixpath.join(home, unquote(href.partition("#")[0]))).lower()
        for item in book.get("itemref", ())
        for href in [hrefs.get(item.get("idref"), "")]
    ]
    files = {unquote(name): names[name] for name in names}
    chapters = [files[path] for path in paths if path in files]
    if not chapters:
        raise UnreadableError("has none of the chapters that it lists", _WHOLE_COPY)
    # 3. A locked chapter would be read as noise.
    locked = "META-INF/encryption.xml"
    if locked.lower() in names and set(chapters) & {
        unquote(reference.get("URI") or "")
        for reference in parse(locked).get("cipherreference", [])
    }:
        raise UnreadableError("is locked by its seller (DRM)", "Give the text without the lock.")
    return chapters, len(paths) - len(chapters)


def _unpacked(archive: ZipFile, names: Iterable[str]) -> Iterator[str]:
    """Yield members as text; the size that they declare is not trusted."""
    room = _MOST
    for name in names:
        with archive.open(name) as member:
            data = member.read(room + 1)
        if (room := room - len(data)) < 0:
            raise UnreadableError(f"unpacks to {_TOO_MUCH}", _SPLIT)
        yield decoded(data, _declared(data))[0]


def _joined(pages: Iterable[str], form: _Form) -> Extract:
    parse = _page if form is _HTML else _xml
    return Extract(_PARAGRAPH.join(filter(None, (_visible(parse(page), form) for page in pages))))


# PDF and RTF, by libraries.


def _pdf(stream: BinaryIO, most: int) -> Extract:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its repairs need no remark
    stream.seek(max(0, stream.seek(0, 2) - 32 * _PDF_END))
    if b"%%EOF" not in stream.read().rstrip(b"\0 \t\r\n")[-_PDF_END:]:
        raise UnreadableError("is cut short: the end of the PDF is missing", _WHOLE_COPY)
    # A limit of characters bounds the work on a long book.
    unmapped, columns, letters = 0, 0, 0

    def count(text: str, _matrix: Any, _place: Any, font: Any, _size: Any) -> None:
        nonlocal unmapped, letters
        letters += len(text.strip())
        unmapped += len(text.strip()) if font and _unmapped(font) else 0

    try:
        reader = PdfReader(stream)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(
                "is an encrypted PDF that opens with a password alone",
                "Save a copy without the password.",
            )
        pages, size = [], 0
        for page in reader.pages:
            starts: list[tuple[float, float]] = []
            pages.append(
                page.extract_text(
                    visitor_text=count, visitor_operand_before=_places_to(starts)
                ).strip()
            )
            columns += _in_columns(starts)
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
    if 2 * unmapped > letters:
        raise UnreadableError(
            "has fonts without a table of their letters (ToUnicode): its text is none that a"
            " reader sees",
            "Recognise its text first, e.g. ocrmypdf --force-ocr IN.pdf OUT.pdf, and give that.",
        )
    notes = (
        (blank, f"read without {blank} of its {len(pages)} pages, which hold no text"),
        (unmapped, f"{unmapped:,} of its {letters:,} letters are of fonts without a table of them"),
        (columns, f"columns or tables on {columns} of its {len(pages)} pages are read line by line"
            " across the page, which mixes texts that stand side by side"),
    )  # fmt: skip
    note = "; ".join(text for pages_of_it, text in notes if pages_of_it)
    return Extract(_PARAGRAPH.join(filter(None, pages)), note)


_NUMBERED = re.compile(r"/(?:[A-Za-z]{0,2}|cid|glyph|index)\d+")


def _unmapped(font: Mapping[str, Any]) -> bool:
    """Whether nothing tells the letters of a font's numbers (PDF 32000-1, section 9.10.2)."""
    from pypdf._codecs import adobe_glyphs

    table, encoding = font.get("/ToUnicode"), font.get("/Encoding")
    if isinstance(table, str) or (table is not None and b"beginbf" in table.get_data()):
        return False
    if font.get("/Subtype") == "/Type0":
        return not isinstance(encoding, str) or encoding.startswith("/Identity")
    differences = encoding.get("/Differences", ()) if isinstance(encoding, Mapping) else ()
    names = [n for n in differences if isinstance(n, str) and not n.startswith("/uni")]
    numbered = (_NUMBERED.fullmatch(name) or name not in adobe_glyphs for name in names)
    return bool(names) and all(numbered)


_LEAST_ROWS, _ALIGNED, _APART = 6, 0.6, 36.0  # rows, their share, and points between two texts
_ONE_ROW = 4.0  # points between the bases of texts that are read as one line


def _places_to(starts: list[tuple[float, float]]) -> Callable[..., None]:
    """Return a visitor of a page that notes where each piece of text begins."""

    def note(operator: bytes, _operands: Any, _matrix: Any, place: list[float]) -> None:
        if operator in (b"Tj", b"TJ", b"'", b'"'):
            starts.append((round(place[4]), round(place[5])))

    return note


def _in_columns(starts: list[tuple[float, float]]) -> bool:
    """Whether most lines are drawn with a further piece at one and the same place to the right."""
    rows: list[list[float]] = []
    last = -math.inf
    for x, y in starts:
        if abs(y - last) > _ONE_ROW or x <= rows[-1][-1]:
            rows.append([])
        rows[-1].append(x)
        last = y
    further = Counter(x for row in rows for x in {x for x in row[1:] if x - row[0] >= _APART})
    most = max(further.values(), default=0)
    return most >= _LEAST_ROWS and most >= _ALIGNED * len(rows)


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
_READERS: Mapping[bytes, _Reader] = {
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
