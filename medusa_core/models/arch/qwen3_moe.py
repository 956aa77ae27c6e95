"""Qwen 3 with experts: Qwen 3 whose rows pass through a few of many MLPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.qwen3 import qwen3_traits
from medusa_core.models.architecture import Arch, whole
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Experts, Traits

_MOST = 1 << 12


def _traits(raw: Mapping[str, Any]) -> Traits:
    count = whole(raw, "num_experts", _MOST, whole(raw, "num_local_experts", _MOST, 128))
    chosen = whole(raw, "num_experts_per_tok", _MOST, 8)
    experts = Experts(
        count,
        chosen,
        whole(raw, "moe_intermediate_size", 1 << 20, 768),
        bool(raw.get("norm_topk_prob", False)),
        _plain_layers(raw),
    )
    return replace(qwen3_traits(raw), experts=experts)


def _plain_layers(raw: Mapping[str, Any]) -> frozenset[int]:
    """Layers without experts: those that are listed, and between every `decoder_sparse_step`-th."""
    step, count = whole(raw, "decoder_sparse_step", 1 << 10, 1), raw.get("num_hidden_layers")
    listed = raw.get("mlp_only_layers") or []
    if not isinstance(listed, list) or not all(isinstance(index, int) for index in listed):
        raise ModelError(
            "config.json: mlp_only_layers is no list of layers.", "Download config.json again."
        )
    layers = range(count) if isinstance(count, int) and 0 < count < 1 << 10 else ()
    return frozenset(index for index in layers if (index + 1) % step or index in listed)


SPEC = Arch(
    "qwen3_moe",
    _traits,
    gguf=GgufArchitecture("qwen3moe", defaults={"norm_topk_prob": True}, has_experts=True),
)
