"""The wheel holds the package and what its help texts point to; nothing of research."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in a wheel that hatchling builds here."""
    wheel = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    [built] = wheel.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def test_every_file_is_of_the_package_and_none_of_research(names: list[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"ragwitness", next(top for top in tops if top.endswith(".dist-info"))}
    assert not [name for name in names if "research" in name]


def test_what_help_texts_point_to_is_there(names: list[str]) -> None:
    """Pages named in help and messages are inside, or said to lie in the repository."""
    named = _named()
    assert {"docs/targets.md", "docs/config.md", "RESPONSIBLE_USE.md"} <= set(named)
    for page, texts in named.items():
        if page.startswith(("docs/", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ")):
            assert f"ragwitness/pages/{page}" in names, (page, texts)
        else:
            assert all("repository" in text for text in texts), (page, texts)
    assert any(name.startswith("ragwitness/models/reader/weights/") for name in names)


def test_every_page_is_inside_and_no_code_with_them(names: list[str]) -> None:
    """pytest would take a module beside the pages for one of its plugin's, and warn of it."""
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    inside = {name.removeprefix("ragwitness/pages/") for name in names if "/pages/" in name}
    assert pages <= inside
    assert not [name for name in inside if name.endswith(".py")]


def test_every_address_in_a_message_is_one_that_stays() -> None:
    """No link of ours that could rot: protocols, name spaces, and examples on the loopback."""
    known = re.compile(
        r"http://(127\.0\.0\.1|localhost|(NAME:PASSWORD@)?host:port|www\.w3\.org/2000/svg)"
        r"|https://(api\.openai\.com|c2sp\.org"
        r"|json-schema\.org|in-toto\.io/Statement/v1|docs\.oasis-open\.org|example\.org|host/(path|v1)|www\.$)|https?://[.:]?$",
        re.IGNORECASE,
    )
    found = {
        link for text in _messages() for link in re.findall(r"https?://[^\s\"'`,<>)|{]*", text)
    }
    assert len(found) > 5
    assert {link for link in found if not known.match(link)} == set()


def test_the_folder_of_the_pages_is_printed() -> None:
    command = [sys.executable, "-m", "ragwitness", "--docs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (Path(done.stdout.strip()) / "targets.md").exists()


def _messages() -> list[str]:
    """Every text of the package that a user may read: constants, and the help of verbs."""
    found = []
    for path in sorted((ROOT / "src/ragwitness").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        silent = set()
        for node in ast.walk(tree):
            for one in getattr(node, "body", []) if isinstance(node, kinds) else []:
                # Docstrings are for developers, those of verbs are help.
                if isinstance(one, ast.Expr) and path.parent.name != "cli":
                    silent.add(id(one.value))
        constants = (n for n in ast.walk(tree) if isinstance(n, ast.Constant))
        found += [n.value for n in constants if isinstance(n.value, str) and id(n) not in silent]
    return found


def _named() -> dict[str, list[str]]:
    """Pages and folders of the repository that messages name, with the messages."""
    form = re.compile(
        r"\b(docs/[\w/.-]+\.(?:md|toml)|[A-Z_]{4,}\.md|(?:benchmarks|experiments|research)/[\w/-]+)"
    )
    found: dict[str, list[str]] = {}
    for text in _messages():
        for page in form.findall(text):
            found.setdefault(page, []).append(text)
    return found


def test_the_package_imports_no_research_but_to_reproduce_a_table() -> None:
    found = [
        str(path.relative_to(ROOT / "src/ragwitness"))
        for path in (ROOT / "src/ragwitness").rglob("*.py")
        if "from research" in (text := path.read_text(encoding="utf-8"))
        or "import research" in text
    ]
    assert [one for one in found if not one.startswith("cli/")] == []
