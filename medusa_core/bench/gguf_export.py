"""Writes a target's weights as GGUF, for llama.cpp to run: float16, without a tokenizer.

llama.cpp turns neighbouring numbers of queries and keys, Hugging Face's layout halves: their rows
are reordered, as they are for us.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.rope import interleave_rows

_NAMES = {
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
_TURNED = ("attn_q", "attn_k")


def write_gguf(model_dir: Path, config: ModelConfig, to: Path) -> None:
    """Write a Llama model.

    Args:
        model_dir: Folder of the checkpoint.
        config: Its sizes.
        to: The file to write.

    Raises:
        RequestError: It isn't a plain Llama, or the package gguf isn't installed.
    """
    try:
        import gguf
    except ImportError as error:
        raise RequestError(
            "The package gguf isn't installed.", "pip install 'medusa-chat[peers]'"
        ) from error
    if config.model_type != "llama" or config.rope.kind != "default":
        raise RequestError(
            f"Only plain Llama models are written as GGUF, not {config.model_type}.",
            "Leave out the peer llamacpp.",
        )
    writer = gguf.GGUFWriter(to, "llama")
    writer.add_context_length(config.context_tokens)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(config.num_kv_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope.theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("none")
    for name, tensor in _tensors(Checkpoint.open_model(model_dir), config):
        # llama.cpp wants vectors in 32 bits.
        numbers = tensor.float() if tensor.dim() == 1 else tensor.half()
        writer.add_tensor(name, numbers.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(checkpoint: Checkpoint, config: ModelConfig) -> list[tuple[str, Tensor]]:
    def read(name: str) -> Tensor:
        return checkpoint.tensor(name, checkpoint.shape(name), torch.float32)

    found = [
        ("token_embd.weight", read("model.embed_tokens.weight")),
        ("output_norm.weight", read("model.norm.weight")),
    ]
    if not config.tie_embeddings:
        found.append(("output.weight", read("lm_head.weight")))
    for layer in range(config.num_layers):
        for ours, theirs in _NAMES.items():
            tensor = read(f"model.layers.{layer}.{ours}.weight")
            if theirs in _TURNED:
                tensor = interleave_rows(tensor, config.head_dim)
            found.append((f"blk.{layer}.{theirs}.weight", tensor))
    return found
