"""The models of a simulated provider: its base, the policy and the scorers made from it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.canary.simulate.chat import PLACE, end_of_turn, frame_of
from ragwitness.canary.simulate.sequences import Ids, Rows
from ragwitness.canary.simulate.templates import prompt
from ragwitness.errors import InputError, MissingExtraError, ModelError

__all__ = [
    "Base",
    "Lora",
    "Scorer",
    "load_base",
    "new_scorer",
    "one_thread",
    "save_policy",
    "seeded",
    "start_policy",
]


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters in place of full training; defaults of 2604.22191, App. D.1.

    Attributes:
        rank: Of the factors.
        alpha: Scale, over the rank.
        dropout: Before the adapters.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.05


@dataclass(frozen=True, slots=True)
class Base:
    """The model that is deployed before any training, and its tokenizer.

    Attributes:
        model: Causal language model of transformers; never changed.
        tokenizer: Of transformers.
        name: For reports.
        frame: Around every prompt: a chat model's own template.
        end: Token that ends an answer; None takes the tokenizer's.
    """

    model: Any
    tokenizer: Any
    name: str
    frame: str = PLACE
    end: int | None = None

    @property
    def eos(self) -> int:
        """End token."""
        return int(self.tokenizer.eos_token_id) if self.end is None else self.end

    @property
    def pad(self) -> int:
        """Padding; the end token where there is none that the model knows."""
        pad = self.tokenizer.pad_token_id
        known = pad is not None and pad < self.model.get_input_embeddings().num_embeddings
        return int(pad) if known else self.eos

    def asked(self, query: str, document: str | None = None) -> str:
        """Return what the model reads before it answers; without a document, none is shown."""
        before, _, after = self.frame.partition(PLACE)
        return before + prompt(query, document) + after

    def encode(self, texts: list[str]) -> list[Ids]:
        """Return the token ids of each text, with what the tokenizer puts in front."""
        found: list[Ids] = self.tokenizer(texts)["input_ids"]
        return found

    def encode_answers(self, texts: list[str]) -> list[Ids]:
        """Return the token ids of answers: nothing in front, the end token behind."""
        found: list[Ids] = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return [[*row, self.eos] for row in found]

    def answers(self, rows: list[Ids]) -> list[str]:
        """Return answers as text, without special tokens and outer blanks."""
        texts = self.tokenizer.batch_decode(rows, skip_special_tokens=True)
        return [text.strip() for text in texts]


@dataclass(frozen=True, slots=True)
class Scorer:
    """A number read off a model's last layer: a reward model, or a critic.

    Attributes:
        backbone: Model without its output layer.
        head: Linear layer to one number.
    """

    backbone: Any
    head: Any

    def parameters(self) -> Iterator[Any]:
        """Yield everything that is trained."""
        yield from (p for p in self.backbone.parameters() if p.requires_grad)
        yield from self.head.parameters()

    def per_token(self, rows: Rows) -> Any:
        """Return the number at every token, shape (rows, prompt + answer)."""
        hidden = self.backbone(
            input_ids=rows.ids, attention_mask=rows.mask, position_ids=rows.positions
        ).last_hidden_state
        return self.head(hidden.float()).squeeze(2)

    def values(self, rows: Rows) -> Any:
        """Return the number before each token of the answer, shape (rows, width)."""
        return self.per_token(rows)[:, -rows.width - 1 : -1]

    def rewards(self, rows: Rows) -> Any:
        """Return the number at the last token of each row, shape (rows,)."""
        import torch

        last = rows.ids.shape[1] - 1 - rows.mask.flip(1).argmax(1)
        return self.per_token(rows)[torch.arange(len(last)), last]


def load_base(source: str, dtype: str = "float32") -> Base:
    """Load a local folder, or a hub name that is cached.

    Args:
        source: Folder or name.
        dtype: Of the weights: ``float32``, or ``bfloat16`` where adapters alone are trained.

    Raises:
        InputError: The number format is another one.
        MissingExtraError: torch or transformers is not installed.
        ModelError: It cannot be loaded, or answers could not end.
    """
    if dtype not in ("float32", "bfloat16"):
        raise InputError(f"Weights are float32 or bfloat16, not {dtype!r}.")
    from ragwitness.models.hf_loading import identity, import_libraries, load_pretrained

    torch, transformers = import_libraries("Training a policy")
    tokenizer = load_pretrained(transformers.AutoTokenizer, source)
    with torch.device("cpu"):  # elsewhere transformers asks for accelerate
        model = load_pretrained(
            transformers.AutoModelForCausalLM, source, dtype=getattr(torch, dtype)
        )
    if tokenizer.eos_token_id is None:
        raise ModelError(
            f"{source} has no end token: its answers would never end.", "Set it in its tokenizer."
        )
    if tokenizer("a")["input_ids"][-1] == tokenizer.eos_token_id:
        raise ModelError(
            f"The tokenizer of {source} puts its end token behind every text: a prompt would end"
            " before it is answered.",
            "Set add_eos_token = false in its tokenizer_config.json.",
        )
    model = model.to(torch.get_default_device()).eval()
    named = identity(source, model.config)
    return Base(model, tokenizer, named, frame_of(tokenizer), end_of_turn(tokenizer))


def save_policy(base: Base, model: Any, folder: Path) -> None:
    """Write a model as a folder that servers of transformers can load and sample from.

    A query is all that the models here read, so the chat template is the last message as it
    stands. Servers that ask the model's own settings whether to sample are told to.

    Args:
        base: Whose tokenizer is written.
        model: The base's, or a policy made from it; adapters are merged into a copy.
        folder: New.

    Raises:
        FileExistsError: It is there.
    """
    from ragwitness.models.hf_loading import quiet

    model = copy.deepcopy(model)
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    settings = model.generation_config
    settings.do_sample, settings.temperature, settings.top_k, settings.top_p = True, 1.0, 0, 1.0
    if base.pad != base.eos:
        settings.suppress_tokens = [base.pad]  # as in every answer here, padding is never drawn
    folder.mkdir(parents=True)
    with quiet(str(folder)):
        model.save_pretrained(folder)
    tokenizer = copy.deepcopy(base.tokenizer)
    tokenizer.chat_template = tokenizer.chat_template or "{{ messages[-1]['content'] }}"
    tokenizer.save_pretrained(folder)


def start_policy(base: Base, lora: Lora | None = None) -> Any:
    """Return a copy of the base to train.

    Raises:
        InputError: Weights in bfloat16 would be trained.
        MissingExtraError: Adapters are asked for, and peft is not installed.
    """
    return _to_train(base.model, lora)


def new_scorer(base: Base, lora: Lora | None = None) -> Scorer:
    """Return a scorer on a copy of the base; its head starts near zero, drawn by torch's seed.

    Raises:
        InputError: Weights in bfloat16 would be trained.
        MissingExtraError: Adapters are asked for, and peft is not installed.
    """
    import torch

    backbone = _to_train(base.model.base_model, lora).eval()
    head = torch.nn.Linear(base.model.config.get_text_config().hidden_size, 1)
    torch.nn.init.normal_(head.weight, std=0.02)  # as transformers does; zeros learn late
    torch.nn.init.zeros_(head.bias)
    return Scorer(backbone, head)


def one_thread(device: str = "cpu") -> None:
    """Compute in one thread: policies are trained side by side, one process each.

    Args:
        device: Of torch; where models and batches of this process live from now on.

    Raises:
        ModelError: There is no such device.
    """
    import torch

    torch.set_num_threads(1)
    try:
        torch.set_default_device(device)
        torch.zeros(1)
        if torch.get_default_device().type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32: more digits than bfloat16 has
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"torch has no device {device!r} here.", 'Set device = "cpu" in the table.'
        ) from error


def seeded(seed: int) -> Any:
    """Return torch's generator on the device in use."""
    import torch

    return torch.Generator(device=torch.get_default_device()).manual_seed(seed)


def _to_train(model: Any, lora: Lora | None) -> Any:
    """Copy a model; with adapters, they alone are trained."""
    import torch

    if lora is not None:
        return _adapted(copy.deepcopy(model), lora)
    if model.dtype != torch.float32:
        raise InputError(
            f"Steps of training are lost in {model.dtype} weights.",
            'Set lora in [reward] and [policy], or dtype = "float32".',
        )
    return copy.deepcopy(model)


def _adapted(model: Any, lora: Lora) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise MissingExtraError("Training adapters", "rl") from error
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear",
    )
    with warnings.catch_warnings():
        # peft 0.21 asks transformers 5 for a property by its old name.
        warnings.simplefilter("ignore", FutureWarning)
        return get_peft_model(model, config)
