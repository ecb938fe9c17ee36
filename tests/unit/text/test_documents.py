"""Loading documents: formats, and bad input by name."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.text import documents
from ragwitness.text.documents import load_documents

pytestmark = pytest.mark.face("files")


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zipped(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def test_jsonl_with_ids_members_bom_and_crlf(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "first text", "member": True},
        {"document": "второй текст 日本語"},
        {"id": 7, "text": "third", "member": None},
    ]
    body = "\ufeff" + "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    loaded = load_documents(write(tmp_path / "a.jsonl", body))
    assert [d.id for d in loaded.documents] == ["a", "line-2", "7"]
    assert [d.member for d in loaded.documents] == [True, None, None]
    assert loaded.documents[1].text == "второй текст 日本語"
    assert not loaded.left_out


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("[1, 2]", "not an object"),
        ("{bad", "invalid JSON"),
        ('{"id": "x"}', "no field 'text' or 'document'"),
        ('{"text": "   "}', "text is empty"),
        ('{"text": 3}', "not a string"),
        ('{"text": "t", "id": [1]}', "neither a string nor"),
        ('{"text": "t", "member": "maybe"}', "'member'"),
        ('{"text": "\\ud800 x"}', "not valid UTF-8"),
        ('{"text": "a\\u0000b"}', "NUL"),
        ('{"id": "good", "text": "other"}', "repeats the id 'good'"),
        ('{"text": "' + "x" * 1_000_000 + '"}', "size limit"),
        ("[" * 200_000, "invalid JSON"),
        ('{"text": ' + "9" * 9000 + "}", "invalid JSON"),
    ],
)
def test_a_bad_row_is_skipped_by_name(tmp_path: Path, row: str, why: str) -> None:
    body = f'{{"id": "good", "text": "good one"}}\n{row}\n{{"id": "c", "text": "after it"}}\n'
    path = write(tmp_path / "a.jsonl", body)
    loaded = load_documents(path)
    assert [d.id for d in loaded.documents] == ["good", "c"]
    assert loaded.left_out[0].name == "a.jsonl:2"
    assert why in loaded.left_out[0].why


def test_a_row_that_is_not_utf8_is_skipped(tmp_path: Path, monkeypatch: Any) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": "fine"}\n{"text": "caf\xe9"}\n')
    monkeypatch.setattr(documents, "SAMPLE", 10)  # beyond it, no encoding is recognised
    loaded = load_documents(path)
    assert [d.id for d in loaded.documents] == ["line-1"]
    assert "UTF-8" in loaded.left_out[0].why


def test_repetition_with_the_same_text_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": "a", "text": "t"}\n' * 2)
    assert "with the same text" in load_documents(path).left_out[0].why


def test_csv_with_quoted_newlines(tmp_path: Path) -> None:
    body = 'id,text,member\na,"two\nlines, here",true\nb,plain,false\n\nc,,\n'
    path = write(tmp_path / "a.csv", body)
    loaded = load_documents(path)
    assert [(d.id, d.text, d.member) for d in loaded.documents] == [
        ("a", "two\nlines, here", True),
        ("b", "plain", False),
    ]
    assert [(s.name, s.why) for s in loaded.left_out] == [("a.csv:6", "the text is empty")]


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ";"), ("tsv", "\t")])
def test_csv_with_other_delimiters(tmp_path: Path, suffix: str, mark: str) -> None:
    path = write(tmp_path / f"a.{suffix}", f"text{mark}id\none, two{mark}x\nthree{mark}y\n")
    assert [d.id for d in load_documents(path).documents] == ["x", "y"]


def test_csv_without_a_text_column_names_what_it_has(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,body\na,hello there\n")
    with pytest.raises(InputError, match="'id', 'body'"):
        load_documents(path)
    assert load_documents(path, text_field="body").documents[0].text == "hello there"


def test_folder_is_recursive_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "b.txt", "bee")
    write(tmp_path / "sub" / "a.md", "ay")
    write(tmp_path / "sub" / "c.txt", "")
    write(tmp_path / ".hidden.txt", "no")
    write(tmp_path / "big.txt", "x" * 1_000_001)
    loaded = load_documents(tmp_path)
    assert [d.id for d in loaded.documents] == ["b.txt", "sub/a.md"]
    assert [s.why.split()[-1] for s in loaded.left_out] == ["(--paragraphs)", "empty"]


def test_a_text_file_is_one_document_or_paragraphs(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\nOne a\none b\n\n\n  Two\n")
    assert [(d.id, d.text) for d in load_documents(path).documents] == [
        ("a.txt", "One a\none b\n\n\n  Two")
    ]
    loaded = load_documents(path, split="paragraphs")
    assert [(d.id, d.text) for d in loaded.documents] == [
        ("a.txt:2", "One a\none b"),
        ("a.txt:6", "Two"),
    ]


def test_a_large_text_file_names_the_way_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "some words here\n\n" * 80_000)
    with pytest.raises(InputError, match="paragraphs"):
        load_documents(path)
    # equal paragraphs at different places are different documents
    assert len(load_documents(path, split="paragraphs").documents) == 80_000


def test_pasted_text_and_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_documents("a pasted text of mine, with as many words").documents[0].id == "pasted"
    for text in (
        "He took 5 mg/day and and/or 10 mg, then left the house.",
        "A first line of some words\nand a second that ends in notes.txt",
        "word " * 80 + "see example.com",
    ):
        assert load_documents(text).documents[0].text == text
    assert load_documents("word " * 5000).documents[0].text.startswith("word word")
    stdin = io.TextIOWrapper(io.BytesIO(b'{"text": "from a pipe"}\n'))
    monkeypatch.setattr("sys.stdin", stdin)
    assert load_documents("-").documents[0].text == "from a pipe"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.jsonl", b"", "is empty"),
        ("a.jsonl", b"\n \n", "is empty"),
        ("a.txt", b"abc\0def", "binary"),
        ("a.txt", b"%PDF-1.7 ...", "is cut short: the end of the PDF"),
        ("a.csv", b"PK\x03\x04...", "its ZIP archive cannot be read"),
        ("a.zip", zipped(**{"a.txt": "one text"}), "is a ZIP archive"),
        ("a.xlsx", zipped(**{"xl/workbook.xml": "<x/>"}), "is an Excel workbook"),
        ("a.tgz", b"\x1f\x8b\x08 ...", "is a gzip archive"),
        ("a.doc", b"\xd0\xcf\x11\xe0...", "an old Word file, or an Office file with a password"),
        ("a.jsonl", b"[]\n[]\n", r"no usable document: a.jsonl:1: the row is not an object; a"),
        ("a.json", b'[{"text": "x"}]', "one JSON array"),
        ("a.csv", b"text\n", "no document"),
    ],
)
def test_unusable_input_is_one_clear_error(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    with pytest.raises(InputError, match=why) as caught:
        load_documents(write(tmp_path / name, content))
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_missing_empty_and_huge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in (tmp_path / "no.jsonl", "no.jsonl", "my own file.csv", "x" * 5000):
        with pytest.raises(InputError, match="does not exist"):
            load_documents(missing)
    for empty in ("", "   "):
        with pytest.raises(InputError, match="empty text"):
            load_documents(empty)
    with pytest.raises(InputError, match="holds no document"):
        load_documents(tmp_path)
    path = write(tmp_path / "a.jsonl", '{"text": "hello"}\n' * 100)
    monkeypatch.setattr("ragwitness.text.documents._MAX_BYTES", 1000)
    with pytest.raises(InputError, match="larger than") as caught:
        load_documents(path)
    assert "split" in caught.value.hint
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes() * 10))
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(InputError, match="larger than"):
        load_documents("-")


@pytest.mark.parametrize(
    "source",
    [
        "/home/me/My Documents/folder",
        "/home/me/My Documents/a folder whose name has so many words",
        "~/My Documents/all the letters that I wrote to you",
        "..\\letters to all the people that I know by name",
        "contract final.docx",
        "the last version of the contract with all its parts.docx",
        "a note of a few words",
    ],
)
def test_mistyped_path_is_no_document(source: str) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        load_documents(source)
    assert "8 words" in caught.value.hint


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", "x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        load_documents(path)


def test_a_quotation_mark_that_is_never_closed_swallows_no_rows(tmp_path: Path) -> None:
    body = 'id,text\na,one two\nb,"three four\nc,five six\nd,seven\n'
    with pytest.raises(
        InputError, match=r"a.csv has a quotation mark in line 3 that is never closed"
    ):
        load_documents(write(tmp_path / "a.csv", body))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ('b,"three\nc,"five six"\n', "up to line 4"),
        ('b,"three\nc,five\nd,six, or\ne,"seven"\n', "up to line 6"),
    ],
)
def test_rows_within_a_cell_are_named(tmp_path: Path, rows: str, says: str) -> None:
    path = write(tmp_path / "a.csv", f"id,text\na,one two\n{rows}z,last of all\n")
    loaded = load_documents(path)
    assert [d.id for d in loaded.documents] == ["a", "z"]
    assert loaded.left_out[0].name == "a.csv:3"
    assert says in loaded.left_out[0].why


def test_prose_of_several_lines_is_one_cell(tmp_path: Path) -> None:
    prose = "Dear all,\nhowever, it rained\nthe next day, too\n\nand then, it stopped.\nYours, B."
    loaded = load_documents(write(tmp_path / "a.csv", f'id,text\na,"{prose}"\nb,"say ""yes"""\n'))
    assert [d.text for d in loaded.documents] == [prose, 'say "yes"']
    assert not loaded.left_out


