"""Qwen 2 and 2.5: biases of queries, keys and values; a window only if `use_sliding_window`."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, limited_to_used_window, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with QKV biases."""
    mixer = attention(config, bias=True, output_bias=False)
    return [BlockSpec(pre_norms(config), (mixer,), mlp(config))] * config.num_layers


SPEC = Arch(
    "qwen2",
    _blocks,
    limited_to_used_window,
    gguf=GgufArchitecture("qwen2", aliases=("qwen2vl",)),
)
