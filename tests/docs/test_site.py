"""The site builds without a warning, loads nothing from elsewhere, and its words are used."""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.surface import verbs
from tests.support.browsing import chromium
from tests.support.pages import ROOT

pytestmark = pytest.mark.slow

_spec = importlib.util.spec_from_file_location("docs_site", ROOT / "pages" / "site.py")
assert _spec is not None
assert _spec.loader is not None
site: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)
_SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def build(
    folder: Path, pages: dict[str, bytes], settings: str = _SETTINGS
) -> subprocess.CompletedProcess[str]:
    """Build a site of these pages, strictly."""
    for place, content in pages.items():
        (folder / "build" / "pages" / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / "build" / "pages" / place).write_bytes(content)
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    if not (folder / "src").exists():
        (folder / "src").symlink_to(ROOT / "src")
    zensical = Path(sys.executable).with_name("zensical")
    command = [zensical, "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the whole site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder, site.pages())
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


def test_the_site_builds_and_loads_nothing_from_elsewhere(built: Path) -> None:
    found = sorted(built.rglob("*.html"))
    assert len(found) > 50
    for page in found:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\ssrc="(https?:[^"]*)"', text)
        loaded += re.findall(r'<link[^>]*\shref="(https?:[^"]*)"', text)
        assert not loaded, page
    # The command line and the public names are there.
    line = (built / "cli.html").read_text(encoding="utf-8")
    assert all(f"ragwitness {words}<" in line for words, _ in verbs())
    api = (built / "api.html").read_text(encoding="utf-8")
    assert all(
        f'id="{home}"' in api for home in re.findall(r"^::: (\S+)$", site.public_names(), re.M)
    )


_FIRST = {  # what a stranger types, and the page that must come first
    "membership": "audit.html",
    "verify a pack": "evidence.html",
    "false positives": "concepts.html",
    "exit code": "audit.html",
    "api key": "targets.html",
    "azure": "services.html",
    "ollama": "services.html",
    "langchain": "frameworks.html",
    "pdf": "documents.html",
    "upload": "view.html",
}


def test_a_stranger_finds_the_right_page_first(built: Path) -> None:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(built))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/glossary.html")
        page.get_by_text("Glossary").first.wait_for()
        page.keyboard.press("/")
        found = {}
        for words in _FIRST:
            page.get_by_role("combobox").fill(words)
            shown = page.get_by_role("option").first
            shown.locator("mark").first.wait_for(timeout=60_000)
            found[words] = urlsplit(shown.get_attribute("href")).path.lstrip("/")
        server.shutdown()
    assert found == _FIRST


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    settings = _SETTINGS[: _SETTINGS.index("nav:")]
    pages = {"index.md": b"# Runs\n\n[here](index.md#runs)\n"}
    assert build(tmp_path, pages, settings).returncode == 0
    for wrong in (b"nowhere.md", b"index.md#nowhere"):
        pages["index.md"] = b"# Runs\n\n[gone](" + wrong + b")\n"
        assert build(tmp_path, pages, settings).returncode != 0, wrong


def test_every_page_can_be_found_from_the_navigation() -> None:
    named = set(re.findall(r"([\w./-]+\.md)$", _SETTINGS, re.MULTILINE))
    ours = {path for path in site.pages() if path.endswith(".md")}
    linked = {path for path in ours if path.startswith(("experiments/", "src/"))}
    assert ours - linked == named, "add the page to nav in mkdocs.yml"


def test_links_are_turned_and_code_is_named() -> None:
    known = {"PAPERS.md", "leak.md", "experiments/leak/README.md"}
    text = "[a](../experiments/leak/README.md#x) [b](../PAPERS.md) [c](../Makefile)"
    turned = site.turned(text, "docs/leak.md", known)
    assert turned == "[a](experiments/leak/README.md#x) [b](PAPERS.md) c (`Makefile`)"
    assert site.turned("[d](docs/leak.md)", "PAPERS.md", known) == "[d](leak.md)"


def _words() -> list[str]:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def test_the_glossary_is_sorted() -> None:
    assert _words() == sorted(_words(), key=str.casefold)


@pytest.mark.parametrize("word", _words())
def test_every_word_of_the_glossary_is_used_on_other_pages(word: str) -> None:
    used = [
        path
        for path in (ROOT / "docs").rglob("*.md")
        if path.name != "glossary.md" and "design" not in path.parts
        for text in [path.read_text(encoding="utf-8").casefold()]
        if all(one in text for one in word.casefold().split(" and "))
    ]
    assert used, word
