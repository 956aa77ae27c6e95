"""Mistral: Llama with a window on the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, sliding_window
from medusa_core.models.gguf_architecture import GgufArchitecture, round_float32
from medusa_core.models.traits import Traits
from medusa_core.system.files.gguf import Gguf


def _traits(raw: Mapping[str, Any]) -> Traits:
    return Traits(window=sliding_window(raw))


def _gguf_config(gguf: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Files whose attention temperature grows are Ministral 3; others are Mistral Small."""
    beta, scaling = gguf.of_model("attention.temperature_scale"), known.get("rope_scaling")
    if not isinstance(beta, int | float) or not isinstance(scaling, dict):
        return {}
    more = {"mscale": 1.0, "llama_4_scaling_beta": round_float32(beta)}
    log_mul = gguf.of_model("rope.scaling.yarn_log_multiplier")
    if isinstance(log_mul, int | float):
        more["mscale_all_dim"] = round_float32(log_mul)
    return {"model_type": "ministral3", "rope_scaling": scaling | more}


SPEC = Arch(
    "mistral",
    _traits,
    gguf=GgufArchitecture(
        "mistral3",
        config=_gguf_config,
        reads=frozenset({"attention.temperature_scale"}),
        interleaved_rope=True,
    ),
)
