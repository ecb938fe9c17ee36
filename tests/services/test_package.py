"""The package as it is handed out: built, installed where nothing else is, and used from there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample

_ROOT = Path(__file__).parents[2]
_VERSION = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
_PYTHON = Path("/usr/bin/python3")  # one that any user may start
pytestmark = pytest.mark.slow


def run(
    *command: object, cwd: Path, env: Mapping[str, str] | None = None, user: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of this environment, as nobody where asked."""
    own = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "TMPDIR": str(cwd), **(env or {})}
    other = {"user": 65534, "group": 65534, "extra_groups": []} if user else {}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=own, capture_output=True, text=True, **other
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder with blanks in its path that another user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="a clean place "))
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def built(place: Path) -> Path:
    """The folder of sdist and wheel; the wheel is built out of the sdist."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place / "dist")]
    done = subprocess.run([*command, str(_ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "dist"


@pytest.fixture(scope="module")
def environment(place: Path, built: Path) -> Path:
    """An empty environment with the wheel and what it depends on, and no more."""
    if not _PYTHON.exists():
        pytest.skip("no Python that every user may start")
    made = run(_PYTHON, "-m", "venv", place / "environment", cwd=place)
    if made.returncode:
        pytest.skip(f"no venv: {made.stderr or made.stdout}")
    (wheel,) = built.glob("*.whl")
    pip = [place / "environment" / "bin" / "python", "-m", "pip", "install", "-q"]
    done = run(*pip, wheel, cwd=place, env={k: v for k, v in os.environ.items() if "PIP" in k})
    assert done.returncode == 0, done.stderr
    return place / "environment"


def test_an_extra_is_added_to_what_is_installed(environment: Path, place: Path) -> None:
    # No index has the package: pip takes the installed one.
    kept = {k: v for k, v in os.environ.items() if "PIP" in k}
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q"]
    done = run(*pip, "ragwitness[timestamp]", cwd=place, env=kept)
    assert done.returncode == 0, done.stderr
    found = [environment / "bin" / "python", "-c", "import ragwitness, rfc3161_client"]
    assert run(*found, cwd=place).returncode == 0


def _installs() -> list[str]:
    """The lines of the page on installing that put the program on a path."""
    page = (_ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    return re.findall(r"^((?:uv tool|pipx) install \.)$", page, re.M)


@pytest.mark.parametrize("line", _installs())
def test_the_page_on_installing_puts_the_program_on_a_path(line: str, tmp_path: Path) -> None:
    words = line.split()
    if not (tool := shutil.which(words[0])):
        pytest.skip(f"{words[0]} is not installed")
    # Certificates and mirrors of this machine, and nothing of the tests' environment.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "XDG"))}
    own = kept | {"PATH": f"{Path(tool).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(words, cwd=_ROOT, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    program = tmp_path / ".local" / "bin" / "ragwitness"
    assert run(program, "--version", cwd=tmp_path).stdout.strip() == f"ragwitness {_VERSION}"


def test_the_page_on_installing_makes_an_environment(tmp_path: Path) -> None:
    (script,) = re.findall(
        r"```sh no-test\n(python3 -m venv .*?)```", (_ROOT / "docs/install.md").read_text(), re.S
    )
    kept = {k: v for k, v in os.environ.items() if "PIP" in k}
    for folder in ("src", "docs"):
        shutil.copytree(_ROOT / folder, tmp_path / folder)
    for path in _ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, tmp_path)
    script += "ragwitness --version\n"
    done = run("/bin/sh", "-ec", script, cwd=tmp_path, env=kept)
    assert done.stdout.endswith(f"ragwitness {_VERSION}\n"), done.stderr


def test_the_archives_hold_what_they_should(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"src/ragwitness/py.typed", "docs/targets.md", "Makefile", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("ragwitness-runs", ".venv", "build"))]
    assert max(path.stat().st_size for path in built.iterdir()) < 60_000_000  # PyPI takes 100 MB


def test_it_says_its_version_and_where_its_pages_are(environment: Path, place: Path) -> None:
    program = environment / "bin" / "ragwitness"
    assert run(program, "--version", cwd=place).stdout.strip() == f"ragwitness {_VERSION}"
    pages = Path(run(program, "--docs", cwd=place).stdout.strip())
    assert pages.is_relative_to(environment)
    helped = run(program, "audit", "--help", cwd=place).stdout
    for name in re.findall(r"docs/[\w/-]+\.md|[A-Z_]{4,}\.md", helped):
        assert (pages.parent / name).exists(), name


def test_the_demo_runs_from_the_wheel(environment: Path, place: Path) -> None:
    (place / "first").mkdir()
    done = run(environment / "bin" / "ragwitness", "demo", cwd=place / "first")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "AUC" in done.stdout
    assert (place / "first/ragwitness-runs/demo/report.html").exists()


def test_every_verb_shows_its_help_without_an_extra(environment: Path, place: Path) -> None:
    program = environment / "bin" / "ragwitness"
    verbs = re.findall(r"^  ([a-z]+) {2,}\S", run(program, "--help", cwd=place).stdout, re.M)
    assert len(verbs) >= 15
    for verb in verbs:
        assert run(program, verb, "--help", cwd=place).returncode == 0, verb


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_with_a_home_that_cannot_be_written(environment: Path, place: Path) -> None:
    home, work = place / "a home", place / "a desk"
    for folder in (home, work):
        folder.mkdir()
    home.chmod(0o555)
    os.chown(work, 65534, 65534)
    rows = [
        f'{{"id": "{d.id}", "text": "{d.text}"}}\n' for d in load_sample()[:30] if '"' not in d.text
    ]
    (work / "mine.jsonl").write_text("".join(rows[:4]))
    (work / "outside.jsonl").write_text("".join(rows[4:]))
    program = environment / "bin" / "ragwitness"
    given = ["--documents", "mine.jsonl", "--known-out", "outside.jsonl", "--method", "rag-mia"]
    audit = [program, "audit", "lab:mine.jsonl", *given, "--yes", "--json", "out.json"]
    done = run(*audit, cwd=work, env={"HOME": str(home), "TMPDIR": "/tmp"}, user=True)  # noqa: S108
    assert done.returncode == 0, done.stdout + done.stderr
    assert (work / "out.json").exists()
    assert list(home.iterdir()) == []
    # Where the current folder cannot be written either, one line says so.
    work.chmod(0o555)
    done = run(*audit, cwd=work, env={"HOME": str(home), "TMPDIR": "/tmp"}, user=True)  # noqa: S108
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "next: " in done.stderr
