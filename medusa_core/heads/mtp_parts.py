"""Which tensor of a checkpoint is which part of its layer for multi-token prediction.

MiMo publishes `model.mtp_layers.{n}.…` among the target's tensors; vLLM puts `mtp_block.` before
the names of the block and counts the layers on from the target's. Of several layers the first is
used, and used again for every further token, as vLLM and SGLang do.

Source: XiaomiMiMo/MiMo, its `modeling_mimo.py`; vLLM, `mimo_mtp.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from medusa_core.errors import HeadsError, ModelError
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.system.files.safetensors_header import TensorShapes

PREFIX = "model.mtp_layers."
# How other programs name what they have quantized; a target runs without such layers.
_PACKED = (".qweight", ".weight_packed", ".weight.absmax")
_NAME = re.compile(r"model\.mtp_layers\.(\d{1,4})\.(?:mtp_block\.)?(.+)")
_PARTS = {
    "token_layernorm.weight": "vector_norm",
    "hidden_layernorm.weight": "state_norm",
    "input_proj.weight": "fc",
    "input_layernorm.weight": "input_norm",
    "self_attn.q_proj.weight": "q",
    "self_attn.k_proj.weight": "k",
    "self_attn.v_proj.weight": "v",
    "self_attn.o_proj.weight": "o",
    "self_attn.q_proj.bias": "q_bias",
    "self_attn.k_proj.bias": "k_bias",
    "self_attn.v_proj.bias": "v_bias",
    "post_attention_layernorm.weight": "mlp_norm",
    "mlp.gate_proj.weight": "gate",
    "mlp.up_proj.weight": "up",
    "mlp.down_proj.weight": "down",
    "final_layernorm.weight": "last_norm",
}
_AGAIN = "Download the model again."


@dataclass(frozen=True, slots=True)
class MtpParts:
    """What the layer is made of.

    Attributes:
        names: Of each part the tensor's name.
        layer: Sizes of its block, as of a target with one.
    """

    names: Mapping[str, str]
    layer: ModelConfig


def has_mtp(names: Iterable[str]) -> bool:
    """Does a layer for multi-token prediction lie among these tensors, in plain numbers?"""
    found = [name for name in names if name.startswith(PREFIX)]
    return bool(found) and not any(name.endswith(_PACKED) for name in found)


def mtp_parts(raw: Mapping[str, Any], shapes: TensorShapes) -> MtpParts:
    """Read configuration, names and shapes.

    Args:
        raw: `config.json` of the model that the layer belongs to.
        shapes: Of every tensor, the model's among them.

    Raises:
        HeadsError: Something is missing, unknown or of the wrong shape.
    """
    names = mtp_names(shapes)
    try:
        config = parse_config(raw, {})
    except ModelError as error:
        raise HeadsError(error.message, _AGAIN) from error
    if not config.traits.is_usual or config.traits.qk_norm:
        raise HeadsError(
            f"Layers for multi-token prediction of {config.model_type} models aren't supported.",
            "Choose a MiMo model, or go without heads.",
        )
    layer = replace(config, num_layers=1, quantization="", packing=None, stored_types=())
    _check_shapes(names, layer, shapes)
    return MtpParts(names, layer)


def mtp_names(shapes: TensorShapes) -> dict[str, str]:
    """Of each part of the first layer the tensor's name.

    Raises:
        HeadsError: A part is missing, doubled or unknown.
    """
    found = [match for name in sorted(shapes) if (match := _NAME.fullmatch(name))]
    first = min((int(match[1]) for match in found), default=0)
    names: dict[str, str] = {}
    unknown = []
    for match in found:
        part = _PARTS.get(match[2])
        if part is None or (int(match[1]) == first and part in names):
            unknown.append(match[0])
        elif int(match[1]) == first:
            names[part] = match[0]
    if unknown:
        listed = ", ".join(unknown[:6]) + (", ..." if len(unknown) > 6 else "")
        raise HeadsError(
            f"Tensors that belong to no layer for multi-token prediction: {listed}.",
            "Without them it would draft otherwise: choose the unquantized version of this model.",
        )
    missing = [part for part in _PARTS.values() if part not in names]
    biases = {"q_bias", "k_bias", "v_bias"}
    if missing and set(missing) != biases:  # Qwen's blocks have them, but need not
        raise HeadsError(
            f"The layer for multi-token prediction lacks {', '.join(missing)}.", _AGAIN
        )
    return names


def _check_shapes(names: Mapping[str, str], layer: ModelConfig, shapes: TensorShapes) -> None:
    hidden, inner = layer.hidden_size, layer.intermediate_size
    queries, keys = layer.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim
    wanted = {
        "fc": (hidden, 2 * hidden),
        "q": (queries, hidden),
        "k": (keys, hidden),
        "v": (keys, hidden),
        "q_bias": (queries,),
        "k_bias": (keys,),
        "v_bias": (keys,),
        "o": (hidden, queries),
        "gate": (inner, hidden),
        "up": (inner, hidden),
        "down": (hidden, inner),
    }
    norms = ("vector_norm", "state_norm", "input_norm", "mlp_norm", "last_norm")
    wanted |= dict.fromkeys(norms, (hidden,))
    for part, name in names.items():
        if tuple(shapes[name]) != wanted[part]:
            raise HeadsError(
                f"{name} has shape {list(shapes[name])}, not {list(wanted[part])}.",
                "The weights and config.json belong to different models: download both again.",
            )
