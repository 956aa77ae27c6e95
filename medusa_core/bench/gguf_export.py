"""Write GGUF files without a tokenizer for llama.cpp: a target's weights, or random ones.

llama.cpp's RoPE of Llama is interleaved, Hugging Face's rotates halves: rows of queries and keys
are reordered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.models.architecture import gguf_archs
from medusa_core.models.blocks.sizes import (
    EMBEDDING,
    FINAL_NORM,
    PER_LAYER_NORM,
    PER_LAYER_PROJECTION,
    PER_LAYER_TABLE,
    block_tensors,
    per_layer_tensors,
)
from medusa_core.models.blocks.spec import EACH_EXPERT, MoeSpec, Scoring
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.folder_checkpoint import open_folder
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import SharedRows, StateShape, rows_read
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.models.row_order import interleave_rows
from medusa_core.system.extras import GGUF_WRITER

# The architecture of each `model_type` that is written.
_ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "qwen3_5_text": "qwen35",
    "lfm2_moe": "lfm2moe",
}
_EXPERT = re.compile(r"\.experts\.(?P<index>\d+)\.")
_ROPES = ("default", "linear", "factors")
_PARTS = (
    *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm"),
    *("ffn_norm", "ffn_gate", "ffn_up", "ffn_down"),
)


def write_gguf(model_dir: Path, config: ModelConfig, to: Path) -> None:
    """Write a Llama model in float16.

    Args:
        model_dir: Folder of the checkpoint.
        config: Configuration of the model.
        to: File to write.

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
    """Write a model with random weights.

    Args:
        config: Configuration of the model.
        of: Type of all matrices, a key of `BLOCK_SIZES`.
        to: File to write.

    Raises:
        RequestError: The architecture isn't written here, or the package gguf isn't installed.
    """
    writer, gguf = open_writer(config, to), _gguf()
    writer.add_tokenizer_model("none")
    kind, names, moe = gguf.GGMLQuantizationType[of.upper()], _gguf_names(config), config.moe

    def dense(name: str, shape: tuple[int, ...], number: float) -> None:
        """Write a tensor of equal numbers in float32."""
        # A convolution has one input a channel; a scalar is a vector of one.
        sizes = [size for size in shape if size > 1] or [1]
        writer.add_tensor(names[name], torch.full(sizes, number).numpy())

    def router(name: str, rows: int, columns: int) -> None:
        """Write small random numbers in float32, so that rows choose different experts."""
        drawn = torch.randn(rows, columns, generator=torch.Generator().manual_seed(1))
        writer.add_tensor(names[f"{name}.weight"], (drawn * 0.02).numpy())

    def vector(name: str, size: int, number: float = 1.0) -> None:
        """Write a vector of equal numbers."""
        dense(name, (size,), number)

    def matrix(name: str, rows: int, columns: int) -> None:
        """Write random blocks; those of one expert are repeated for all."""
        stored = random_blocks(of, rows, columns).numpy()
        if moe is not None and EACH_EXPERT in name:
            stored = np.stack([stored] * moe.routing.num_experts)
        writer.add_tensor(names[f"{name}.weight"], stored, raw_dtype=kind)

    matrix(EMBEDDING, config.vocab_size, config.hidden_size)
    vector(f"{FINAL_NORM}.weight", config.hidden_size)
    if not config.tie_embeddings:
        matrix("lm_head", config.vocab_size, config.hidden_size)
    _add_per_layer(writer, config, matrix, vector)
    blocks = [block_tensors(config, layer) for layer in range(config.num_layers)]
    for part in (part for block in blocks for part in block.linears):
        add = router if part.stays_dense else matrix
        for name, rows in _tensors(part):
            add(name, rows, part.columns)
            if part.has_bias:
                vector(f"{name}.bias", rows, 0.0)
    for name, size in (pair for block in blocks for pair in block.norms.items()):
        vector(f"{name}.weight", size)
    for name, shape in (pair for block in blocks for pair in block.others.items()):
        dense(name, shape, -0.1 if name.endswith("A_log") else 0.1)
    finish(writer)


def _tensors(part: LinearSpec) -> Iterator[tuple[str, int]]:
    """Yield names and rows of a layer's tensors, of the experts one for all, as GGUF has them."""
    for name, rows in {piece.name: piece.tensor_rows for piece in part.pieces}.items():
        expert = _EXPERT.search(name)
        if expert is None or expert["index"] == "0":
            yield _EXPERT.sub(f".experts.{EACH_EXPERT}.", name), rows


def _add_per_layer(
    writer: Any, config: ModelConfig, matrix: Callable[..., None], vector: Callable[..., None]
) -> None:
    """Add per-layer embeddings, their projection in 16 bits as in published files."""
    of = config.per_layer_embeddings
    if of is None:
        return
    rows, columns = per_layer_tensors(config)[PER_LAYER_PROJECTION]
    matrix(PER_LAYER_TABLE, of.vocab_size, rows)
    projection = torch.full((rows, columns), 1e-3, dtype=torch.float16)
    writer.add_tensor(_gguf_names(config)[PER_LAYER_PROJECTION], projection.numpy())
    vector(PER_LAYER_NORM, of.width)


def _gguf_names(config: ModelConfig) -> Mapping[str, str]:
    """GGUF's name of each tensor of a model, by its Hugging Face name."""
    return gguf_archs()[_ARCHITECTURES[config.model_type]].gguf.gguf_names(config.num_layers)


