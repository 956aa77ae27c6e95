"""ERNIE 4.5 (dense): Llama whose heads are stored as the pairs that are turned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.models.architecture import Arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"head_dim": 128, "rope_theta": 500000.0, **raw}


def _traits(raw: Mapping[str, Any]) -> Traits:
    bias = bool(raw.get("use_bias", False))
    return Traits(qkv_bias=bias, output_bias=bias, mlp_bias=bias, is_tied=True)


def _parts(config: ModelConfig, index: int) -> BlockParts:
    from dataclasses import replace

    from medusa_core.models.parts import shared_parts

    parts = shared_parts(config, index)
    assert parts.qkv is not None
    return replace(parts, qkv=parts.qkv.stored_interleaved)


SPEC = Arch(
    "ernie4_5",
    _traits,
    parts=_parts,
    as_usual=_as_usual,
    gguf=GgufArchitecture("ernie4_5", flags={"use_bias": "attn_q.bias"}),
)
