"""Gemma 1 and CodeGemma: Gemma 2 with norms before attention and MLP alone, and no windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.gemma2 import GEMMA_DEFAULTS, gemma_attention, gemma_model
from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import mlp, pre_norms
from medusa_core.models.blocks.spec import Activation, BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name the activation, which the first files call gelu."""
    named = raw.get("hidden_activation") or raw.get("hidden_act") or "gelu"
    return {**raw, "hidden_activation": Activation.GELU_TANH.value if named == "gelu" else named}


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with norms before attention and MLP that store w − 1."""
    mixer = replace(gemma_attention(config), sliding_window=None)
    return [BlockSpec(pre_norms(config, offset=1.0), (mixer,), mlp(config))] * config.num_layers


SPEC = Arch(
    "gemma",
    _blocks,
    gemma_model,
    defaults=GEMMA_DEFAULTS,
    normalize=_normalize,
    gguf=GgufArchitecture("gemma", norm_offset=1.0),
)