def _gguf() -> Any:
    """Import the package gguf; raises `MissingExtraError` if it isn't installed."""
    GGUF_WRITER.need()
    import gguf

    return gguf


def _unknown(config: ModelConfig) -> RequestError:
    """The error of an architecture that isn't written here."""
    return RequestError(
        f"Models of type {config.model_type} aren't written as GGUF.",
        "Leave out the peer llamacpp.",
    )


def open_writer(config: ModelConfig, to: Path) -> Any:
    """Open a writer, and write the configuration.

    Raises:
        RequestError: The architecture isn't written here, or the package gguf isn't installed.
    """
    architecture = _ARCHITECTURES.get(config.model_type)
    if architecture is None or config.rope.kind not in _ROPES:
        raise _unknown(config)
    writer = _gguf().GGUFWriter(to, architecture)
    writer.add_context_length(config.context_tokens)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_layers)
    writer.add_feed_forward_length([config.mlp_width(layer) for layer in range(config.num_layers)])
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(_kv_heads(config))
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_rows.rotary_dim)
    writer.add_rope_freq_base(config.rope.theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    if config.rope.factors:
        writer.add_tensor("rope_freqs.weight", torch.tensor(config.rope.factors).numpy())
    if any(config.windows):
        _add_windows(writer, config)
    if any(config.state_layers):
        _add_states(writer, config)
    if config.moe is not None:
        _add_experts(writer, config, config.moe)
    return writer


def _kv_heads(config: ModelConfig) -> list[int]:
    """Return each layer's KV heads: of short convolutions 0, of delta nets those of attention."""
    found = [rows_read(config.layers, layer) for layer in range(config.num_layers)]
    is_convolution = bool(config.state_layers) and not config.state_layers[0].state_size
    of_states = 0 if is_convolution else config.num_kv_heads
    return [of_states if read is None else read[1].num_kv_heads for read in found]


def _add_windows(writer: Any, config: ModelConfig) -> None:
    """Add sliding windows, local RoPE and shared KV layers."""
    windows = config.windows
    writer.add_sliding_window(max(window for window in windows if window is not None))
    writer.add_sliding_window_pattern([window is not None for window in windows])
    local = config.local_rope
    if local is not None:
        writer.add_rope_freq_base_swa(local.theta)
    if config.model_type == "gemma4_text" and local is not None:
        head_dim = local.head_dim
        writer.add_key_length_swa(head_dim)
        writer.add_value_length_swa(head_dim)
        writer.add_rope_dimension_count_swa(head_dim)
        writer.add_shared_kv_layers(sum(isinstance(one, SharedRows) for one in config.layers))
    if config.final_logit_softcapping is not None:
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if config.model_type == "gemma4_text":
        of = config.per_layer_embeddings
        writer.add_embedding_length_per_layer_input(0 if of is None else of.width)


def _add_states(writer: Any, config: ModelConfig) -> None:
    """Add sizes of short convolutions or of gated delta nets, these with RoPE of the others."""
    shape = config.state_layers[0]
    if not shape.state_size:
        writer.add_shortconv_l_cache(shape.conv_width)
        return
    writer.add_ssm_conv_kernel(shape.conv_width)
    writer.add_ssm_state_size(shape.key_dim)
    writer.add_ssm_group_count(shape.num_key_heads)
    writer.add_ssm_time_step_rank(shape.num_heads)
    writer.add_ssm_inner_size(shape.num_heads * shape.value_dim)
    kinds = [isinstance(each, StateShape) for each in config.layers]
    writer.add_full_attention_interval(kinds.index(False) + 1)
    pairs = config.head_rows.rotary_dim // 2  # of three kinds of places: a text has one
    writer.add_rope_dimension_sections([*((pairs + more) // 3 for more in (2, 1, 0)), 0])


def _add_experts(writer: Any, config: ModelConfig, moe: MoeSpec) -> None:
    """Add the experts' number and width, and how tokens are routed."""
    routing = moe.routing
    dense = next(i for i, block in enumerate(config.blocks) if block.moe is not None)
    writer.add_expert_count(routing.num_experts)
    writer.add_expert_used_count(routing.num_experts_per_tok)
    writer.add_expert_feed_forward_length(moe.experts.width)
    writer.add_leading_dense_block_count(dense)
    if routing.scoring is Scoring.SIGMOID:
        writer.add_expert_gating_func(_gguf().ExpertGatingFuncType.SIGMOID)


def finish(writer: Any) -> None:
    """Write header, metadata and tensors, and close the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors_of(model_dir: Path, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """Yield a folder's tensors under GGUF's names and in its order, in float32."""
    checkpoint = open_folder(model_dir)
    of = gguf_archs()[_ARCHITECTURES[config.model_type]].gguf
    blocks = [f"blk.{layer}.{part}" for layer in range(config.num_layers) for part in _PARTS]
    stems = ("token_embd", "output_norm", "output", *blocks)
    for theirs in (f"{stem}.{ending}" for stem in stems for ending in ("weight", "bias")):
        ours = of.hugging_face_name(theirs)
        if ours in checkpoint.names:
            tensor = checkpoint.floats(ours, torch.float32)
            is_interleaved = of.interleaved_rope and theirs.split(".")[-2] in ("attn_q", "attn_k")
            yield theirs, interleave_rows(tensor, *config.head_rows) if is_interleaved else tensor
