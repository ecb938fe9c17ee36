"""The system's Chromium over our pages, and what axe-core says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
AXE = Path(__file__).parents[2] / ".venv/npm/node_modules/axe-core/axe.min.js"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
).split()

# What axe-core finds wrong by all its rules: WCAG 2.2 A and AA, and good practice.
_LOOK = """async () => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations.map(one => [one.impact, one.id,
    one.nodes.map(node => node.html.slice(0, 120) + (node.any[0]?.message || '')).join(' | ')]);
}"""
# Two frames later every element is drawn in the colours that were asked for.
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_WIDTHS = {"wide": {"width": 1200, "height": 900}, "narrow": {"width": 360, "height": 800}}


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; tests that need it are skipped without one."""
    if not CHROMIUM:
        pytest.skip("no Chromium: neither chromium nor $CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def viewing(arguments: Sequence[str], folder: Path) -> Iterator[str]:
    """Run ``ragwitness view``; yields the address that it prints."""
    command = [sys.executable, "-m", "ragwitness", "view", *arguments, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    ) as process:
        deadline = threading.Timer(120, process.kill)  # ends a wait for a line that never comes
        deadline.start()
        try:
            assert process.stdout is not None
            address = process.stdout.readline().removeprefix("Listening on ").strip()
            deadline.cancel()
            yield address
        finally:
            deadline.cancel()
            process.terminate()  # in order: its runs are stopped, and its uploads deleted
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def watch(page: Any) -> list[str]:
    """Return a list that fills with what a page should not do: errors, and requests elsewhere."""
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request",
        lambda request: (
            urlsplit(request.url).hostname == "127.0.0.1" or trouble.append(request.url)
        ),
    )
    return trouble


def accessible(page: Any) -> int:
    """Look at a page wide and narrow, in light and dark; return how often axe-core looked.

    Raises:
        AssertionError: Something serious or critical is wrong, or it is wider than the screen.
    """
    if not AXE.is_file():
        pytest.skip("no axe-core: see make services")
    # As a debugger's code it is no script of the page, whose policy stays as it is.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    looks = 0
    for width, size in _WIDTHS.items():
        page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.evaluate(_DRAWN)
            found = page.evaluate(_LOOK)
            serious = [one for one in found if one[0] in ("serious", "critical")]
            assert serious == [], (page.url, width, scheme, serious)
            looks += 1
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size["width"], (page.url, width, wide)
    page.set_viewport_size(_WIDTHS["wide"])
    page.emulate_media(color_scheme="light")
    return looks
