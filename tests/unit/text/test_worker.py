"""Files are parsed in a process of their own, which a hostile one cannot keep."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from ragwitness.text import worker
from ragwitness.text.formats import UnreadableError
from ragwitness.text.worker import extract_apart

pytestmark = pytest.mark.face("files")

_PAGE = b"<p>one</p><p>two</p>"


def test_one_process_reads_file_after_file_and_names_bad_ones() -> None:
    assert extract_apart(io.BytesIO(_PAGE), ".html", None, 99) == ("one\n\ntwo", "")
    process = worker._PARSER._process
    with pytest.raises(UnreadableError, match="damaged"):
        extract_apart(io.BytesIO(b"PK\x03\x04 no archive"), ".docx", None, 99)
    assert extract_apart(io.BytesIO(b"plain"), ".txt", None, 99) is None
    assert extract_apart(io.BytesIO(_PAGE), ".html", None, 99)
    assert worker._PARSER._process is process


def test_a_tag_of_many_quotation_marks_is_read() -> None:
    """A parser that goes back over such a tag takes minutes for a megabyte of it."""
    page = b"<p>one</p><a " + b"\"'=" * 300_000
    extract = extract_apart(io.BytesIO(page), ".html", None, 99)
    assert extract is not None
    assert extract.text.startswith("one")


@pytest.mark.parametrize(
    ("program", "why"),
    [("import time; time.sleep(600)", "more than"), ("import os; os._exit(9)", "memory")],
)
def test_a_file_that_keeps_or_ends_the_process_is_named(
    monkeypatch: Any, program: str, why: str
) -> None:
    parser = worker._Parser([sys.executable, "-c", program])
    monkeypatch.setattr(worker, "_PARSER", parser)
    monkeypatch.setattr(worker, "DEADLINE", 0.5)
    if why == "memory":
        monkeypatch.setattr(worker, "DEADLINE", 300.0)
    for _ in range(2):
        with pytest.raises(UnreadableError, match=why):
            extract_apart(io.BytesIO(_PAGE), ".html", None, 99)
    parser.close()


def test_the_process_takes_no_code_from_the_folder_of_the_documents(
    tmp_path: Path, monkeypatch: Any
) -> None:
    # As with ``python -m ragwitness`` in a stranger's folder, which stands first in the path.
    trap = tmp_path / "sprung"
    for name in ("lxml", "json", "resource", "zipfile"):
        (tmp_path / f"{name}.py").write_text(f"open({str(trap)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    parser = worker._Parser(worker._PARSER.command)
    monkeypatch.setattr(worker, "_PARSER", parser)
    assert extract_apart(io.BytesIO(_PAGE), ".html", None, 99) == ("one\n\ntwo", "")
    assert not trap.exists()
    parser.close()
