"""Writes GGUF files for llama.cpp to run, without a tokenizer: a target's weights, or random ones.

llama.cpp turns neighbouring numbers of a Llama's queries and keys, Hugging Face's layout halves:
their rows are reordered, as they are for us.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.models.checkpoints.folder_checkpoint import open_folder
from medusa_core.models.checkpoints.gguf_names import (
    ARCHITECTURES,
    hugging_face_name,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.models.rope import interleave_rows

# The architecture of each `model_type` that is written.
_ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
_PARTS = (
    *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm"),
    *("ffn_norm", "ffn_gate", "ffn_up", "ffn_down"),
)


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
    writer = open_writer(config, to)
    writer.add_tokenizer_model("none")
    for name, tensor in tensors_of(model_dir, config):
        # llama.cpp wants vectors in 32 bits.
        numbers = tensor.float() if tensor.dim() == 1 else tensor.half()
        writer.add_tensor(name, numbers.contiguous().numpy())
    finish(writer)


def write_random_gguf(config: ModelConfig, of: str, to: Path) -> None:
    """Write a model of these sizes whose weights are noise.

    Args:
        config: Its sizes.
        of: The type of all matrices, a key of `BLOCK_SIZES`.
        to: The file to write.

    Raises:
        RequestError: llama.cpp has no such model here, or the package gguf isn't installed.
    """
    writer = open_writer(config, to)
    writer.add_tokenizer_model("none")
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
    finish(writer)


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


def open_writer(config: ModelConfig, to: Path) -> Any:
    """A writer that knows the sizes.

    Raises:
        RequestError: Such models aren't written, or the package gguf isn't installed.
    """
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
    return writer


def finish(writer: Any) -> None:
    """Write everything."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors_of(model_dir: Path, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """A folder's tensors under GGUF's names and in its order, float32."""
    checkpoint, of = open_folder(model_dir), ARCHITECTURES[_ARCHITECTURES[config.model_type]]
    blocks = [f"blk.{layer}.{part}" for layer in range(config.num_layers) for part in _PARTS]
    stems = ("token_embd", "output_norm", "output", *blocks)
    for theirs in (f"{stem}.{ending}" for stem in stems for ending in ("weight", "bias")):
        ours = hugging_face_name(theirs, of)
        if ours in checkpoint.names:
            tensor = checkpoint.floats(ours, torch.float32)
            is_turned = of.turns_pairs and theirs.split(".")[-2] in ("attn_q", "attn_k")
            yield theirs, interleave_rows(tensor, *config.head_rows) if is_turned else tensor
