"""A small random Qwen3 folder with a small trained tokenizer; no torch, no network."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt
from ragwitness.models.reader.forward import BLOCK_TOKENS, KeyValues, Network

ROLES = ["<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
TEXT = (
    "The patient came back from Lisbon with a fever and a sore throat, and the doctor gave "
    "paracetamol 500 mg twice a day. Answer the question using the context. Émile naïve 日本語 "
)
TEMPLATE = (
    "{%- for message in messages -%}\n"
    "<|{{ message['role'] }}|>{{ message['content'] }}"
    "{%- if message['role'] == 'assistant' %}<|end|>{% endif -%}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt %}<|assistant|>{% endif -%}\n"
)
SHAPE = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 640,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": True,
    "eos_token_id": 4,
    "pad_token_id": 0,
    "dtype": "float32",
}


def make_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=ROLES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    masks = [AddedToken(f"[Mask_{i}]", lstrip=True, normalized=False) for i in range(1, 21)]
    tokenizer.add_tokens(masks)
    return tokenizer


def make_weights(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    width, inner, outer, mlp = 64, 64, 32, 96

    def matrix(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 1.5 / shape[-1] ** 0.5).astype(np.float32)

    def gain(size: int) -> np.ndarray:
        return random.uniform(0.5, 1.5, size).astype(np.float32)

    weights = {
        "model.embed_tokens.weight": matrix(640, width) * 2,
        "model.norm.weight": gain(width),
    }
    for layer in range(3):
        stem = f"model.layers.{layer}."
        weights |= {
            stem + "input_layernorm.weight": gain(width),
            stem + "post_attention_layernorm.weight": gain(width),
            stem + "self_attn.q_proj.weight": matrix(inner, width),
            stem + "self_attn.k_proj.weight": matrix(outer, width),
            stem + "self_attn.v_proj.weight": matrix(outer, width),
            stem + "self_attn.o_proj.weight": matrix(width, inner),
            stem + "self_attn.q_norm.weight": gain(16),
            stem + "self_attn.k_norm.weight": gain(16),
            stem + "mlp.gate_proj.weight": matrix(mlp, width),
            stem + "mlp.up_proj.weight": matrix(mlp, width),
            stem + "mlp.down_proj.weight": matrix(width, mlp),
        }
    return weights


def write_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(make_weights(), folder / "model.safetensors", metadata={"format": "pt"})
    make_tokenizer().save(str(folder / "tokenizer.json"))
    names = {"eos_token": "<|end|>", "pad_token": "<|pad|>"}
    settings = {
        "config.json": SHAPE,
        "generation_config.json": {"eos_token_id": 4, "pad_token_id": 0},
        "tokenizer_config.json": names | {"tokenizer_class": "PreTrainedTokenizerFast"},
    }
    for file, content in settings.items():
        (folder / file).write_text(json.dumps(content), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


def conversation(context: str, question: str, prefill: str = "") -> ChatPrompt:
    messages = (Message(Role.SYSTEM, f"Context: {context}"), Message(Role.USER, question))
    return ChatPrompt(messages, prefill)


def advance(network: Network, cache: KeyValues, ids: np.ndarray, keep: int) -> np.ndarray:
    """Append ``ids`` to one sequence, block by block; return the states of the last ``keep``."""
    kept, stop = [], 0
    while stop < len(ids):
        # Blocks end at multiples of their length, whatever the sequence holds already.
        start, room = stop, BLOCK_TOKENS - cache.length % BLOCK_TOKENS
        stop = min(start + room, len(ids))
        wanted = max(0, min(stop - (len(ids) - keep), stop - start))
        kept.append(network.run(cache, ids[start:stop], wanted))
    return np.concatenate(kept)
