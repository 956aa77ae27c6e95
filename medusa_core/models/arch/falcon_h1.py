"""Falcon-H1: in every layer attention and a Mamba-2 layer side by side, and many factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.llama import llama_traits
from medusa_core.models.architecture import Arch, positive, whole
from medusa_core.models.gguf_architecture import GgufArchitecture, mlp_tensors
from medusa_core.models.layer_shapes import HybridShape
from medusa_core.models.mamba import (
    MAMBA_FLAGS,
    MAMBA_KEYS,
    mamba_tensors,
    mamba_trait,
    row_shape,
    state_shape,
)
from medusa_core.models.traits import Factors, Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_MOST_LAYERS = 1 << 10


def _traits(raw: Mapping[str, Any]) -> Traits:
    count = whole(raw, "num_hidden_layers", _MOST_LAYERS, 32)
    has_norm = bool(raw.get("mamba_rms_norm", False))
    mamba = replace(
        mamba_trait(raw),
        has_out_bias=bool(raw.get("projectors_bias", False)),
        has_norm=has_norm,
        gates_first=not (has_norm and raw.get("mamba_norm_before_gate", True)),
    )
    rows = row_shape(raw)
    # Keys are multiplied before they are turned, which is the same as scaling scores.
    scale = _factor(raw, "key_multiplier") / rows.head_dim**0.5
    return replace(
        llama_traits(raw),
        mamba=mamba,
        layers=(HybridShape(rows, state_shape(raw)),) * count,
        factors=_factors(raw),
        embedding_scale=_factor(raw, "embedding_multiplier"),
        score_divisor=1 / _factor(raw, "lm_head_multiplier"),
        attention_scale=scale,
    )


def _factors(raw: Mapping[str, Any]) -> Factors:
    gate, down = _listed(raw, "mlp_multipliers", 2)
    g, x, b, c, step = _listed(raw, "ssm_multipliers", 5)
    return Factors(
        attention_in=_factor(raw, "attention_in_multiplier"),
        attention_out=_factor(raw, "attention_out_multiplier"),
        mamba_in=_factor(raw, "ssm_in_multiplier"),
        mamba_out=_factor(raw, "ssm_out_multiplier"),
        projected=(g, x, b, c, step),
        gate=gate,
        down=down,
    )


def _factor(raw: Mapping[str, Any], key: str) -> float:
    return positive(raw, key, 1.0) or 1.0


def _listed(raw: Mapping[str, Any], key: str, count: int) -> Sequence[float]:
    """So many positive numbers of a `config.json`; nothing means ones."""
    numbers = raw.get(key)
    numbers = [1.0] * count if numbers is None else numbers
    if not isinstance(numbers, list) or len(numbers) != count:
        raise ModelError(
            f"config.json: {key} aren't {count} numbers.", "Download config.json again."
        )
    return [positive({key: number}, key, 1.0) or 1.0 for number in numbers]


def _parts(config: ModelConfig, index: int) -> BlockParts:
    from medusa_core.models.mamba import with_mamba
    from medusa_core.models.parts import mlp_parts, shared_parts

    parts = shared_parts(config, index)
    norms = (f"{parts.prefix}.input_layernorm", f"{parts.prefix}.pre_ff_layernorm")
    name, prefix = f"layers.{index}", f"{parts.prefix}.feed_forward"
    mlp = mlp_parts(config, name, prefix, config.intermediate_size)
    own = replace(parts, vectors=dict.fromkeys(norms, config.hidden_size), mlp=mlp)
    return with_mamba(own, config, index)


SPEC = Arch(
    "falcon_h1",
    _traits,
    parts=_parts,
    gguf=GgufArchitecture(
        "falcon-h1",
        tensors={
            **mamba_tensors("mamba"),
            **mlp_tensors("feed_forward"),
            "ffn_norm": "pre_ff_layernorm.weight",  # a whole name: files give it no ending
        },
        keys=MAMBA_KEYS,
        defaults={"mamba_norm_before_gate": False},
        flags={
            **MAMBA_FLAGS,
            "projectors_bias": "ssm_out.bias",
            "mamba_rms_norm": "ssm_norm.weight",
        },
    ),
)
