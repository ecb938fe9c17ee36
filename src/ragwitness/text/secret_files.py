"""Ledgers of secrets as files: one JSON object per line, ``{"text", "kind", "record"}``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.text.secrets import Secret

__all__ = ["read_secrets", "write_secrets"]


def write_secrets(path: Path, secrets: Iterable[Secret]) -> None:
    """Write a ledger.

    Raises:
        InputError: The file cannot be written.
    """
    lines = (json.dumps(asdict(secret), ensure_ascii=False) + "\n" for secret in secrets)
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.", "Choose another.") from error


def read_secrets(path: Path) -> list[Secret]:
    """Read a ledger; ``kind`` and ``record`` may be missing. No secret is ever repeated here.

    Raises:
        InputError: The file cannot be read, or a line holds no secret.
    """
    found = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_secret(line, f"{path}:{number}"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"Cannot read {path}: {reason}.", _FORM) from error
    if not found:
        raise InputError(f"{path} holds no secret.", _FORM)
    return found


_FORM = 'Each line is a JSON object such as {"text": "…", "kind": "name", "record": "id"}.'


def _secret(line: str, where: str) -> Secret:
    try:
        row = json.loads(line)
        text = row["text"]
        kind, record = row.get("kind", "secret"), row.get("record", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{where} is no secret.", _FORM) from None
    if not (isinstance(text, str) and any(char.isalnum() for char in text)):
        raise InputError(f"{where}: the text of the secret is empty or no text.", _FORM)
    return Secret(text, str(kind), str(record))
