"""The text of files in formats of their own, and bad files by name."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ragwitness.text import formats
from ragwitness.text.formats import UnreadableError, extract_text
from tests.support.pdf import pdf

pytestmark = pytest.mark.face("files")

_MOST = 1_000_000
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def text_of(data: bytes, suffix: str = "") -> str:
    extract = extract_text(io.BytesIO(data), suffix, None, _MOST)
    assert extract is not None
    return extract.text


def why_not(data: bytes, suffix: str = "") -> str:
    with pytest.raises(UnreadableError) as caught:
        extract_text(io.BytesIO(data), suffix, None, _MOST)
    assert caught.value.hint
    return caught.value.why


def zipped(files: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def word(body: str, **parts: str) -> bytes:
    document = f"<w:document {_W}><w:body>{body}</w:body></w:document>"
    return zipped({"word/document.xml": document} | {f"word/{n}.xml": p for n, p in parts.items()})


# What is read.


def test_word_keeps_paragraphs_apart_and_runs_together_with_its_notes_at_the_end() -> None:
    body = (
        "<w:p><w:r><w:t>A tale of </w:t></w:r>\n<w:r><w:t>twelve</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>Line<w:br/></w:t><w:t>break, </w:t><w:t>A &amp; B</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        "<w:p><w:r><w:instrText>PAGE</w:instrText></w:r><w:del><w:delText>gone</w:delText></w:del>"
        "<w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>"
        "<mc:AlternateContent><mc:Choice><w:t>box</w:t></mc:Choice>"
        "<mc:Fallback><w:t>box</w:t></mc:Fallback></mc:AlternateContent>"
    )
    notes = f"<w:footnotes {_W}><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnotes>"
    header = f"<w:hdr {_W}><w:p><w:r><w:t>Draft 7</w:t></w:r></w:p></w:hdr>"
    assert text_of(word(body, footnotes=notes, header1=header)).split("\n\n") == [
        "A tale of twelve", "Line\nbreak, A & B", "cell", "new", "box", "A note."
    ]  # fmt: skip


def test_html_gives_what_a_reader_sees() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>tab</title><style>p {}</style></head><body>"
        "<script>var a = '<p>no';</script><h1>A   tale</h1><p>of <b>twel</b>ve &mdash; daughters"
        "<p hidden>unseen</p><div style='display: none'>unseen <div>too</div></div>"
        "<table><tr><td>Anna<td>19</tr><tr><td>Eva<td>20</tr></table>one<br>two"
    )
    assert text_of(page.encode(), ".html") == (
        "A tale\n\nof twelve \N{EM DASH} daughters\n\nAnna\t19\nEva\t20\n\none\ntwo"
    )
    assert text_of(b"<html><p>by its content</html>") == "by its content"
    accents = '<meta charset="windows-1252"><p>Les filles étaient très belles, et côte à côte.'
    assert "étaient très belles" in text_of(accents.encode("cp1252"), ".htm")


def test_an_epub_is_read_in_the_order_of_its_spine() -> None:
    book = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfile full-path="OPS/book.opf"/></container>',
        "OPS/book.opf": (
            '<package><manifest><item id="b" href="text/b%20c.xhtml"/><item id="a" href="a.xhtml"/>'
            '</manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
        ),
        "OPS/a.xhtml": "<html><head><title/></head><body><p>The end.</p></body></html>",
        "OPS/text/b c.xhtml": "<html><body><p>The beginning.</p></body></html>",
    }
    assert text_of(zipped(book)) == "The beginning.\n\nThe end."
    locked = '<EncryptedData><enc:CipherReference URI="OPS/a.xhtml"/></EncryptedData>'
    assert "DRM" in why_not(zipped(book | {"META-INF/encryption.xml": locked}))
    fonts = '<EncryptedData><enc:CipherReference URI="OPS/a.otf"/></EncryptedData>'
    assert text_of(zipped(book | {"META-INF/encryption.xml": fonts})).endswith("The end.")
    # An entry without a file, a place within one, and a name that is written as an address.
    listed = (
        book["OPS/book.opf"].replace("a.xhtml", "a.xhtml#end").replace("<item ", "<item/><item ", 1)
    )
    moved = book | {"OPS/book.opf": listed.replace("<spine>", "<spine><itemref/>")}
    moved["OPS/text/b%20c.xhtml"] = moved.pop("OPS/text/b c.xhtml")
    assert text_of(zipped(moved)) == "The beginning.\n\nThe end."
    latin = '<?xml version="1.0" encoding="iso-8859-1"?><html><body><p>Für</p></body></html>'
    assert "Für" in text_of(zipped(book | {"OPS/a.xhtml": latin.encode("latin-1")}))
    assert "none of the chapters" in why_not(zipped(book | {"OPS/book.opf": "<package/>"}))
    # Readers leave out a chapter that the archive lacks, and find one by another case of its name.
    del book["OPS/a.xhtml"], book["mimetype"]
    book["ops/TEXT/B C.xhtml"] = book.pop("OPS/text/b c.xhtml")
    extract = extract_text(io.BytesIO(zipped(book)), "", None, _MOST)
    assert extract == ("The beginning.", "read without 1 of its 2 chapters, which it lacks")
    del book["ops/TEXT/B C.xhtml"]
    assert "none of the chapters" in why_not(zipped(book))


@pytest.mark.parametrize(
    ("label", "codec"),
    [("iso-8859-1", "cp1252"), ("iso-8859-2", "iso8859-2"), ("koi8-r", "koi8-r")],
)
def test_a_page_has_the_encoding_that_it_declares(label: str, codec: str) -> None:
    letters = {"cp1252": "Núñez", "iso8859-2": "Žďár", "koi8-r": "Тула"}[codec]
    page = f"<meta http-equiv=a content='text/html; charset={label}'><p>To {letters}.</p>"
    assert text_of(page.encode(codec), ".html") == f"To {letters}."
    book = f'<?xml version="1.0" encoding="{label}"?><html><body><p>To {letters}.</p></body></html>'
    assert text_of(book.encode(codec), ".xhtml") == f"To {letters}."


def test_an_element_that_is_left_open_hides_itself_alone() -> None:
    page = b"<ul><li hidden>draft<li>one</ul><dl><dt style='display: none'>draft<dd>two</dl>"
    assert text_of(page, ".html").split() == ["one", "two"]


def test_an_encoding_within_a_comment_is_none() -> None:
    page = "<!-- <meta charset=koi8-r> --><meta charset=windows-1252><p>Für</p>"
    assert text_of(page.encode("cp1252"), ".html") == "Für"
    assert text_of(page.replace("windows-1252", "utf-16").encode(), ".html") == "Für"
    hostile = "<html>" + "<!-- " * 20_000
    assert "never closed" in why_not(hostile.encode(), ".html")


def test_an_alternative_is_read_where_the_choice_has_no_text() -> None:
    form = "{}<mc:Fallback><w:t>{}</w:t></mc:Fallback>"
    for choice, old, seen in (("<mc:Choice/>", "old", "old"), ("", "old", "old"),
                              ("<mc:Choice><w:t>now</w:t></mc:Choice>", "now", "now")):  # fmt: skip
        body = f"<mc:AlternateContent>{form.format(choice, old)}</mc:AlternateContent>"
        assert text_of(word(f"<w:p>{body}</w:p>")) == seen


def test_bytes_around_a_pdf_do_not_matter() -> None:
    assert text_of(b"\n\nnoise\n" + pdf("A kettle") + b"\0\n" * 3000, ".pdf") == "A kettle"


def test_a_pdf_without_letters_or_with_columns_is_named() -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject

    places = [(x, y) for y in range(0, 90, 9) for x in (9, 99)]
    data = pdf("a) Tj " + " ".join(f"1 0 0 1 {x} {y} Tm (t) Tj" for x, y in places) + " (z")
    extract = extract_text(io.BytesIO(data), ".pdf", None, _MOST)
    assert extract is not None
    assert "columns or tables on 1 of its 1 pages" in extract.note
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("The kettle"))))
    font = writer.pages[0]["/Resources"]["/Font"]["/F1"]  # type: ignore[index]
    for name, unmapped in (
        ("/g{}", True),
        ("/gid{:05}", True),
        ("/G{:02X}", True),
        ("/uni004{}", False),
    ):
        names = [NameObject(name.format(number)) for number in range(9)]
        font[NameObject("/Encoding")] = DictionaryObject(
            {NameObject("/Differences"): ArrayObject(names)}
        )
        out = io.BytesIO()
        writer.write(out)
        if unmapped:
            assert "ToUnicode" in why_not(out.getvalue())
        else:
            assert text_of(out.getvalue())


def test_an_open_document_is_read_and_its_sheets_are_refused() -> None:
    body = "<office:text><text:h>Head</text:h><text:p>one<text:tab/>two</text:p></office:text>"
    kind = "application/vnd.oasis.opendocument."
    assert text_of(zipped({"mimetype": f"{kind}text", "content.xml": body})) == "Head\n\none\ttwo"
    sheet = zipped({"mimetype": f"{kind}spreadsheet", "content.xml": body})
    assert why_not(sheet) == "is a ZIP archive"


def test_rtf_is_read_in_its_own_encoding() -> None:
    rtf = rb"{\rtf1\ansi\ansicpg1250 Byl jeden kr\'e1l,\par a m\'ecl dcery: \u8212 - konec.}"
    assert text_of(rtf).splitlines() == ["Byl jeden král,", "a měl dcery: — konec."]
    assert "cut short" in why_not(rtf[:-1])


def test_a_pdf_is_read_page_by_page_and_pages_without_text_are_said() -> None:
    extract = extract_text(io.BytesIO(pdf("One page", "", "two pages")), ".pdf", None, _MOST)
    assert extract == ("One page\n\ntwo pages", "read without 1 of its 3 pages, which hold no text")
    opened = extract_text(io.BytesIO(pdf(*["many words"] * 9)), ".pdf", None, 15)
    assert opened is not None
    assert len(opened.text) == 22  # no more pages than tell that it is too long


def test_plain_text_is_no_format_of_its_own() -> None:
    for data in (b"", b"plain", b'{"text": "x"}', b"<p>in a text file"):
        assert extract_text(io.BytesIO(data), ".txt", None, _MOST) is None


# Bad input.


def test_a_scanned_pdf_an_encrypted_one_and_one_cut_short() -> None:
    assert why_not(pdf("", "")) == "has no text on any of its 2 pages, as a scan has none"
    assert "opens with a password alone" in why_not(pdf("secret", password="x"))
    whole = pdf("One page")
    assert "cut short" in why_not(whole[: len(whole) // 2])
    assert "is a damaged PDF" in why_not(b"%PDF-1.7\nnothing\n%%EOF")


def test_a_zip_bomb_is_read_to_a_limit(monkeypatch: Any) -> None:
    monkeypatch.setattr(formats, "_MOST", 1_000_000)
    bomb = word("<w:t>" + "0" * 30_000_000 + "</w:t>")
    assert len(bomb) < 50_000
    assert "unpacks to more than" in why_not(bomb)
    # One that lies about its size is stopped by what it holds, not by what it says.
    size = 30_000_000 + len(f"<w:document {_W}><w:body><w:t></w:t></w:body></w:document>")
    lying = bomb.replace(size.to_bytes(4, "little"), (999).to_bytes(4, "little"))
    assert lying != bomb
    assert why_not(lying)
    assert "has more than" in why_not(b"<p>" + b"0" * 1_000_000, ".html")
    many = word("<w:t>a</w:t>", **{f"footnotes{n}": f"<t>{'0' * 400_000}</t>" for n in range(3)})
    assert "unpacks to more than" in why_not(many)


def test_entities_are_not_expanded() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    body = word("<w:p><w:t>&b; &lt;</w:t></w:p>")
    document = zipfile.ZipFile(io.BytesIO(body)).read("word/document.xml").decode()
    assert text_of(zipped({"word/document.xml": bomb + document})) == "&b; <"
    outside = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
    assert text_of(zipped({"word/document.xml": outside + document})) == "&b; <"


def test_a_file_cut_short_or_damaged_gives_no_half_text() -> None:
    whole = word("<w:p><w:t>one text</w:t></w:p>")
    for part in (whole[:-10], whole[: len(whole) // 2], whole[:60] + b"xx" + whole[62:]):
        assert "damaged or cut short" in why_not(part)
    assert "<script> is never closed" in why_not(b"<p>one<script>var a", ".html")
    assert "<!-- is never closed" in why_not(b"<p>one</p><!-- <p>two</p>", ".html")
    encrypted = bytearray(whole)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(mark) + at] |= 1
    assert why_not(bytes(encrypted)) == "is locked with a password"


def test_real_files_of_a_writers_programs() -> None:
    """LibreOffice 7.4 wrote them: a heading, a list, a table, a footnote, a header of pages."""
    here = Path(__file__).parents[2] / "golden/formats"
    for path in sorted(here.iterdir()):
        text = text_of(path.read_bytes(), path.suffix)
        assert "The King and his Twelve Daughters\n" in text, path.name
        flat = " ".join(text.split())
        assert "“each fairer than the last” — and they slept in one hall." in flat, path.name
        assert "side by side; every night" in flat, path.name
        assert "PAGE" not in text or path.suffix in (".pdf", ".html"), path.name
