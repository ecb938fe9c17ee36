"""A sealed run, and who lies about it afterwards with the auditor's own key at hand."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ragwitness.attest.archive import contents, listing
from ragwitness.attest.verdict import BundleVerdict
from ragwitness.cli.main import run as ragwitness
from ragwitness.core.run_files import SEAL
from ragwitness.crypto.hashing import Opening, commit
from ragwitness.crypto.keys import PrivateKey, PublicKey, read_key
from ragwitness.evidence.case import PackKnown
from ragwitness.evidence.pack import ANSWERS_FILE, MANIFEST, NOTE, TEXTS, PackChain, signed_pack
from ragwitness.evidence.subject import TEXT
from ragwitness.evidence.verifier import verify_pack
from ragwitness.runner.hash_chain import ROW, dense, first_link, next_link
from ragwitness.text.sample import load_sample


def called(*arguments: object) -> int:
    """Call the command line in this process and return its exit code."""
    before, sys.argv = sys.argv, ["ragwitness", *map(str, arguments)]
    try:
        with pytest.raises(SystemExit) as stop:
            ragwitness()
    finally:
        sys.argv = before
    return int(stop.value.code or 0)


def judged(data: bytes, known: PackKnown | None = None) -> BundleVerdict:
    """Verify a pack as somebody who was told its own key, or what else is given."""
    if known is None:
        known = PackKnown(key=Forger(data, files=contents(data, listing(data))).key_named)
    return verify_pack(data, known)


def corpus(folder: Path) -> tuple[Path, Path, Path]:
    """Write what a system holds, what is in question and what is known to be outside."""
    rows = [{"id": f"d{n}", "text": one.text} for n, one in enumerate(load_sample())]
    random.Random(0).shuffle(rows)
    parts = {"held": rows[:6], "asked": rows[3:9], "out": rows[9:33]}
    for name, part in parts.items():
        lost = [{"id": "without a text"}] if name == "asked" else []
        lines = (json.dumps(row) + "\n" for row in [*part, *lost])
        (folder / f"{name}.jsonl").write_text("".join(lines))
    held, asked, out = (folder / f"{name}.jsonl" for name in parts)
    return held, asked, out


def audited(folder: Path, *more: object, run: str = "run") -> Path:
    """Audit a system that repeats its passages, sealed; return the run folder."""
    held, asked, out = corpus(folder)
    code = called(
        "audit", f"lab:{held}?generator=repeat", "--documents", asked, "--known-out", out,
        "--method", "s2mia", "--run", folder / run, "--seal", folder / "auditor.key", "--yes",
        *more,
    )  # fmt: skip
    assert code == 0
    return folder / run


@dataclass
class Forger:
    """A pack taken apart by whoever holds its key, to be put together with a lie in it.

    Attributes:
        data: The honest pack.
        key: Of the auditor.
        files: By name, without list and signature.
    """

    data: bytes
    key: PrivateKey = field(default_factory=lambda: PrivateKey.generate("stranger"))
    files: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, pack: Path, key: Path | PrivateKey) -> Forger:
        """Take a pack apart."""
        data = pack.read_bytes()
        files = contents(data, listing(data))
        made = cls(data, key if isinstance(key, PrivateKey) else read_key(key))
        made.manifest = json.loads(files.pop(MANIFEST))
        made.note = files.pop(NOTE)
        made.files = files
        return made

    manifest: dict[str, Any] = field(default_factory=dict)
    note: bytes = b""

    @property
    def key_named(self) -> PublicKey:
        """The key that its seal names."""
        return PublicKey.parse(json.loads(self.files[SEAL])["key"])

    def copy(self) -> Forger:
        """Return the same, to be changed by itself."""
        return Forger(self.data, self.key, dict(self.files), deepcopy(self.manifest), self.note)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a file."""
        return [json.loads(line) for line in self.files[name].splitlines()]

    def put_rows(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Write a file's rows."""
        self.files[name] = b"".join(dense(row) + b"\n" for row in rows)

    def edit(self, name: str, change: Callable[[Any], object]) -> None:
        """Change a JSON file, or the rows of one."""
        if name.endswith(".jsonl"):
            rows = self.rows(name)
            change(rows)
            self.put_rows(name, rows)
            return
        value = json.loads(self.files[name])
        change(value)
        self.files[name] = (json.dumps(value, indent=1) + "\n").encode()

    def recommit(self) -> None:
        """Commit anew to every text and answer that is shown, and link the answers anew."""
        texts = self.rows(TEXTS)
        for row in texts:
            if "text" in row:
                opening = Opening(TEXT, row["text"].encode(), bytes.fromhex(row["blinding"]))
                row["commitment"] = commit(opening).hex()
        self.put_rows(TEXTS, texts)
        answers = self.rows(ANSWERS_FILE)
        for row in answers:
            if "text" in row:
                opening = Opening(ROW, row["text"].encode(), bytes.fromhex(row["blinding"]))
                row["commitment"] = commit(opening).hex()
        self.put_rows(ANSWERS_FILE, answers)
        self.relink()

    def relink(self) -> None:
        """Link the answers anew, as they stand now."""
        head, answers = first_link(self.files[SEAL]), self.rows(ANSWERS_FILE)
        for row in answers:
            head = next_link(head, tuple(row["asked"]), bytes.fromhex(row["commitment"]))
        self.manifest["chain"] |= {"head": head.hex(), "answers": len(answers)}

    def packed(self, key: PrivateKey | None = None) -> bytes:
        """Put the pack together and sign it."""
        return signed_pack(self.files, PackChain(**self.manifest["chain"]), key or self.key)
