"""What the reader reads: real English for training, and the tokenizer that splits it.

The tokenizer is a byte-level BPE with digits one by one, role tokens and ``[Mask_i]``. Its
pre-tokenizer equals llama.cpp's ``smollm``, so that the same ids come out of every runtime.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from research.reader import forms as prompts
from research.reader.forms import STYLES, style
from research.reader.grammar.domains import DOMAINS, cluster

# Real English for training, from Debian packages whose licences allow it.
#
# Copyleft text (the ``anarchism`` package) is fetched only on request and only for evaluation.

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
    done = subprocess.run(
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
    subprocess.run(
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


ROLES = ("<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
MASK_COUNT = 20


def _documents(corpus: Corpus, rng: random.Random, count: int) -> Iterator[str]:
    """Real text (sources by the square root of their size) and grammar, some of it noisy."""
    sources = list(corpus.training)
    weights = [len(corpus.training[source]) ** 0.5 for source in sources]
    for _ in range(count):
        if rng.random() < 0.6:
            words = corpus.training[rng.choices(sources, weights)[0]]
            start = rng.randrange(len(words) - 120)
            document = words[start : start + 120]
        else:
            document = cluster(rng.choice(list(DOMAINS)), rng, 1, 100)[0]
        name = rng.choice(STYLES) if rng.random() < 0.3 else "clean"
        yield " " + " ".join(word.strip() for word in style(document, name, rng))
    for group in (
        prompts.SYSTEM,
        prompts.DEFENDED,
        prompts.COMPLETE,
        prompts.CLOZE,
        prompts.YES_NO,
    ):
        yield from list(group) * (count // 400)


def train_tokenizer(corpus: Corpus, vocabulary: int, documents: int, seed: int) -> Tokenizer:
    """Train the tokenizer; deterministic given its arguments."""
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - MASK_COUNT,
        special_tokens=list(ROLES),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_documents(corpus, random.Random(seed), documents), trainer)
    # lstrip: the space before a mask belongs to it, so " [Mask_1]" is one token as every word is.
    masks = [
        AddedToken(f"[Mask_{index}]", lstrip=True, normalized=False)
        for index in range(1, MASK_COUNT + 1)
    ]
    tokenizer.add_tokens(masks)
    return tokenizer


def with_gap(tokenizer: Tokenizer) -> Tokenizer:
    """Add the token of a gap after the last id; like a mask it takes the space before it."""
    tokenizer.add_tokens([AddedToken(prompts.GAP, lstrip=True, normalized=False)])
    return tokenizer


class Vocabulary:
    """Token ids by role, and cached encoding of pieces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.size = tokenizer.get_vocab_size()
        self.pad, self.system, self.user, self.assistant, self.end = range(len(ROLES))
        self.encode = lru_cache(maxsize=400_000)(self._encode)
        self.masks = [self.encode(f"[Mask_{index}]")[0] for index in range(1, MASK_COUNT + 1)]
        self.colon = self.encode(":")[0]
        self.gap: int | None = tokenizer.token_to_id(prompts.GAP)

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a ``tokenizer.json``."""
        return cls(Tokenizer.from_file(str(path)))

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def pieces(self, pieces: list[str]) -> list[int]:
        """Ids of a document given as pieces."""
        return [token for piece in pieces for token in self.encode(piece)]
