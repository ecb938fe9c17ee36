"""Every path of code that a committed page names exists, so that a move takes the pages with it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_BASES = ("", "src", "src/ragwitness", "tests", "research", "experiments")
# Paths that a page gives as examples of the reader's own files or of what a command writes.
_NOT_OURS = re.compile(
    r"W/|audit/|build/|ragwitness-runs/|receipts/|first/|second/|acme/|hf/$|http/$|leak/"
    r"|mba/weighted|score/published|SCHEME/|canary/(fig4|rates)"  # scores, tables
)
_GROUPS = {
    f"ragwitness.{group}" for group in ("attacks", "defenses", "formats")
}  # entry points that are no module


def _committed() -> list[str]:
    command = ["git", "ls-files"]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive has no git
        return [p.relative_to(_ROOT).as_posix() for p in _ROOT.glob("*.md")]
    return done.stdout.splitlines()


_FILES = _committed()
_PAST = {"CHANGELOG.md", "docs/upgrade.md"}  # they name what was removed
_PAGES = [name for name in _FILES if name.endswith(".md") and name not in _PAST]
_NAMES = {name.rsplit("/", 1)[-1] for name in _FILES}


_ROOMS = {name.split("/")[-2] for name in _FILES if re.fullmatch(r".+/__init__\.py", name)}
_ROOMS |= {name.split("/")[0] for name in _FILES if "/" in name}


def _named(text: str) -> set[str]:
    """The paths in backticks: `a/b.py`, `a/b.md`, `package/`, bare `module.py`, `room/module`."""
    spans = re.findall(r"`([^`\s]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    found = {s for s in spans if re.fullmatch(r"[\w.-]+(/[\w.-]+)*(\.(py|md)|/)", s)}
    return found | {
        s for s in spans if re.fullmatch(r"[\w-]+(/[\w-]+)+", s) and s.split("/")[0] in _ROOMS
    }


def _exists(path: str, folder: str) -> bool:
    if "/" not in path and path in _NAMES:
        return True
    places = [_ROOT / base / path for base in (*_BASES, folder)]
    return any(Path(f"{place}{end}").exists() for place in places for end in ("", ".py"))


def test_pages_name_paths_at_all() -> None:
    assert len(_PAGES) > 30
    assert {"crypto/merkle.py", "rag/", "x.py"} <= _named("`crypto/merkle.py` `rag/` and `x.py`")


@pytest.mark.parametrize("page", _PAGES)
def test_every_path_named_exists(page: str) -> None:
    text = (_ROOT / page).read_text(encoding="utf-8")
    folder = Path(page).parent.as_posix()
    for path in sorted(_named(text)):
        if _NOT_OURS.match(path):
            continue
        assert _exists(path, folder), f"{page} names {path}"


@pytest.mark.parametrize("page", _PAGES)
def test_every_script_called_exists(page: str) -> None:
    text = (_ROOT / page).read_text(encoding="utf-8")
    for script in re.findall(r"python ((?:experiments|benchmarks|research)/[\w/.-]+\.py)", text):
        assert (_ROOT / script).exists(), f"{page} calls {script}"


def _defined(package: Path) -> set[str]:
    """The words of a package's own files, the stub that lists its public names among them."""
    faces = [face for face in package.glob("__init__.py*") if face.suffix in (".py", ".pyi")]
    return {word for face in faces for word in re.findall(r"\w+", face.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", _PAGES)
def test_every_module_named_exists(page: str) -> None:
    text = (_ROOT / page).read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"\b((?:ragwitness|research)(?:\.[a-z]\w*)+)\b", text))):
        first, *rest = name.split(".")
        there = _ROOT / ("src" if first == "ragwitness" else "") / first
        for part in rest:  # down to the module, or to a name that a package itself defines
            if not there.is_dir() or part in _defined(there):
                break
            there = there / part if (there / part).is_dir() else there / f"{part}.py"
        assert there.exists() or name in _GROUPS, f"{page} names {name}"


def _anchors(text: str) -> set[str]:
    """The names under which a page's headings can be linked to, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", _PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    text = (_ROOT / page).read_text(encoding="utf-8")
    for path, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)", text):
        there = (_ROOT / page).parent / path if path else _ROOT / page
        assert there.exists(), f"{page} links to {path}"
        if anchor:
            assert anchor in _anchors(there.read_text(encoding="utf-8")), f"{path}#{anchor}"
