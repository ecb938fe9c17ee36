"""A policy of the toy world as a GGUF file, so that llama.cpp can serve it.

Its texts are split into known phrases in one way alone, so llama.cpp's unigram model, which takes
the fewest, splits them alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gguf import GGUFWriter, TokenType
from safetensors.numpy import load_file

_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OUTER = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def write_policy_gguf(folder: Path, target: Path) -> None:
    """Write a folder of a small Llama as float32."""
    config = json.loads((folder / "config.json").read_text())
    writer = GGUFWriter(str(target), "llama")
    heads = config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(0)
    _write_tokenizer(writer, folder, config)
    for name, array in load_file(folder / "model.safetensors").items():
        writer.add_tensor(_name(name), _turned(name, array, heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_tokenizer(writer: Any, folder: Path, config: dict[str, Any]) -> None:
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    special = {config["pad_token_id"], config["eos_token_id"], vocabulary["<unk>"]}
    writer.add_tokenizer_model("t5")
    writer.add_token_list([piece.replace(" ", "\u2581") for piece in pieces])
    writer.add_token_scores([-1.0] * len(pieces))  # fewest pieces win
    kinds = [TokenType.CONTROL if n in special else TokenType.NORMAL for n in range(len(pieces))]
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_unk_token_id(vocabulary["<unk>"])
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_remove_extra_whitespaces(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def _name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in _OUTER:
        return f"{_OUTER[stem]}.weight"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{_LAYER[rest]}.weight"


def _turned(name: str, array: Any, heads: int) -> Any:
    """llama.cpp turns neighbouring dimensions of queries and keys, transformers far ones."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return array
    rows, width = array.shape
    halves = array.reshape(heads, 2, rows // heads // 2, width)
    return halves.swapaxes(1, 2).reshape(rows, width).copy()
