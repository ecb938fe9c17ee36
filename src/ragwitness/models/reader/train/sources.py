"""Real English for training, from Debian packages whose licences allow it.

Copyleft text (the ``anarchism`` package) is fetched only on request and only for evaluation.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

__all__ = ["EVALUATION_PACKAGES", "TRAINING_PACKAGES", "Corpus", "SourceError", "load_corpus"]

TRAINING_PACKAGES = ("python3.11-doc", "wordnet-base", "apache2-doc", "dict-jargon", "dict-devil")
EVALUATION_PACKAGES = ("anarchism",)
BREAK = "\n\n"


class SourceError(RuntimeError):
    """Training text is missing and cannot be fetched here; the message names the next command."""


@dataclass(frozen=True)
class Corpus:
    """Per source, one list of words; a word that opens a paragraph starts with two newlines."""

    training: dict[str, list[str]]
    held_out: dict[str, list[str]]


class _Paragraphs(HTMLParser):
    """Collects the text of ``<p>`` elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[str] | None = None
        self._skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Open a paragraph, or a part to skip."""
        if tag in ("script", "style", "pre"):
            self._skip += 1
        elif tag == "p":
            self._open = []

    def handle_endtag(self, tag: str) -> None:
        """Close it."""
        if tag in ("script", "style", "pre") and self._skip:
            self._skip -= 1
        elif tag == "p" and self._open is not None:
            self.found.append("".join(self._open))
            self._open = None

    def handle_data(self, data: str) -> None:
        """Keep text inside a paragraph."""
        if self._open is not None and not self._skip:
            self._open.append(data)


def _html(root: Path, pattern: str) -> Iterator[str]:
    for path in sorted(root.glob(pattern)):
        parser = _Paragraphs()
        parser.feed(path.read_text("utf-8", "ignore"))
        yield from parser.found


def _restructured(root: Path) -> Iterator[str]:
    """Prose paragraphs of reStructuredText: markup removed, code and tables dropped."""
    marks = ("..", ">>>", "|", "+", "*", "#", "=", "-", "~")
    for path in sorted(root.glob("**/_sources/**/*.txt")):
        for block in re.split(r"\n\s*\n", path.read_text("utf-8", "ignore")):
            if any(line.strip().startswith(marks) for line in block.split("\n")):
                continue
            text = re.sub(r":[\w:]+:`~?!?([^`<]+?)(\s*<[^>]*>)?`", r"\1", block)
            text = re.sub(r"`([^`<]+?)(\s*<[^>]*>)?`_*", r"\1", text)
            text = text.replace("``", "").replace("**", "")
            if len(re.findall(r"[=(){}<>_]", text)) <= 4:
                yield text


def _dictionary(root: Path) -> Iterator[str]:
    for path in sorted(root.glob("**/*.dz")):
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "ignore")
        yield from (
            block.replace("{", "").replace("}", "") for block in re.split(r"\n\n|\n(?=\S)", text)
        )


def _glosses(root: Path) -> Iterator[str]:
    for path in sorted(root.glob("usr/share/wordnet/data.*")):
        for line in path.read_text("utf-8", "ignore").split("\n"):
            if "|" in line and not line.startswith("  "):
                head, gloss = line.split("|", 1)
                yield f"{head.split()[4].replace('_', ' ')}: {gloss.strip().rstrip(';')}."


_READERS: dict[str, Callable[[Path], Iterator[str]]] = {
    "python3.11-doc": _restructured,
    "wordnet-base": _glosses,
    "apache2-doc": lambda root: _html(root, "usr/share/doc/apache2-doc/manual/en/**/*.html*"),
    "dict-jargon": _dictionary,
    "dict-devil": _dictionary,
    "anarchism": lambda root: _html(root, "**/html/*.html"),
}


def _fetch(package: str, folder: Path) -> Path:
    """Download and unpack one Debian package under ``folder``; nothing is installed."""
    target = folder / package
    if target.is_dir():
        return target
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise SourceError(
            f"the training text {package!r} is a Debian package and apt-get is not here; unpack it "
            f"with 'dpkg-deb -x {package}_*.deb {target}' on a Debian system and copy the folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(  # noqa: S603 - package names are the constants above
        ["apt-get", "download", package],  # noqa: S607 - wherever the system keeps it
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    archives = sorted(folder.glob(f"{package}_*.deb"))
    if done.returncode or not archives:
        raise SourceError(
            f"could not download {package!r}; run 'apt-get update' as root, then try again\n"
            f"{done.stderr}"
        )
    partial = folder / f"{package}.partial"
    subprocess.run(  # noqa: S603
        ["dpkg-deb", "-x", str(archives[-1].resolve()), str(partial.resolve())],  # noqa: S607
        check=True,
    )
    partial.rename(target)
    return target


def _words(paragraphs: Iterator[str]) -> list[str]:
    """Prose paragraphs as one word list, each paragraph's first word marked by a break."""
    words: list[str] = []
    for paragraph in paragraphs:
        parts = paragraph.split()
        letters = len(re.findall(r"[A-Za-z]", paragraph))
        if len(parts) >= 8 and letters >= 0.65 * len(" ".join(parts)):
            words.append(BREAK + parts[0])
            words.extend(parts[1:])
    return words


def _load(package: str, work: Path) -> list[str]:
    cache = work / "text" / f"{package}.json"
    if not cache.exists():
        words = _words(_READERS[package](_fetch(package, work / "packages")))
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial = cache.with_suffix(".partial")
        partial.write_text(json.dumps(words), "utf-8")
        partial.rename(cache)
    loaded: list[str] = json.loads(cache.read_text("utf-8"))
    return loaded


def load_corpus(work: Path, held_out_share: float) -> Corpus:
    """Training text by source; the last ``held_out_share`` of each is kept for validation."""
    training, held_out = {}, {}
    for package in TRAINING_PACKAGES:
        words = _load(package, work)
        cut = int(len(words) * (1 - held_out_share))
        training[package], held_out[package] = words[:cut], words[cut:]
    return Corpus(training, held_out)


def load_evaluation(work: Path) -> dict[str, list[str]]:
    """Copyleft prose that is never trained on, for evaluation only."""
    return {package: _load(package, work) for package in EVALUATION_PACKAGES}
