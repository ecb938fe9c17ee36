"""Pages read as a reader does who types what stands there: blocks, and commands run in order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PRINTED = "http://127.0.0.1:8000"  # in the pages; the tests take a free port
_SERVES = (["lab", "serve"], ["view"])


def blocks(page: str, kind: str) -> list[str]:
    """Return the fenced blocks of one language on a page, by its path in the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [code for named, code in found if named == kind]


def commands(page: str) -> list[str]:
    """Return the lines that a page gives to be typed, in order."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


@contextmanager
def served(words: list[str], folder: Path) -> Iterator[str]:
    """Start a verb that serves until Ctrl-C, at a free port; yield its address."""
    kept = [word for word in words if word not in ("--port", "8000")]
    command = [sys.executable, "-u", "-m", "ragwitness", *kept, "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+[^\s]*", line):
                yield found[0]
                return
        raise AssertionError(f"{words} ended before it named an address")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def walk(page: str, folder: Path, codes: dict[str, tuple[int, ...]] | None = None) -> list[str]:
    """Type every command of a page in a folder, as it stands there; return what was typed.

    Args:
        page: Path in the repository.
        folder: Where the reader is.
        codes: Exit codes that are right besides 0, by a word of the line.
    """
    typed = []
    with ExitStack() as running:
        address = key = ""
        for line in commands(page):
            typed.append(line)
            words = shlex.split(line, comments=True)
            if words[0] == "." or {"install", "venv"} & set(words[:3]):
                continue  # the environment of the tests has it; tests/services/test_package.py
            if words[0] != "ragwitness":
                subprocess.run(["/bin/sh", "-ec", line], cwd=folder, check=True)
                continue
            serves = next((verb for verb in _SERVES if words[1 : 1 + len(verb)] == verb), None)
            if serves is not None:
                found = running.enter_context(served(words[1:], folder))
                if serves == ["lab", "serve"]:
                    address = found.removesuffix("/v1")
                else:
                    shown(found)
                continue
            if _PRINTED in line and not address:
                lab = ["lab", "serve", "--corpus", "mine"]
                address = running.enter_context(served(lab, folder)).removesuffix("/v1")
            # The public key of a seal, as the command that made it printed it.
            words = [word.replace(_PRINTED, address) for word in words[1:]]
            words = [key if word == "KEY" else word for word in words]
            command = [sys.executable, "-m", "ragwitness", *words]
            # Tables of papers stand in the repository, where a page says to be for them.
            place = ROOT if words[:2] == ["lab", "reproduce"] else folder
            done = subprocess.run(command, cwd=place, capture_output=True, text=True)
            right = (0, *(c for word, more in (codes or {}).items() if word in line for c in more))
            assert done.returncode in right, f"{line}\n{done.stdout}\n{done.stderr}"
            printed = re.findall(r"[\w.-]+\+[0-9a-f]{8}\+[\w+/]{44}", done.stdout + done.stderr)
            key = printed[-1] if printed else key
    return typed


def shown(address: str) -> str:
    """Return the first page of ``ragwitness view``, whose printed address works once."""
    import httpx2

    with httpx2.Client(timeout=60) as browser:
        browser.get(address).raise_for_status()  # keeps the cookie
        reply = browser.get(address.partition("?")[0])
    assert reply.status_code == 200
    return str(reply.text)
