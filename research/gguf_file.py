"""Write a reader folder as one GGUF file, for llama.cpp and what is built on it.

``python -m research.gguf_file OUT.gguf [FOLDER]``

The tokenizer (digits one by one, then GPT-2's byte-level regex) is llama.cpp's pre-tokenizer
``smollm``; control tokens keep their meaning, mask tokens stay one token each.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError, MissingExtraError, RagwitnessError
from ragwitness.models.reader.checkpoint import NetworkConfig, read_config, read_json, read_weights
from ragwitness.models.reader.model import PACKAGED_WEIGHTS

_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def tensor_names(layers: int) -> dict[str, str]:
    """Return the GGUF name of every tensor by its Hugging Face name."""
    names = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    for layer in range(layers):
        for ours, theirs in _LAYER_NAMES.items():
            names[f"model.layers.{layer}.{ours}.weight"] = f"blk.{layer}.{theirs}.weight"
    return names


def _write_shape(writer: Any, config: NetworkConfig) -> None:
    writer.add_context_length(config.positions)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.mlp_width)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.epsilon)
    writer.add_file_type(0)  # all float32


def _write_tokenizer(writer: Any, folder: Path, size: int) -> None:
    from gguf import TokenType

    described = read_json(folder / "tokenizer.json")
    tokens, kinds = [f"[UNUSED{index}]" for index in range(size)], [TokenType.UNUSED] * size
    for token, index in described["model"]["vocab"].items():
        tokens[index], kinds[index] = token, TokenType.NORMAL
    for entry in described["added_tokens"]:
        kind = TokenType.CONTROL if entry["special"] else TokenType.USER_DEFINED
        tokens[entry["id"]], kinds[entry["id"]] = entry["content"], kind
    merges = described["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])


def _write_chat(writer: Any, folder: Path) -> None:
    stated = read_json(folder / "generation_config.json")
    end = stated["eos_token_id"]
    writer.add_eos_token_id(end[0] if isinstance(end, list) else end)
    if stated.get("pad_token_id") is not None:
        writer.add_pad_token_id(stated["pad_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text(encoding="utf-8"))


def write_gguf(target: str | Path, folder: str | Path = PACKAGED_WEIGHTS) -> None:
    """Write ``folder`` (Qwen3 layout, byte-level BPE) as a float32 GGUF file ``target``.

    Raises:
        MissingExtraError: The package ``gguf`` is not installed.
        ModelError: The folder cannot be read.
    """
    try:
        from gguf import GGUFWriter
    except ImportError as error:
        raise MissingExtraError("Writing GGUF", "gguf") from error
    folder = Path(folder)
    config, weights = read_config(folder), read_weights(folder)
    writer = GGUFWriter(str(target), "qwen3")
    writer.add_name("ragwitness-reader")
    _write_shape(writer, config)
    _write_tokenizer(writer, folder, config.vocabulary)
    _write_chat(writer, folder)
    for ours, theirs in tensor_names(config.layers).items():
        if ours in weights:
            writer.add_tensor(theirs, weights[ours])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    try:
        if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
            usage = "Usage: python -m research.gguf_file OUT.gguf [FOLDER]"
            raise InputError("One output file is needed, and at most one model folder.", usage)
        write_gguf(*arguments)
    except RagwitnessError as error:
        print(error.message, error.hint, sep="\n", file=sys.stderr)
        return error.exit_code
    print(f"Wrote {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
