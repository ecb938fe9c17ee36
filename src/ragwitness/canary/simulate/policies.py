"""The models of a simulated provider: its base, the policy and the scorers made from it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.canary.simulate.sequences import Ids, Rows
from ragwitness.errors import MissingExtraError, ModelError

__all__ = [
    "Base",
    "Lora",
    "Scorer",
    "load_base",
    "new_scorer",
    "one_thread",
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
    """

    model: Any
    tokenizer: Any
    name: str

    @property
    def eos(self) -> int:
        """End token."""
        return int(self.tokenizer.eos_token_id)

    @property
    def pad(self) -> int:
        """Padding; the end token where there is none."""
        pad = self.tokenizer.pad_token_id
        return self.eos if pad is None else int(pad)

    def encode(self, texts: list[str]) -> list[Ids]:
        """Return the token ids of each text, with what the tokenizer puts in front."""
        found: list[Ids] = self.tokenizer(texts)["input_ids"]
        return found

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


def load_base(source: str) -> Base:
    """Load a local folder, or a hub name that is cached.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        ModelError: It cannot be loaded, or has no end token.
    """
    from ragwitness.models.hf_loading import identity, import_libraries, load_pretrained

    torch, transformers = import_libraries("Training a policy")
    tokenizer = load_pretrained(transformers.AutoTokenizer, source)
    model = load_pretrained(transformers.AutoModelForCausalLM, source, dtype=torch.float32)
    if tokenizer.eos_token_id is None:
        raise ModelError(
            f"{source} has no end token: its answers would never end.", "Set it in its tokenizer."
        )
    name = Path(source).name if Path(source).is_dir() else source
    model = model.to(torch.get_default_device())
    return Base(model.eval(), tokenizer, identity(source, model.config) if name else source)


def start_policy(base: Base, lora: Lora | None = None) -> Any:
    """Return a copy of the base to train.

    Raises:
        MissingExtraError: Adapters are asked for, and peft is not installed.
    """
    model = copy.deepcopy(base.model)
    return model if lora is None else _adapted(model, lora)


def new_scorer(base: Base, lora: Lora | None = None) -> Scorer:
    """Return a scorer on a copy of the base; its head starts near zero, drawn by torch's seed.

    Raises:
        MissingExtraError: Adapters are asked for, and peft is not installed.
    """
    import torch

    backbone = copy.deepcopy(base.model.base_model)
    head = torch.nn.Linear(base.model.config.hidden_size, 1)
    torch.nn.init.normal_(head.weight, std=0.02)  # as transformers does; zeros learn late
    torch.nn.init.zeros_(head.bias)
    return Scorer(backbone if lora is None else _adapted(backbone, lora), head)


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
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"torch has no device {device!r} here.", 'Set device = "cpu" in the table.'
        ) from error


def seeded(seed: int) -> Any:
    """Return torch's generator on the device in use."""
    import torch

    return torch.Generator(device=torch.get_default_device()).manual_seed(seed)


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
