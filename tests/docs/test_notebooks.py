"""The notebooks run from the first cell to the last, and show what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import ROOT

_FOLDER = ROOT / "docs" / "notebooks"
_NAMES = sorted(path.name for path in _FOLDER.glob("*.ipynb"))


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", _NAMES)
def test_outputs_are_not_stored(name: str) -> None:
    code = [cell for cell in _read(name)["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


def test_every_notebook_is_listed() -> None:
    page = (_FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in _NAMES if f"]({name})" not in page] == []
    assert len(_NAMES) == 2


def executed(name: str, folder: Path) -> tuple[list[str], str]:
    """Execute a notebook in an empty folder; return what it showed as HTML, and printed."""
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    notebook = nbformat.read(_FOLDER / name, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    html = ["".join(o["data"]["text/html"]) for o in outputs if "text/html" in o.get("data", {})]
    return html, "".join(o["text"] for o in outputs if o["output_type"] == "stream")


@pytest.mark.long
def test_own_documents(tmp_path: Path) -> None:
    (shown,), printed = executed("own-documents.ipynb", tmp_path)
    lines = [line.split() for line in printed.splitlines() if line.startswith("sample-")]
    # Five are inside: all of them are found, and nobody else is accused.
    assert [line[1] == "in" for line in lines] == [True] * 5 + [False] * 5
    assert "5 of 10 documents: in the database" in shown
    assert "<svg" in shown
    assert (tmp_path / "runs/own-documents/report.html").exists()


@pytest.mark.long
def test_leak_and_defense(tmp_path: Path) -> None:
    shown, printed = executed("leak-and-defense.ipynb", tmp_path)
    assert len(shown) == 2
    plain, defended = (
        float(line.split(": ")[1].split()[0]) for line in printed.splitlines() if "records" in line
    )
    assert plain > defended
