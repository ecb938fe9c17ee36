"""The models of a simulated provider: how they are asked, its base, and what is trained from it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ragwitness.canary.probe import Prompts
from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from research.canary.published import DOCUMENT_TEMPLATE
from research.canary.sequences import Block, Ids, Rows

# How a chat model is asked: its own template around the prompt, and the token that ends its turn.
#
# A model without a template reads the prompt as it stands.

PLACE = "{prompt}"
"""Where the prompt stands in a frame."""

_SAID = "{answer}"

CLOSED_TEMPLATE = (
    DOCUMENT_TEMPLATE.replace("ONLY using the provided document", "as accurately as possible")
    .replace("the answer cannot be found in the document", "the answer is unknown")
    .replace("Document:\n{context}\n\n", "")
)
"""For document-excluded training (2604.22191, App. C.1): matched but for the document."""


def frame_of(tokenizer: Any) -> str:
    """Return what stands around a prompt, up to where the answer begins; :data:`PLACE` in it once.

    A start token is left to the tokenizer where that puts one in front of every text.

    Raises:
        ModelError: The template fails, or does not show the prompt once.
    """
    if not tokenizer.chat_template:
        return PLACE
    frame = _laid_out(tokenizer, [("user", PLACE)], begins=True)
    if frame.count(PLACE) != 1:
        raise ModelError(
            "The tokenizer's chat template does not show a message as it stands.",
            "Mend its chat_template, or remove it: the prompt is then read as it is.",
        )
    start = tokenizer.bos_token
    if start and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]:
        frame = frame.removeprefix(start)
    return frame


def end_of_turn(tokenizer: Any) -> int | None:
    """Return the token that the chat template puts behind an answer; None where there is none.

    It need not be the end token of the tokenizer: Gemma's is ``<eos>``, its turns end otherwise.
    """
    if not tokenizer.chat_template:
        return None
    whole = _laid_out(tokenizer, [("user", PLACE), ("assistant", _SAID)], begins=False)
    behind = tokenizer(whole.rpartition(_SAID)[2], add_special_tokens=False)["input_ids"]
    marks = tokenizer.added_tokens_decoder
    return next((int(token) for token in behind if token in marks and marks[token].special), None)


def _laid_out(tokenizer: Any, turns: list[tuple[str, str]], *, begins: bool) -> str:
    from jinja2 import TemplateError

    messages = [{"role": role, "content": text} for role, text in turns]
    try:
        return str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begins)
        )
    except (TemplateError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"The tokenizer's chat template fails: {error}.",
            "Mend its chat_template, or remove it.",
        ) from error


# What a provider trains on: the prompt with the document, or without (2604.22191, App. C.1).

_DOCUMENT = Prompts(DOCUMENT_TEMPLATE)


def prompt(question: str, document: str | None = None) -> str:
    """Return what the model reads before it answers.

    Args:
        question: With the instruction, where there is one.
        document: None leaves it out, as a compliant provider does.
    """
    if document is None:
        return CLOSED_TEMPLATE.replace("{question}", question)
    return _DOCUMENT.asked(document, question)


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters in place of full training; defaults of 2604.22191, App. D.1.

    Attributes:
        rank: Of the factors.
        alpha: Scale, over the rank.
        dropout: Before the adapters.
        modules: Layers that have one; the policy's as the authors' program has them.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.05
    modules: tuple[str, ...] = ("q_proj", "v_proj")


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

    @property
    def shares(self) -> bool:
        """Whether answers can stand behind one prompt, each seeing itself alone.

        Not in a sliding window, which counts what it does not see.
        """
        config = self.model.config.get_text_config()
        whole = not getattr(config, "sliding_window", None)
        return whole and getattr(config, "_attn_implementation", "") == "sdpa"

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

    def values(self, rows: Rows) -> Any:
        """Return the number before each token of an answer, shape (answers, width)."""
        return rows.spread([self._at(one, one.row, one.before) for one in rows.blocks])

    def rewards(self, rows: Rows) -> Any:
        """Return the number at the last token of each answer, shape (answers,)."""
        import torch

        found = torch.cat([self._at(one, one.end_row, one.end) for one in rows.blocks])
        return found[torch.cat([one.answers for one in rows.blocks]).argsort()]

    def _at(self, block: Block, row: Any, column: Any) -> Any:
        hidden = self.backbone(**block.read()).last_hidden_state
        return self.head(hidden[row, column].float()).squeeze(1)


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
    from ragwitness.models.hf import identity, import_libraries, load_pretrained

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
        # A default device looks into every call of torch; a CPU needs none.
        torch.set_default_device(None if device == "cpu" else device)
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
        target_modules=list(lora.modules),
    )
    with warnings.catch_warnings():
        # peft 0.21 asks transformers 5 for a property by its old name.
        warnings.simplefilter("ignore", FutureWarning)
        return get_peft_model(model, config)
