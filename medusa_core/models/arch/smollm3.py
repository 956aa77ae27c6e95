"""SmolLM3: Llama without RoPE in every fourth layer."""

from __future__ import annotations

from dataclasses import replace

from medusa_core.errors import ModelError
from medusa_core.models.architecture import AGAIN, Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, limited_to_used_window, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture

_PERIOD = 4  # of layers without RoPE


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks; layers that `no_rope_layers` marks have no RoPE."""
    mixer = attention(config, bias=config.flag("attention_bias"))
    dense = mlp(config, bias=config.flag("mlp_bias"))
    return [
        BlockSpec(pre_norms(config), (replace(mixer, rope=0 if has_rope else None),), dense)
        for has_rope in _rope_layers(config)
    ]


def _rope_layers(config: ArchConfig) -> list[int]:
    """Read `no_rope_layers`, which marks layers without RoPE with 0."""
    flags = config.raw.get("no_rope_layers")
    if flags is None:
        return [(index + 1) % _PERIOD for index in range(config.num_layers)]
    if isinstance(flags, list) and len(flags) == config.num_layers:
        marks = [mark for mark in flags if mark in (0, 1)]
        if len(marks) == len(flags):
            return marks
    raise ModelError("config.json: no_rope_layers is no list of 0 and 1.", AGAIN)


SPEC = Arch(
    "smollm3",
    _blocks,
    limited_to_used_window,
    defaults={"tie_word_embeddings": True},
    gguf=GgufArchitecture("smollm3", interleaved_rope=True),
)
