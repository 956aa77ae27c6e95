"""Ministral 3: Mistral whose attention temperature depends on the position."""

from __future__ import annotations

from collections.abc import Mapping

from medusa_core.models.arch.mistral import mistral_blocks
from medusa_core.models.architecture import Arch, ArchConfig, ModelFields, positive
from medusa_core.models.blocks.compose import limited_to_window


def _model(config: ArchConfig) -> ModelFields:
    """Return Mistral's window and Llama 4's scale of the attention temperature."""
    rope = config.raw.get("rope_parameters") or config.raw.get("rope_scaling") or {}
    settings = rope if isinstance(rope, Mapping) else {}
    beta = positive(settings, "llama_4_scaling_beta", None)
    return {**limited_to_window(config), "llama_4_scaling_beta": beta or 0.0}


SPEC = Arch("ministral3", mistral_blocks, _model)
