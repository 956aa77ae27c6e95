"""Writes GGUF files for llama.cpp to run, without a tokenizer: a target's weights, or random ones.

llama.cpp turns neighbouring numbers of a Llama's queries and keys, Hugging Face's layout halves:
their rows are reordered, as they are for us.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.rope import interleave_rows
from medusa_core.quant.block_sizes import BLOCK_SIZES

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


_ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}


def write_gguf(model_dir: Path, config: ModelConfig, to: Path) -> None:
    """Write a Llama model in float16.

    Args:
        model_dir: Folder of the checkpoint.
        config: Its sizes.
        to: The file to write.

    Raises:
        RequestError: It isn't a plain Llama, or the package gguf isn't installed.
    """
    if config.model_type != "llama":
        raise _unknown(config)
    writer = _open(config, to)
    for name, tensor in _tensors(Checkpoint.open_model(model_dir), config):
        # llama.cpp wants vectors in 32 bits.
        numbers = tensor.float() if tensor.dim() == 1 else tensor.half()
        writer.add_tensor(name, numbers.contiguous().numpy())
    _finish(writer)


def write_random_gguf(config: ModelConfig, of: str, to: Path) -> None:
    """Write a model of these sizes whose weights are noise.

    Args:
        config: Its sizes.
        of: The type of all matrices, a key of `BLOCK_SIZES`.
        to: The file to write.

    Raises:
        RequestError: llama.cpp has no such model here, or the package gguf isn't installed.
    """
    writer = _open(config, to)
    kind = _gguf().GGMLQuantizationType[of.upper()]
    traits, inner = config.traits, config.num_heads * config.head_dim
    hidden, kv = config.hidden_size, config.num_kv_heads * config.head_dim

    def vector(name: str, size: int, number: float = 1.0) -> None:
        writer.add_tensor(f"{name}.weight" if number else name, torch.full((size,), number).numpy())

    def matrix(name: str, rows: int, columns: int) -> None:
        stored = random_blocks(of, rows, columns)
        writer.add_tensor(f"{name}.weight", stored.numpy(), raw_dtype=kind)

    matrix("token_embd", config.vocab_size, hidden)
    vector("output_norm", hidden)
    if not config.tie_embeddings:
        matrix("output", config.vocab_size, hidden)
    for layer in range(config.num_layers):
        block = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            vector(f"{block}.{name}", hidden)
        for name, rows in (("q", inner), ("k", kv), ("v", kv)):
            matrix(f"{block}.attn_{name}", rows, hidden)
            if traits.qkv_bias:
                vector(f"{block}.attn_{name}.bias", rows, 0.0)
        if traits.qk_norm:
            for name in ("q", "k"):
                vector(f"{block}.attn_{name}_norm", config.head_dim)
        matrix(f"{block}.attn_output", hidden, inner)
        for name in ("gate", "up"):
            matrix(f"{block}.ffn_{name}", config.intermediate_size, hidden)
        matrix(f"{block}.ffn_down", hidden, config.intermediate_size)
    _finish(writer)


def random_blocks(of: str, rows: int, columns: int) -> Tensor:
    """Noise in blocks: random codes under scales of about 1/√columns.

    Returns:
        uint8 [rows, bytes of a row]

    Raises:
        RequestError: Such blocks aren't drawn here.
    """
    if of not in _SCALES:
        raise RequestError(
            f"No random weights are made of type {of}.", f"Choose one of {', '.join(_SCALES)}."
        )
    sizes = BLOCK_SIZES[of]
    generator = torch.Generator().manual_seed(rows)
    count = rows * columns // sizes.weights
    drawn = torch.randint(0, 256, (min(count, _DRAWN), sizes.nbytes), generator=generator)
    blocks = drawn.to(torch.uint8)
    scale = torch.tensor([_SPREAD[of] / columns**0.5]).half().view(torch.uint8)
    for at in _SCALES[of]:
        blocks[:, at : at + 2] = scale
    repeats = -(-count // len(blocks))
    return blocks.repeat(repeats, 1)[:count].view(rows, -1)


# Blocks that are drawn at most; larger matrices repeat them.
_DRAWN = 1 << 17
# Where a block's float16 scales lie, and what makes its numbers about as wide as one.
_SCALES = {"q4_0": (0,), "q8_0": (0,), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}
_SPREAD = {"q4_0": 0.2, "q8_0": 0.013, "q4_k": 0.005, "q5_k": 0.002, "q6_k": 0.0007}


def _gguf() -> Any:
    try:
        import gguf
    except ImportError as error:
        raise RequestError(
            "The package gguf isn't installed.", "pip install 'medusa-chat[peers]'"
        ) from error
    return gguf


def _unknown(config: ModelConfig) -> RequestError:
    return RequestError(
        f"Models of type {config.model_type} aren't written as GGUF.",
        "Leave out the peer llamacpp.",
    )


def _open(config: ModelConfig, to: Path) -> Any:
    """A writer that knows the sizes."""
    architecture = _ARCHITECTURES.get(config.model_type)
    if architecture is None or config.rope.kind != "default":
        raise _unknown(config)
    writer = _gguf().GGUFWriter(to, architecture)
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
    return writer


def _finish(writer: Any) -> None:
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
