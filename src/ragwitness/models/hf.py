"""Any transformers model, by folder or hub name, behind the protocols of this package.

A hub name downloads what is not in the local cache, unless Hugging Face's own offline switch
(``HF_HUB_OFFLINE=1``) is set. Nothing here picks a model by itself.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import ModelError, import_extra
from ragwitness.core.files import files_digest
from ragwitness.core.types import TokenLogprob
from ragwitness.models.base import ChatPrompt, TextScores, close_gaps
from ragwitness.models.decoding import Decoding, TokenModel, TokenVocabulary, score_tokens

# Conversations and texts as tokens of any transformers tokenizer.

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PromptedText:
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
        tokenizer: A tokenizer of transformers; a fast one, because offsets are needed.
        source: Name of its origin, for errors.

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

    def scored(self, text: str, prompt: ChatPrompt | None) -> PromptedText:
        """Tokens of ``text`` behind a conversation, or behind the start of a text.

        The two are tokenised as one string; a token across the seam belongs to the text.
        """
        rendered, has_layout = ("", False) if prompt is None else self._render(prompt)
        joined_text = joined(rendered, text)
        ids, offsets = self._encode(joined_text)
        # Tokens that end within the prompt come before the text; one across the seam is its own.
        seam = int(np.count_nonzero(np.cumsum(offsets[:, 1] > len(rendered)) == 0))
        relative = np.maximum(offsets[seam:] - (len(joined_text) - len(text)), 0)
        raw = prompt is not None and not prompt.messages and not self._always_begins
        # A raw text is continued with nothing before it, so it is scored so, too.
        nothing = raw and len(ids) > 0
        before = ids[:seam] if nothing else self._with_begin(ids[:seam], has_layout)
        return PromptedText(before, ids[seam:], close_gaps(relative))

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


Float32 = NDArray[np.float32]

_LOGIT_BYTES = 512 * 1024 * 1024
"""Memory for the logits of one batch: the vocabulary of large models is what fills it."""

_PARALLEL = 8
"""Sequences decoded together."""


class HFLanguageModel(TokenModel):
    """A causal language model run by transformers.

    With a chat template, conversations follow it; without one (e.g. GPT-2 XL) the messages are
    joined by blank lines.

    Args:
        name_or_folder: Local folder or hub name.
        device: Torch device; None takes CUDA where there is one. Numbers are float32 on the
            processor, and the checkpoint's own elsewhere.

    Raises:
        MissingExtraError: Torch or transformers is not installed.
        ModelError: The model cannot be loaded.
    """

    def __init__(self, name_or_folder: str | Path, *, device: str | None = None) -> None:
        torch, transformers = import_libraries("A transformers language model")
        self._torch, self._source = torch, str(name_or_folder)
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        number_format = "float32" if self._device == "cpu" else "auto"
        self._model = load_pretrained(
            transformers.AutoModelForCausalLM, self._source, dtype=number_format
        )
        self._model.to(self._device).eval()
        tokenizer = load_pretrained(transformers.AutoTokenizer, self._source)
        self._prompts = PromptTokenizer(tokenizer, self._source)
        self._vocabulary = TokenVocabulary(
            self._prompts.token_text, self._prompts.decode, self._stop_ids(tokenizer)
        )
        accepted = inspect.signature(self._model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_keep = "logits_to_keep" in accepted
        self._cache_name = cache_name(self._model)

    def _stop_ids(self, tokenizer: Any) -> frozenset[int]:
        stated = getattr(self._model.generation_config, "eos_token_id", None)
        ends = stated if isinstance(stated, list) else [stated]
        ids = {int(end) for end in ends if end is not None}
        return frozenset(ids | {int(index) for index in tokenizer.all_special_ids})

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

    def _prompt_ids(self, prompt: ChatPrompt) -> Int64:
        return self._prompts.prompt(prompt)

    def score(
        self, texts: Sequence[str], *, after: Sequence[ChatPrompt] | None = None, top: int = 0
    ) -> list[TextScores]:
        """Score each text teacher-forced; see :class:`~ragwitness.models.base.LanguageModel`."""
        if after is not None and len(after) != len(texts):
            raise ValueError("after must hold one conversation per text")
        prompts: Sequence[ChatPrompt | None] = [None] * len(texts) if after is None else after
        rows = [self._prompts.scored(t, p) for t, p in zip(texts, prompts, strict=True)]
        for row in rows:
            self._check_length(row.size, "The text with what precedes it")
        return [scores for batch in self._batches(rows) for scores in self._score(batch, top)]

    def _batches(self, rows: Sequence[PromptedText]) -> Iterator[list[PromptedText]]:
        """Neighbouring rows whose logits fit the memory set aside for them."""
        limit = _LOGIT_BYTES // (4 * int(self._model.config.get_text_config().vocab_size))
        batch: list[PromptedText] = []
        for row in rows:
            longest = max([row.size, *(member.size for member in batch)])
            if batch and longest * (len(batch) + 1) > limit:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    def _score(self, batch: Sequence[PromptedText], top: int) -> Iterator[TextScores]:
        ids, mask = self._padded([row.whole for row in batch], left=False)
        # Logits are needed from the last token of the shortest prompt on.
        keep = ids.shape[1] - min(len(row.prompt) for row in batch) + 1
        with self._torch.inference_mode():
            logits = self._forward(ids, mask, keep=keep, use_cache=False).logits
        skipped = ids.shape[1] - logits.shape[1]
        for number, row in enumerate(batch):
            bare = 0 if len(row.prompt) else 1  # tokens with nothing before them
            first = len(row.prompt) + bare - 1 - skipped
            text_logits = logits[number, first : first + len(row.ids) - bare]
            logprobs, ranks, tokens = score_tokens(
                lambda span, own=text_logits: own[span].float().cpu().numpy(),  # type: ignore[misc]
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
        # Scores are read from the left, so rows are padded right; decoding pads left.
        longest = max(len(row) for row in rows)
        ids, mask = np.zeros((2, len(rows), longest), np.int64)
        for number, row in enumerate(rows):
            span = slice(longest - len(row), None) if left else slice(len(row))
            ids[number, span], mask[number, span] = row, 1
        return self._tensor(ids), self._tensor(mask)

    def _tensor(self, array: NDArray[np.int64]) -> Any:
        return self._torch.from_numpy(array).to(self._device)

    def _forward(self, ids: Any, mask: Any, *, keep: int, **others: Any) -> Any:
        if self._takes_positions:
            # Padding takes no position.
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            others["position_ids"] = positions[:, -ids.shape[1] :]
        if self._takes_keep:
            others["logits_to_keep"] = keep
        return self._model(input_ids=ids, attention_mask=mask, **others)

    def _decode(self, encoded: Sequence[NDArray[np.int64]], answers: Sequence[Decoding]) -> None:
        """Decode ``_PARALLEL`` answers at a time, each batch until all of its are complete."""
        for start in range(0, len(encoded), _PARALLEL):
            batch = answers[start : start + _PARALLEL]
            ids, mask = self._padded(encoded[start : start + _PARALLEL], left=True)
            past = None
            with self._torch.inference_mode():
                while any(answer.finish_reason is None for answer in batch):
                    options = {"use_cache": True, self._cache_name: past}
                    output = self._forward(ids, mask, keep=1, **options)
                    past = getattr(output, self._cache_name)
                    logits = output.logits[:, -1].float().cpu().numpy()
                    chosen = [
                        (answer.push(row[None]) or [0])[0] if answer.finish_reason is None else 0
                        for answer, row in zip(batch, logits, strict=True)
                    ]
                    ids = self._tensor(np.array(chosen, np.int64)[:, None])
                    mask = self._torch.cat((mask, self._torch.ones_like(ids)), -1)


# Loading through transformers: imports, errors in our words, and a model's identity.


def import_libraries(feature: str) -> tuple[Any, Any]:
    """Import torch and transformers, seconds each, only when a model is built.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    return import_extra("torch", feature, "hf"), import_extra("transformers", feature, "hf")


