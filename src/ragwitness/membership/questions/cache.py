"""What a model wrote, kept: the same question about the same document is paid for once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ragwitness.errors import InputError

__all__ = ["WrittenCache"]


class WrittenCache:
    """Outputs by content; in memory, and in a JSON Lines file where one is named.

    A line cut short by a crash is left out, and its output is written again.

    Args:
        path: Read now, appended to later; None keeps nothing beyond the process.

    Raises:
        InputError: The file cannot be read.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._texts: dict[str, str] = {}
        self._torn = False
        if self._path is not None and self._path.exists():
            self._load(self._path)

    @staticmethod
    def key(model: str, prompt: str, document: str) -> str:
        """Return the sha256 of model name, prompt and document, each with its length."""
        digest = hashlib.sha256()
        for part in (model, prompt, document):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, key: str) -> str | None:
        """Return what was written, or None."""
        return self._texts.get(key)

    def put(self, key: str, text: str) -> None:
        """Keep an output.

        Raises:
            InputError: The file cannot be written.
        """
        self._texts[key] = text
        if self._path is None:
            return
        line = json.dumps({"key": key, "text": text}) + "\n"
        try:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write("\n" + line if self._torn else line)
        except OSError as error:
            raise InputError(f"{self._path} cannot be written: {error.strerror}.") from error
        self._torn = False

    def _load(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                row = json.loads(line)
                key, written = row["key"], row["text"]
            except (ValueError, TypeError, KeyError):
                continue
            if isinstance(key, str) and isinstance(written, str):
                self._texts[key] = written
