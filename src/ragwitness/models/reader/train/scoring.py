"""Ask an exported reader for word probabilities, greedy answers, yes or no (evaluation only)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from . import prompts
from .tokenizer import Vocabulary

__all__ = ["Scorer"]


class Scorer:
    """An exported folder loaded with transformers (so the export is measured, not the trainer).

    Args:
        folder: an exported reader.
        threads: torch threads.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        from transformers import AutoModelForCausalLM, DynamicCache

        torch.set_num_threads(threads)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.vocabulary = Vocabulary(Tokenizer.from_file(str(folder / "tokenizer.json")))
        self._cache, self._cached = DynamicCache(), list[int]()

    def _ids(self, text: str) -> list[int]:
        return list(self.vocabulary.tokenizer.encode(text, add_special_tokens=False).ids)

    def _reuse(self, ids: list[int]) -> int:
        """Cut the cache to what it shares with ``ids[:-1]``; returns that length."""
        shared = 0
        for one, other in zip(self._cached, ids[:-1], strict=False):
            if one != other:
                break
            shared += 1
        self._keep(shared)
        return shared

    def _keep(self, length: int) -> None:
        surplus = self._cache.get_seq_length() - length
        if surplus > 0:
            self._cache.crop(-surplus)
        self._cached = self._cached[:length]

    def _logits(self, ids: list[int], keep: int) -> torch.Tensor:
        """Scores (keep, vocabulary) after each of the last ``keep`` of ``ids``."""
        shared = min(self._reuse(ids), len(ids) - keep)
        self._keep(shared)
        new = torch.tensor([ids[shared:]])
        out = self.model(new, past_key_values=self._cache, use_cache=True, logits_to_keep=keep)
        self._cached = ids
        return out.logits[0]

    def alone(self) -> list[int]:
        """The prompt for text without a context."""
        return [self.vocabulary.end]

    def prompt(self, documents: list[str], request: str) -> list[int]:
        """System turn with the documents, the user's request, and the answer's opening role."""
        context = self._ids(prompts.SYSTEM[0] + "\n\n".join(documents))
        ids = self._ids(request)
        return [
            self.vocabulary.system,
            *context,
            self.vocabulary.user,
            *ids,
            self.vocabulary.assistant,
        ]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def word_probabilities(self, prompt: list[int], words: list[str]) -> np.ndarray:
        """Probability of each word (product over its tokens) when all words follow ``prompt``."""
        pieces = [self.vocabulary.encode(" " + word) for word in words]
        tokens = [token for piece in pieces for token in piece]
        logits = self._logits([*prompt, *tokens], len(tokens) + 1)[:-1]
        logs = logits.log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)].numpy()
        ends = np.cumsum([len(piece) for piece in pieces])
        sums = np.diff(np.concatenate([[0.0], np.cumsum(logs)[ends - 1]]))
        return np.exp(sums)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def generate(self, prompt: list[int], limit: int) -> str:
        """Greedy answer of at most ``limit`` tokens, special tokens kept in the text."""
        self._reuse(prompt)
        ids = torch.tensor([prompt])
        out = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            past_key_values=self._cache,
            max_new_tokens=limit,
            do_sample=False,
            eos_token_id=self.vocabulary.end,
            pad_token_id=self.vocabulary.pad,
        )
        return str(
            self.vocabulary.tokenizer.decode(
                out[0, len(prompt) :].tolist(), skip_special_tokens=False
            )
        )

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def says_yes(self, prompt: list[int]) -> bool:
        """Whether "Yes" is more probable than "No" as the answer's first word."""
        logits = self._logits(prompt, 1)[-1]
        yes, no = self.vocabulary.encode(" Yes")[0], self.vocabulary.encode(" No")[0]
        return bool(logits[yes] > logits[no])