@contextlib.contextmanager
def quiet(source: str) -> Iterator[None]:
    """Show no progress bar while a local folder is read or written; a download keeps its bar."""
    from transformers.utils import logging

    if not Path(source).is_dir() or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def load_pretrained(factory: Any, source: str, **options: Any) -> Any:
    """Call ``factory.from_pretrained``.

    Raises:
        ModelError: There is no such model, or no way to it.
    """
    try:
        with quiet(source):
            return factory.from_pretrained(source, **options)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"transformers cannot load {source}: {reason[0] if reason else error!r}",
            "Give a local folder, or a hub name that is cached or reachable.",
        ) from error


def cache_name(model: Any) -> str:
    """Return what this model calls the keys and values it keeps, as argument and in its output.

    It was ``past_key_values`` before transformers 5.24 or so, and is ``cache`` since. A model with
    adapters hands on whatever it is given, to the model that it wraps.
    """
    wrapped = model.get_base_model() if hasattr(model, "get_base_model") else model
    accepted = inspect.signature(wrapped.forward).parameters
    return "cache" if "cache" in accepted else "past_key_values"


def identity(source: str, config: Any) -> str:
    """Return ``hf:NAME@VERSION``.

    The version is the hub's commit, or the sha256 of the local weight files: six digits each.
    """
    # A hub's commit fixes every file; a local folder has none, so its weights are hashed.
    commit = getattr(config, "_commit_hash", None)
    if commit:
        return f"hf:{source}@{commit[:6]}"
    folder = Path(source)
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
    return f"hf:{folder.resolve().name}@{files_digest(weights)[:6]}"
