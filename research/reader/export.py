"""Write the reader as a Hugging Face folder (``Qwen3ForCausalLM``, float16 safetensors)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from research.reader.config import ModelConfig
from research.reader.corpus import ROLES, Vocabulary
from research.reader.network import Reader

# <|system|> always opens a prompt, empty or not: resting attention heads look at it. No space is
# put in except one before an assistant's text, so that answers begin as words in a text do.
CHAT_TEMPLATE = (
    "{%- if messages[0]['role'] != 'system' -%}{{ '<|system|>' }}{%- endif -%}"
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'system' -%}{{ '<|system|>' + message['content'] }}"
    "{%- elif message['role'] == 'user' -%}{{ '<|user|>' + message['content'] }}"
    "{%- elif message['role'] == 'assistant' -%}{{ '<|assistant|> ' + message['content'] + "
    "'<|end|>' }}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)

_LAYER_NAMES = {
    "query.weight": "self_attn.q_proj.weight",
    "key.weight": "self_attn.k_proj.weight",
    "value.weight": "self_attn.v_proj.weight",
    "output.weight": "self_attn.o_proj.weight",
    "query_norm.weight": "self_attn.q_norm.weight",
    "key_norm.weight": "self_attn.k_norm.weight",
    "attention_norm.weight": "input_layernorm.weight",
    "mlp_norm.weight": "post_attention_layernorm.weight",
    "gate.weight": "mlp.gate_proj.weight",
    "up.weight": "mlp.up_proj.weight",
    "down.weight": "mlp.down_proj.weight",
}


def hugging_face_name(layer: int, name: str) -> str:
    """The name in the file of parameter ``name`` of layer ``layer``."""
    return f"model.layers.{layer}.{_LAYER_NAMES[name]}"


def named_weights(reader: Reader, dtype: torch.dtype = torch.float16) -> dict[str, Tensor]:
    """Weights under their Hugging Face names (tied embeddings stored once)."""
    weights = {
        "model.embed_tokens.weight": reader.embedding.weight,
        "model.norm.weight": reader.norm.weight,
    }
    for name, parameter in reader.named_parameters():
        if name.startswith("blocks."):
            _, layer, rest = name.split(".", 2)
            weights[hugging_face_name(int(layer), rest)] = parameter
    return {name: weight.detach().to("cpu", dtype).contiguous() for name, weight in weights.items()}


def _config(model: ModelConfig, vocabulary: int) -> dict[str, object]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": ROLES.index("<|end|>"),
        "pad_token_id": ROLES.index("<|pad|>"),
        "head_dim": model.head_dim,
        "hidden_act": "silu",
        "hidden_size": model.width,
        "initializer_range": 0.02,
        "intermediate_size": model.mlp_width,
        "max_position_embeddings": model.positions,
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.layers,
        "num_key_value_heads": model.heads,
        "rms_norm_eps": model.norm_epsilon,
        "rope_theta": model.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": model.rope_theta},
        "layer_types": ["full_attention"] * model.layers,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": vocabulary,
    }


def _tokenizer_config(positions: int) -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<|pad|>",
        "eos_token": "<|end|>",
        "additional_special_tokens": ["<|system|>", "<|user|>", "<|assistant|>"],
        "model_max_length": positions,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def export(reader: Reader, vocabulary: Vocabulary, out: Path) -> None:
    """Write all files to a folder beside ``out``, then move them over one by one.

    Each move is atomic, so a program that reads ``out`` meanwhile finds whole files only.
    """
    partial = out.with_name(out.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    roles = {"pad_token": "<|pad|>", "eos_token": "<|end|>"}
    end, pad = ROLES.index("<|end|>"), ROLES.index("<|pad|>")
    documents = {
        "config.json": _config(reader.config, vocabulary.size),
        "generation_config.json": {"do_sample": False, "eos_token_id": end, "pad_token_id": pad},
        "tokenizer_config.json": _tokenizer_config(reader.config.positions),
        "special_tokens_map.json": roles,
    }
    for name, content in documents.items():
        (partial / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    (partial / "chat_template.jinja").write_text(CHAT_TEMPLATE, "utf-8")
    vocabulary.tokenizer.save(str(partial / "tokenizer.json"))
    save_file(named_weights(reader), partial / "model.safetensors", metadata={"format": "pt"})
    for path in sorted(partial.iterdir()):
        path.chmod(0o644)
        path.replace(out / path.name)
    partial.rmdir()
