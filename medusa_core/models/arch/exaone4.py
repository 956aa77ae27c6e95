"""EXAONE 4: OLMo 2's norms, norms of heads; beside layers with windows, full ones have no RoPE."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import PER_HEAD, attention, mlp, post_norms, windowed_blocks
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture

_PERIOD = 4  # of layers with full attention


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with norms after each sublayer and RoPE only in sliding-window layers."""
    mixer = attention(config, qk_norm=PER_HEAD)
    ropes = (0 if config.sliding_window is None else None, 0)
    return windowed_blocks(config, _PERIOD, post_norms(config), mixer, mlp(config), ropes)


SPEC = Arch("exaone4", _blocks, gguf=GgufArchitecture("exaone4", full_attention_every=_PERIOD))
