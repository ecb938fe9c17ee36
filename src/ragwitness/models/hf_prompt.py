"""Conversations and texts as tokens of any transformers tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import ModelError

from .base import ChatPrompt
from .offsets import close_gaps

__all__ = ["PromptTokenizer", "Tokenized", "joined"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tokenized:
    """A text to score behind its prompt.

    Attributes:
        prompt: Token ids before the text, shape (m,); none before a raw text of a model without
            a BOS token.
        ids: Token ids of the text, shape (n,).
        offsets: Character range of each in the text, shape (n, 2).
    """

    prompt: Int64
    ids: Int64
    offsets: Int64

    @property
    def whole(self) -> Int64:
        """Prompt and text, shape (m + n,)."""
        return np.concatenate((self.prompt, self.ids))

    @property
    def size(self) -> int:
        """Tokens of both."""
        return len(self.prompt) + len(self.ids)


def joined(before: str, text: str) -> str:
    """Put ``text`` behind ``before``, with one space unless either brings white space."""
    if not before or not text or before[-1].isspace() or text[0].isspace():
        return before + text
    return f"{before} {text}"


class PromptTokenizer:
    """One tokenizer with its chat layout.

    Args:
        tokenizer: Of transformers; must be a fast one, because offsets are needed.
        source: Where it came from, for errors.

    Raises:
        ModelError: The tokenizer gives no offsets, or has no token to start a text after.
    """

    def __init__(self, tokenizer: Any, source: str) -> None:
        self._tokenizer = tokenizer
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                f"The tokenizer of {source} is not a fast one and gives no character offsets.",
                "Convert it to tokenizer.json.",
            )
        start = tokenizer.bos_token_id
        self._begin = tokenizer.eos_token_id if start is None else start
        self._always_begins = start is not None
        if self._begin is None:
            raise ModelError(
                f"The tokenizer of {source} has neither a BOS nor an EOS token.",
                "Set one of them in its tokenizer_config.json.",
            )

    def _encode(self, text: str) -> tuple[Int64, Int64]:
        encoded = self._tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        offsets = np.asarray(encoded["offset_mapping"], np.int64).reshape(-1, 2)
        return np.asarray(encoded["input_ids"], np.int64), offsets

    def count(self, text: str) -> int:
        """Tokens of ``text``, without special ones."""
        return len(self._encode(text)[0])

    def _render(self, prompt: ChatPrompt) -> tuple[str, bool]:
        """Lay a conversation out; says whether the layout brings its own special tokens."""
        if not prompt.messages:
            return prompt.prefill, False
        if not self._tokenizer.chat_template:
            turns = [message.content for message in prompt.messages]
            return joined("\n\n".join(turns), prompt.prefill), False
        messages = [{"role": str(m.role), "content": m.content} for m in prompt.messages]
        rendered = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return joined(rendered, prompt.prefill), True

    def _with_begin(self, ids: Int64, has_layout: bool) -> Int64:
        if len(ids) and (has_layout or not self._always_begins):
            return ids
        return np.concatenate((np.array([self._begin], np.int64), ids))

    def prompt(self, prompt: ChatPrompt) -> Int64:
        """Token ids of a conversation the assistant continues, shape (m,)."""
        rendered, has_layout = self._render(prompt)
        return self._with_begin(self._encode(rendered)[0], has_layout)

    def scored(self, text: str, prompt: ChatPrompt | None) -> Tokenized:
        """Tokens of ``text`` behind a conversation, or behind the start of a text.

        The two are tokenised as one string; a token across the seam belongs to the text.
        """
        rendered, has_layout = ("", False) if prompt is None else self._render(prompt)
        whole = joined(rendered, text)
        ids, offsets = self._encode(whole)
        seam = int(np.count_nonzero(np.cumsum(offsets[:, 1] > len(rendered)) == 0))
        relative = np.maximum(offsets[seam:] - (len(whole) - len(text)), 0)
        raw = prompt is not None and not prompt.messages and not self._always_begins
        # A raw text is continued with nothing before it, so it is scored so, too.
        nothing = raw and len(ids) > 0
        before = ids[:seam] if nothing else self._with_begin(ids[:seam], has_layout)
        return Tokenized(before, ids[seam:], close_gaps(relative))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids`` without special tokens."""
        return str(
            self._tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def token_text(self, token: int) -> str:
        """Text of one token, its leading space included; U+FFFD for part of a character."""
        text = str(self._tokenizer.decode([token], clean_up_tokenization_spaces=False))
        raw = self._tokenizer.convert_ids_to_tokens(token) or ""
        # SentencePiece marks the space by U+2581 and drops it at the start of a text.
        return f" {text}" if raw.startswith("\u2581") and not text.startswith(" ") else text
