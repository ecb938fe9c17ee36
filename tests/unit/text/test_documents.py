"""Loading documents: formats, and bad input by name."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ragwitness.errors import InputError
from ragwitness.text.documents import load_documents


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


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
    assert not loaded.skipped


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
    assert loaded.skipped[0].where == f"{path}:2"
    assert why in loaded.skipped[0].why


def test_a_row_that_is_not_utf8_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": "caf\xe9"}\n{"text": "fine"}\n')
    loaded = load_documents(path)
    assert [d.id for d in loaded.documents] == ["line-2"]
    assert "UTF-8" in loaded.skipped[0].why


def test_repetition_with_the_same_text_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": "a", "text": "t"}\n' * 2)
    assert "with the same text" in load_documents(path).skipped[0].why


def test_csv_with_quoted_newlines(tmp_path: Path) -> None:
    body = 'id,text,member\na,"two\nlines, here",true\nb,plain,false\n\nc,,\n'
    path = write(tmp_path / "a.csv", body)
    loaded = load_documents(path)
    assert [(d.id, d.text, d.member) for d in loaded.documents] == [
        ("a", "two\nlines, here", True),
        ("b", "plain", False),
    ]
    assert [(s.where, s.why) for s in loaded.skipped] == [(f"{path}:6", "the text is empty")]


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
    assert [s.why.split()[-1] for s in loaded.skipped] == ["bytes", "empty"]


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
        ("a.txt", b"%PDF-1.7 ...", "a PDF"),
        ("a.csv", b"PK\x03\x04...", "ZIP"),
        ("a.txt", "hello".encode("utf-16"), "UTF-16"),
        ("a.jsonl", b"[]\n[]\n", r"no usable document: .*:1: the row is not an object \(and 1"),
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
    with pytest.raises(InputError, match="larger than") as caught:
        load_documents(path, max_bytes=1000)
    assert "split" in caught.value.hint
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes() * 10))
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(InputError, match="larger than"):
        load_documents("-", max_bytes=10_000)


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
    with pytest.raises(InputError, match=r"a.csv:3: a quotation mark is never closed"):
        load_documents(write(tmp_path / "a.csv", body))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ('b,"three\nc,"five six"\n', "up to line 4"),
        ('b,"three\nc,five\nd,six, or\ne,"seven"\n', "up to line 6"),
        ('b,"three\nc,five six\nd,seven\ne,eight"\n', "closed too late"),
    ],
)
def test_rows_within_a_cell_are_named(tmp_path: Path, rows: str, says: str) -> None:
    path = write(tmp_path / "a.csv", f"id,text\na,one two\n{rows}z,last of all\n")
    loaded = load_documents(path)
    assert [d.id for d in loaded.documents] == ["a", "z"]
    assert loaded.skipped[0].where == f"{path}:3"
    assert says in loaded.skipped[0].why


def test_prose_of_several_lines_is_one_cell(tmp_path: Path) -> None:
    prose = "Dear all,\nhowever, it rained\nthe next day, too\n\nand then, it stopped.\nYours, B."
    loaded = load_documents(write(tmp_path / "a.csv", f'id,text\na,"{prose}"\nb,"say ""yes"""\n'))
    assert [d.text for d in loaded.documents] == [prose, 'say "yes"']
    assert not loaded.skipped


def test_other_files_of_a_folder_are_counted_by_kind(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "one text")
    for name in ("b.html", "c.HTML", "d.pdf", "README", ".hidden"):
        write(tmp_path / name, "not read")
    (tmp_path / "e.txt").symlink_to(tmp_path / "gone.txt")
    (tmp_path / "sub.html").mkdir()
    loaded = load_documents(tmp_path)
    assert [d.id for d in loaded.documents] == ["a.md"]
    assert [one.why.split(":")[0] for one in loaded.skipped] == [
        "2 .html files", "1 .pdf files", "1 broken files", "1 other files"
    ]  # fmt: skip


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
    assert [s.where for s in loaded.skipped] == [f"{path}:3"]
    assert "1 of 2 rows" in loaded.left_out[0]


def test_a_short_row_with_its_whole_text_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,text,note,\na,one text\nb,two texts,new,\n")
    assert [d.text for d in load_documents(path).documents] == ["one text", "two texts"]


def test_a_name_that_stands_twice_hides_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than one column 'text'"):
        load_documents(write(tmp_path / "a.csv", "id,text,text\na,one,two\n"))
    rows = '{"text": "one", "text": "two"}\n{"text": "three"}\n'
    loaded = load_documents(write(tmp_path / "a.jsonl", rows))
    assert [d.text for d in loaded.documents] == ["three"]
    assert "a key stands twice" in loaded.skipped[0].why


def test_a_group_is_read_from_its_field_and_a_row_without_one_is_named(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"id": "a", "text": "one text", "by": " Ann "}\n{"id": "b", "text": "another", "by": 7}\n'
        '{"id": "c", "text": "a third"}\n{"id": "d", "text": "a fourth", "by": ["x"]}\n'
    )
    loaded = load_documents(rows, group_field="by")
    assert [(one.id, one.group) for one in loaded.documents] == [("a", "Ann"), ("b", "7")]
    assert [one.why for one in loaded.skipped] == ["no group in the field 'by'"] * 2
    assert [one.group for one in load_documents(rows).documents] == [None] * 4
    table = tmp_path / "rows.csv"
    table.write_text("id,text,by\na,one text,Ann\nb,another,\n")
    loaded = load_documents(table, group_field="by")
    assert [(one.id, one.group) for one in loaded.documents] == [("a", "Ann")]
    with pytest.raises(InputError, match="no column 'author'"):
        load_documents(table, group_field="author")