def test_each_file_of_a_folder_is_read_or_left_out_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder / "a.md", "one text")
    write(folder / "b.jsonl", '{"id": "x", "text": "a row"}\n{"id": "x"}\n')
    write(folder / "c.csv", "id,text\nx,another row\n")
    write(folder / "d.csv", "id,body\nx,no text\n")
    write(folder / "e.py", "print()")
    write(folder / "README", "no ending")
    (folder / "f.txt").symlink_to(folder / "gone.txt")
    (folder / "again").symlink_to(folder)
    for name in (".hidden", "~$a.docx", "Thumbs.db", ".git/config", "__MACOSX/a.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name, "nobody's document")
    loaded = load_documents(folder)
    assert [d.id for d in loaded.documents] == ["a.md", "b.jsonl:x", "c.csv:x"]
    assert [
        (one.file, one.line, one.why.split(",")[0].split(";")[0]) for one in loaded.left_out
    ] == [
        ("mine/README", 0, "has no ending"),
        ("mine/again", 0, "is a link that leads to no file"),
        ("mine/b.jsonl", 2, "no field 'text' or 'document'"),
        ("mine/d.csv", 0, "has no column 'text' or 'document'"),
        ("mine/e.py", 0, "ends in .py"),
        ("mine/f.txt", 0, "is a link that leads to no file"),
    ]


def test_a_folder_that_cannot_be_opened_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    write(tmp_path / "a.txt", "one text")

    def walk(folder: Path, onerror: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", str(tmp_path / "closed")))
        yield str(tmp_path), [], ["a.txt"]

    monkeypatch.setattr(os, "walk", walk)
    (closed,) = load_documents(tmp_path).left_out
    assert (closed.file, closed.why) == (
        f"{tmp_path.name}/closed",
        "cannot be read: Permission denied",
    )


def test_names_in_three_scripts_and_one_that_is_no_text(tmp_path: Path) -> None:
    names = ["письмо.txt", "手紙.txt", "רשימה.txt"]
    for name in names:
        write(tmp_path / name, f"the text of {name}")
    write(tmp_path / os.fsdecode(b"caf\xe9.txt"), "a name in Latin-1")
    loaded = load_documents(tmp_path)
    assert [one.id for one in loaded.documents] == sorted(names)
    assert "caf\\udce9.txt" in loaded.left_out[0].name
    loaded.left_out[0].name.encode()


def test_two_files_of_one_text_are_two_documents(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write(tmp_path / name, "one text")
    assert [(one.id, one.text) for one in load_documents(tmp_path).documents] == [
        ("a.txt", "one text"),
        ("b.txt", "one text"),
    ]


@pytest.mark.long
def test_a_folder_of_50_000_files_takes_seconds(tmp_path: Path) -> None:
    for n in range(50_000):
        (tmp_path / f"{n}.txt").write_bytes(b"text %d" % n)
    start = time.process_time()
    assert len(load_documents(tmp_path).documents) == 50_000
    assert time.process_time() - start < 30


def test_texts_in_other_encodings_are_read_and_said(tmp_path: Path) -> None:
    tale = (
        "Il était une fois un roi qui avait douze filles, toutes très belles. Elles dormaient dans"
        " une même chambre où leurs lits étaient rangés côte à côte."
    )
    encodings = {"a": "utf-8-sig", "b": "utf-16", "c": "utf-16-be", "d": "cp1252", "e": "gb18030"}
    texts = dict.fromkeys(encodings, tale) | {"e": "从前有一个国王他有十二个女儿"}
    for name, encoding in encodings.items():
        mark = "\ufeff" if encoding == "utf-16-be" else ""
        write(tmp_path / f"{name}.txt", (mark + texts[name]).encode(encoding))
    write(tmp_path / "f.csv", f'id,text\n1,"{tale}"\n'.encode("cp1252"))
    loaded = load_documents(tmp_path)
    assert [one.text for one in loaded.documents] == [*texts.values(), tale]
    assert not loaded.left_out
    assert [note.split(",")[0] for note in loaded.notes] == [
        f"{tmp_path.name}/d.txt",
        f"{tmp_path.name}/e.txt: read as gb18030",
    ]


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("utf-32", "Es war einmal ein König"),
        ("iso2022_jp", "昔々ある所に王様がいました"),
        ("cp874", "กาลครั้งหนึ่งนานมาแล้วมีพระราชาองค์หนึ่งอาศัยอยู่ในปราสาทใหญ่บนภูเขา"),
        ("cp866", "Жил-был старый король, двенадцать царских дочерей были одна другой краше."),
        ("iso8859_6", "كان يا مكان في قديم الزمان ملك له اثنتا عشرة بنتا كلهن جميلات"),
    ],
)
def test_further_encodings(tmp_path: Path, codec: str, text: str) -> None:
    path = write(tmp_path / "a.txt", text.encode(codec))
    assert load_documents(path).documents[0].text == text


def test_lines_may_end_as_on_an_old_macintosh(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", '{"text": "one"}\r{"text": "two"}\r')
    assert [row.text for row in load_documents(rows).documents] == ["one", "two"]
    prose = write(tmp_path / "a.txt", "one\rtwo\r\rthree")
    blocks = load_documents(prose, split="paragraphs").documents
    assert [block.text for block in blocks] == ["one\rtwo", "three"]


def test_an_encoding_that_is_not_certain_is_asked_for(tmp_path: Path) -> None:
    text = "Volt egyszer egy király, akinek tizenkét lánya volt, és őrizték a fűtött szobában."
    path = write(tmp_path / "a.txt", text.encode("cp1250"))
    with pytest.raises(InputError, match=r"may be in cp12\d\d or cp12\d\d") as caught:
        load_documents(path)
    assert "--encoding" in caught.value.hint
    assert load_documents(path, encoding="windows-1250").documents[0].text == text


def test_an_encoding_that_is_named_is_that_of_what_is_not_utf8(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "déjà vu, in UTF-8")
    write(tmp_path / "b.txt", "déjà vu, in another".encode("utf-16-le"))
    loaded = load_documents(tmp_path)
    assert [one.id for one in loaded.documents] == ["a.txt"]
    assert "UTF-16 without its mark" in loaded.left_out[0].why
    loaded = load_documents(tmp_path, encoding="utf-16-le")
    assert [one.text for one in loaded.documents] == ["déjà vu, in UTF-8", "déjà vu, in another"]
    assert not loaded.notes
    path = write(tmp_path / "b.csv", b"text\nfine\n\x80\x81\x8d\n")
    with pytest.raises(InputError, match="is not valid CP1252"):
        load_documents(path, encoding="cp1252")
    for wrong in ("no-such", "base64"):
        with pytest.raises(InputError, match="no encoding of texts that is called"):
            load_documents(path, encoding=wrong)


def test_a_text_cut_short_within_a_letter_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not valid UTF-8"):
        load_documents(write(tmp_path / "a.txt", "It ends within é"[:-1].encode() + b"\xc3"))


def test_every_reason_is_told_in_a_terminal_up_to_forty(tmp_path: Path) -> None:
    write(tmp_path / "z.txt", "one text")
    for n in range(45):
        write(tmp_path / f"{n:02}.bin", b"\0")
    loaded = load_documents(tmp_path)
    assert len(loaded.left_out) == 45
    assert len(loaded.remarks) == 41
    assert "5 more" in loaded.remarks[-1]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,text", "b,Dear Ms Frei, you are free"),
        ("text", "Dear Ms Frei, you are free"),
        ("id,text,", "b,Dear Ms Frei, you are free"),
        ("id,text,note,source", "b,Dear Ms Frei, you are free"),
        ("id,text,note", "b"),
    ],
)
def test_a_row_whose_text_may_be_cut_at_a_comma_is_left_out(
    tmp_path: Path, header: str, row: str
) -> None:
    whole = ["one text" for _ in header.rstrip(",").split(",")]
    path = write(tmp_path / "a.csv", f"{header}\n{','.join(whole)}\n{row}\n")
    loaded = load_documents(path)
    assert [d.text for d in loaded.documents] == ["one text"]
    assert [s.name for s in loaded.left_out] == ["a.csv:3"]


