"""The reader's tokenizer and chat layout.

The layout has one definition, the folder's ``chat_template.jinja``; it is rendered with jinja2
here exactly as ``apply_chat_template`` of transformers renders it.

The leading-space rule: a word and the space before it are one token, and every text of the training
starts with a space. So a prefill, or a scored text, gets one space in front unless it begins with
white space. Spaces at the end of a prefill are removed: they belong to the next token.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError
from ragwitness.core.types import Message
from ragwitness.models.base import close_gaps
from ragwitness.models.reader.checkpoint import read_json

Int64 = NDArray[np.int64]


def spoken(text: str) -> str:
    """Return ``text`` with the leading space its first word needs."""
    return text if not text or text[0].isspace() else " " + text


def _byte_of_character() -> dict[str, int]:
    """The byte-level alphabet of GPT-2: which character stands for which byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(256 + number): byte for number, byte in enumerate(others)}


class ReaderTokenizer:
    """Text to tokens and back, for one model folder.

    Args:
        folder: Holds ``tokenizer.json``, ``generation_config.json`` and the chat template.

    Attributes:
        stop_ids: Tokens that end an answer: the end token and every other control token.
        end_id: The token text without a context is scored after.
        size: Number of tokens.

    Raises:
        ModelError: A file is missing or unusable, or the tokenizer is not byte-level.
    """

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        description = read_json(folder / "tokenizer.json")
        if (description.get("decoder") or {}).get("type") != "ByteLevel":
            raise ModelError(
                f"The tokenizer in {folder} is not byte-level BPE.",
                f"Run the model through transformers instead: hf:{folder}",
            )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._bytes = self._token_bytes(description)
        added = description.get("added_tokens", [])
        special = {int(entry["id"]) for entry in added if entry.get("special")}
        ends = self._end_ids(folder)
        self.end_id = ends[0]
        self.stop_ids = frozenset(special | set(ends))
        self.size = len(self._bytes)
        self._template = _read_template(folder)

    def _token_bytes(self, description: dict[str, Any]) -> list[bytes]:
        alphabet = _byte_of_character()
        # A byte-level token is spelled in an alphabet of 256 characters, one for each byte.
        table = dict.fromkeys(range(self._tokenizer.get_vocab_size()), b"")
        for token, index in description["model"]["vocab"].items():
            table[index] = bytes(alphabet[char] for char in token if char in alphabet)
        for entry in description.get("added_tokens", []):
            table[entry["id"]] = entry["content"].encode()
        return [table.get(index, b"") for index in range(max(table) + 1)]

    def _end_ids(self, folder: Path) -> list[int]:
        stated = read_json(folder / "generation_config.json").get("eos_token_id")
        listed = stated if isinstance(stated, list) else [stated]
        ends = [end for end in listed if isinstance(end, int)]
        if not ends:
            raise ModelError(
                f"{folder / 'generation_config.json'} names no eos_token_id.",
                "Add the id of the token that ends an answer.",
            )
        return ends

    def encode(self, text: str) -> Int64:
        """Token ids of ``text`` as it stands, shape (n,)."""
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int64)

    def encode_spoken(self, text: str) -> tuple[Int64, Int64]:
        """Tokenise what the assistant says, with its leading space.

        Returns:
            Ids (n,) and the character range of each token in ``text`` itself (n, 2); ranges
            touch, so a space belongs to the token of the word after it. Tokens that share one
            character (its bytes) have the same range.
        """
        utterance = spoken(text)
        encoded = self._tokenizer.encode(utterance, add_special_tokens=False)
        offsets = np.asarray(encoded.offsets, np.int64).reshape(-1, 2)
        # The space in front is not part of the text: ranges move back by one.
        shifted = np.maximum(close_gaps(offsets) - (len(utterance) - len(text)), 0)
        return np.asarray(encoded.ids, np.int64), shifted

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids`` without control tokens; U+FFFD for bytes that form no character."""
        data = b"".join(self._bytes_of(token) for token in ids if token not in self.stop_ids)
        return data.decode("utf-8", errors="replace")

    def token_text(self, token: int) -> str:
        """Text of one token; U+FFFD where it holds part of a character only."""
        return self._bytes_of(token).decode("utf-8", errors="replace")

    def _bytes_of(self, token: int) -> bytes:
        return self._bytes[token] if token < self.size else b""  # rows beyond the tokenizer

    def render(self, messages: Sequence[Message]) -> str:
        """Lay the conversation out, up to where the assistant speaks.

        Raises:
            ModelError: The chat template has no place for such a conversation.
        """
        from jinja2 import TemplateError

        turns = [{"role": str(turn.role), "content": turn.content} for turn in messages]
        try:
            return str(self._template.render(messages=turns, add_generation_prompt=True))
        except TemplateError as error:
            raise ModelError(
                f"The chat template cannot lay the conversation out: {error}.",
                "Give at least one message, of the roles the template knows.",
            ) from error

    def encode_prompt(self, messages: Sequence[Message], prefill: str = "") -> Int64:
        """Token ids of a conversation and of the prefill behind it, shape (n,)."""
        prefix, _ = self.encode_spoken(prefill.rstrip(" "))
        return np.concatenate((self.encode(self.render(messages)), prefix))


def _read_template(folder: Path) -> Any:
    """Compile the chat template as transformers does.

    Raises:
        ModelError: There is none, or it does not compile.
    """
    from jinja2 import TemplateError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise ModelError(f"The chat template refuses the conversation: {message}")

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.globals["raise_exception"] = refuse
    try:
        return environment.from_string((folder / "chat_template.jinja").read_text("utf-8"))
    except (OSError, TemplateError) as error:
        raise ModelError(
            f"The chat_template.jinja in {folder} is missing or does not compile: {error}.",
            "Copy it from the folder the model was published in.",
        ) from error
