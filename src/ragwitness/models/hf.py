"""Any transformers model, by folder or hub name, behind the protocols of this package.

A hub name downloads what is not in the local cache, unless Hugging Face's own offline switch
(``HF_HUB_OFFLINE=1``) is set. Nothing here picks a model by itself.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import ModelError
from ragwitness.types import TokenLogprob

from .base import ChatPrompt, Generation, TextScores
from .decoding import Decoding, Vocabulary, score_tokens
from .hf_embedder import HFEmbedder
from .hf_loading import identity, import_libraries, load_pretrained
from .hf_prompt import PromptTokenizer, Tokenized

__all__ = ["HFEmbedder", "HFLanguageModel"]

Float32 = NDArray[np.float32]

_LOGIT_BYTES = 512 * 1024 * 1024
"""Memory for the logits of one batch: the vocabulary of large models is what fills it."""

_PARALLEL = 8
"""Sequences decoded together."""


class HFLanguageModel:
    """A causal language model run by transformers.

    With a chat template, conversations follow it; without one (e.g. GPT-2 XL) the messages are
    joined by blank lines.

    Args:
        name_or_folder: Local folder or hub name.
        device: Torch device; None takes CUDA where there is one.
        dtype: Torch number format by name, e.g. ``"bfloat16"``; None is float32 on the
            processor and the checkpoint's own elsewhere.

    Raises:
        MissingExtraError: Torch or transformers is not installed.
        ModelError: The model cannot be loaded.
    """

    def __init__(
        self, name_or_folder: str | Path, *, device: str | None = None, dtype: str | None = None
    ) -> None:
        torch, transformers = import_libraries("A transformers language model")
        self._torch, self._source = torch, str(name_or_folder)
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        number_format = dtype or ("float32" if self._device == "cpu" else "auto")
        self._model = load_pretrained(
            transformers.AutoModelForCausalLM, self._source, dtype=number_format
        )
        self._model.to(self._device).eval()
        tokenizer = load_pretrained(transformers.AutoTokenizer, self._source)
        self._prompts = PromptTokenizer(tokenizer, self._source)
        self._vocabulary = Vocabulary(
            self._prompts.token_text, self._prompts.decode, self._stop_ids(tokenizer)
        )
        accepted = inspect.signature(self._model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_keep = "logits_to_keep" in accepted

    def _stop_ids(self, tokenizer: Any) -> frozenset[int]:
        stated = getattr(self._model.generation_config, "eos_token_id", None)
        ends = stated if isinstance(stated, list) else [stated]
        known = {int(end) for end in ends if end is not None}
        return frozenset(known | {int(index) for index in tokenizer.all_special_ids})

    @cached_property
    def name(self) -> str:
        """``hf:``, the model, and its commit on the hub or the sha256 of its local weights."""
        return identity(self._source, self._model.config)

    @property
    def context_length(self) -> int:
        """Tokens it can attend to, prompt and answer together."""
        config = self._model.config.get_text_config()
        for key in ("max_position_embeddings", "n_positions", "seq_length"):
            if isinstance(length := getattr(config, key, None), int):
                return length
        return 2048

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text``, without special ones."""
        return self._prompts.count(text)

    def _check_length(self, tokens: int, what: str) -> None:
        if tokens > self.context_length:
            raise ModelError(
                f"{what} has {tokens} tokens; {self._source} reads {self.context_length}.",
                "Shorten it, or retrieve fewer or shorter passages.",
            )

    def score(
        self,
        texts: Sequence[str],
        *,
        after: Sequence[ChatPrompt] | None = None,
        top: int = 0,
    ) -> list[TextScores]:
        """Score each text teacher-forced; see :class:`~ragwitness.models.LanguageModel`."""
        if after is not None and len(after) != len(texts):
            raise ValueError("after must hold one conversation per text")
        prompts: Sequence[ChatPrompt | None] = [None] * len(texts) if after is None else after
        rows = [self._prompts.scored(t, p) for t, p in zip(texts, prompts, strict=True)]
        for row in rows:
            self._check_length(row.size, "The text with what precedes it")
        return [scores for batch in self._batches(rows) for scores in self._score(batch, top)]

    def _batches(self, rows: Sequence[Tokenized]) -> Iterator[list[Tokenized]]:
        """Neighbouring rows whose logits fit the memory set aside for them."""
        limit = _LOGIT_BYTES // (4 * int(self._model.config.get_text_config().vocab_size))
        batch: list[Tokenized] = []
        for row in rows:
            longest = max([row.size, *(other.size for other in batch)])
            if batch and longest * (len(batch) + 1) > limit:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    def _score(self, batch: Sequence[Tokenized], top: int) -> Iterator[TextScores]:
        ids, mask = self._padded([row.whole for row in batch], left=False)
        keep = ids.shape[1] - min(len(row.prompt) for row in batch) + 1
        with self._torch.inference_mode():
            logits = self._forward(ids, mask, keep=keep, use_cache=False).logits
        skipped = ids.shape[1] - logits.shape[1]
        for place, row in enumerate(batch):
            bare = 0 if len(row.prompt) else 1  # tokens with nothing before them
            first = len(row.prompt) + bare - 1 - skipped
            own = logits[place, first : first + len(row.ids) - bare]
            logprobs, ranks, tokens = score_tokens(
                lambda part, own=own: own[part].float().cpu().numpy(),  # type: ignore[misc]
                row.ids[bare:],
                top,
                self._prompts.token_text,
            )
            if bare:
                logprobs, ranks = np.append(math.nan, logprobs), np.append(0, ranks)
                begin = TokenLogprob(self._prompts.token_text(int(row.ids[0])), math.nan)
                tokens = (begin, *tokens) if top else ()
            yield TextScores(row.ids, row.offsets, logprobs, ranks, tokens, len(row.prompt))

    def _padded(self, rows: Sequence[NDArray[np.int64]], *, left: bool) -> tuple[Any, Any]:
        """Token ids and attention mask, each (n, longest), on the device."""
        longest = max(len(row) for row in rows)
        ids, mask = np.zeros((2, len(rows), longest), np.int64)
        for place, row in enumerate(rows):
            part = slice(longest - len(row), None) if left else slice(len(row))
            ids[place, part], mask[place, part] = row, 1
        return self._tensor(ids), self._tensor(mask)

    def _tensor(self, array: NDArray[np.int64]) -> Any:
        return self._torch.from_numpy(array).to(self._device)

    def _forward(self, ids: Any, mask: Any, *, keep: int, **others: Any) -> Any:
        if self._takes_positions:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            others["position_ids"] = positions[:, -ids.shape[1] :]
        if self._takes_keep:
            others["logits_to_keep"] = keep
        return self._model(input_ids=ids, attention_mask=mask, **others)

    def generate(
        self,
        prompts: Sequence[ChatPrompt],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        stop: Sequence[str] = (),
        seed: int | None = None,
    ) -> list[Generation]:
        """Continue each conversation; see :class:`~ragwitness.models.LanguageModel`.

        Where a prompt leaves less room than ``max_tokens``, the answer ends at the context
        length with ``finish_reason`` ``"length"``.
        """
        encoded = [self._prompts.prompt(prompt) for prompt in prompts]
        for ids in encoded:
            self._check_length(len(ids) + 1, "The prompt with room for one token")
        answers = [
            Decoding(
                self._vocabulary,
                prompt_tokens=len(ids),
                room=min(max_tokens, self.context_length - len(ids)),
                temperature=temperature,
                top=top_logprobs,
                stop=stop,
                seed=seed,
            )
            for ids in encoded
        ]
        for start in range(0, len(encoded), _PARALLEL):
            part = slice(start, start + _PARALLEL)
            self._decode(encoded[part], answers[part])
        return [answer.result() for answer in answers]

    def _decode(self, encoded: Sequence[NDArray[np.int64]], answers: Sequence[Decoding]) -> None:
        """Decode a batch until every answer is complete."""
        ids, mask = self._padded(encoded, left=True)
        past = None
        with self._torch.inference_mode():
            while any(answer.finish_reason is None for answer in answers):
                output = self._forward(ids, mask, keep=1, use_cache=True, past_key_values=past)
                past = output.past_key_values
                logits = output.logits[:, -1].float().cpu().numpy()
                chosen = [
                    (answer.push(row) or 0) if answer.finish_reason is None else 0
                    for answer, row in zip(answers, logits, strict=True)
                ]
                ids = self._tensor(np.array(chosen, np.int64)[:, None])
                mask = self._torch.cat((mask, self._torch.ones_like(ids)), -1)