def test_a_short_row_with_its_whole_text_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,text,note,\na,one text\nb,two texts,new,\n")
    assert [d.text for d in load_documents(path).documents] == ["one text", "two texts"]


def test_a_name_that_stands_twice_hides_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than one column 'text'"):
        load_documents(write(tmp_path / "a.csv", "id,text,text\na,one,two\n"))
    rows = '{"text": "one", "text": "two"}\n{"text": "three"}\n'
    loaded = load_documents(write(tmp_path / "a.jsonl", rows))
    assert [d.text for d in loaded.documents] == ["three"]
    assert "a key stands twice" in loaded.left_out[0].why


def test_a_group_is_read_from_its_field_and_a_row_without_one_is_named(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"id": "a", "text": "one text", "by": " Ann "}\n{"id": "b", "text": "another", "by": 7}\n'
        '{"id": "c", "text": "a third"}\n{"id": "d", "text": "a fourth", "by": ["x"]}\n'
    )
    loaded = load_documents(rows, group_field="by")
    assert [(one.id, one.group) for one in loaded.documents] == [("a", "Ann"), ("b", "7")]
    assert [one.why for one in loaded.left_out] == ["no group in the field 'by'"] * 2
    assert [one.group for one in load_documents(rows).documents] == [None] * 4
    table = tmp_path / "rows.csv"
    table.write_text("id,text,by\na,one text,Ann\nb,another,\n")
    loaded = load_documents(table, group_field="by")
    assert [(one.id, one.group) for one in loaded.documents] == [("a", "Ann")]
    with pytest.raises(InputError, match="no column 'author'"):
        load_documents(table, group_field="author")


@pytest.mark.parametrize(
    "table",
    [
        "sep=;\r\nid;text\r\n1;one\r\n2;two\r\n",
        "id,text\r1,one\r2,two\r",
        "id|text\n1|one\n2|two\n",
        "id\ttext\n1\tone\n2\ttwo\n",
        '"no, or, not, at";"text"\na;one\nb;two\n',
        '\ufeff"sep=|"\nid | "text"\n1 | "one"\n2 |two\n',
        "ID,Text\n1,one\n2,two\n",
        "id, text\n1, one\r2, two",
    ],
)
def test_a_table_as_other_programs_write_it(tmp_path: Path, table: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(table.encode())
    assert [d.text for d in load_documents(file).documents] == ["one", "two"]


def test_a_backslash_before_quotation_marks_of_a_cell(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('id,text\n1,"C:\\"\n2,"says \\"no\\", he"\n3,"a""b"\n')
    assert [d.text for d in load_documents(file).documents] == ["C:\\", 'says "no", he', 'a"b']
