"""Seed-OSS: Llama with biases on queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    return Traits(
        qkv_bias=bool(raw.get("attention_bias", True)),
        output_bias=bool(raw.get("attention_out_bias", False)),
        mlp_bias=bool(raw.get("mlp_bias", False)),
    )


SPEC = Arch(
    "seed_oss",
    _traits,
    gguf=GgufArchitecture("seed_oss", flags={"attention_out_bias": "attn_output.bias"}),
)
