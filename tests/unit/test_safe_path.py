"""No program of ours takes code from the folder in which it is started.

A folder of documents may hold ``signal.py`` and ``numpy.py``: Python takes modules from the current
folder first, unless it is told not to (``-P``).
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.house import WHEEL, sources
from ragwitness.web.jobs import Jobs
from tests.cli.surface import verbs

SCRIPT = Path(sys.executable).with_name("ragwitness")
DEPENDENCIES = "numpy scipy sklearn httpx2 typer click rich pydantic starlette uvicorn lxml pypdf"
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every module of Python, ours and our packages is a trap."""
    folder = tmp_path_factory.mktemp("traps")
    names = {*sys.stdlib_module_names, *DEPENDENCIES.split(), "sitecustomize", "usercustomize"}
    for name in [*names, "ragwitness"]:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / 'SPRUNG')!r}, 'a').write({name!r})\n"
        )
    (folder / "mine.jsonl").write_text('{"id": "a", "text": "A text of a few words."}\n')
    return folder


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a user: nothing in it names the current folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"PYTHONPATH": str(WHEEL.parent)} | more


def sprung(traps: Path) -> str:
    """Return the traps that were sprung."""
    path = traps / "SPRUNG"
    return path.read_text() if path.exists() else ""


PROGRAMS = {
    "the script": [str(SCRIPT), "--version"],
    "the module": [sys.executable, "-P", "-m", "ragwitness", "--version"],
    "a verification": [
        str(SCRIPT), "verify", str(GOLDEN / "attest" / "window-v3.zip"),
        "--trust", str(GOLDEN / "attest" / "trust-v3.json"),
    ],
    "a parser of documents": [sys.executable, "-P", "-m", "ragwitness.text.worker"],
    "a demo": [str(SCRIPT), "demo", "--help"],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_started_in_a_folder_of_traps(traps: Path, name: str) -> None:
    if PROGRAMS[name][0] == str(SCRIPT) and not SCRIPT.exists():
        pytest.skip("the package is not installed as a script")
    done = subprocess.run(
        PROGRAMS[name], cwd=traps, env=environment(), input="", capture_output=True, text=True
    )
    assert sprung(traps) == ""
    assert done.returncode == 0, done.stderr


def test_every_verb_is_started_in_a_folder_of_traps(traps: Path) -> None:
    """All in one process: each is imported, and its help printed."""
    program = (
        "import sys\n"
        "from ragwitness.cli.main import run\n"
        "for words in sys.stdin.read().splitlines():\n"
        "    sys.argv[1:] = [*words.split(), '--help']\n"
        "    try: run()\n"
        "    except SystemExit as stop: assert stop.code == 0, words\n"
    )
    words = "\n".join(name for name, _ in verbs())
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(
        command, cwd=traps, env=environment(), input=words, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert sprung(traps) == ""


def test_view_runs_no_code_of_its_folder(traps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that it starts holds the key of the API."""
    monkeypatch.setenv("PYTHONPATH", str(WHEEL.parent))
    jobs = Jobs(traps / "runs", traps)
    process = jobs._spawn(["--version"], "sk-secret-of-the-user")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert sprung(traps) == ""


def test_a_trap_is_sprung_where_python_is_not_told(traps: Path, tmp_path: Path) -> None:
    """The test itself can fail: this is what ``view`` did."""
    (tmp_path / "signal.py").write_text("print('sprung')\n")
    command = [sys.executable, "-c", "import signal"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.stdout == "sprung\n"


def test_every_start_of_python_in_the_wheel_is_told() -> None:
    starts = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List) and node.elts:
                first, *rest = node.elts
                if ast.unparse(first) == "sys.executable":
                    starts.append((path.name, rest and ast.unparse(rest[0])))
    assert len(starts) >= 4
    assert [start for start in starts if start[1] != "'-P'"] == []
