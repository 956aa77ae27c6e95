"""Mamba-2 layers of any family: what a `config.json` says of them, and the parts they are made of.

Source: Transformers are SSMs (Dao and Gu 2024), section 7; the names are those of Bamba.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.architecture import whole
from medusa_core.models.layer_shapes import LayerShape, RowShape, StateShape, recurrent_part
from medusa_core.models.traits import Mamba

if TYPE_CHECKING:
    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_MOST_HEADS = 1 << 12
_MOST_WIDTH = 1 << 17
_MOST_LAYERS = 1 << 10
_MOST_STATE = 1 << 24  # numbers of a layer's state; the largest published have 4 million
_MOST_TAPS = 64
_KINDS = {
    **dict.fromkeys(("mamba", "linear_attention"), "mamba"),
    **dict.fromkeys(("attention", "full_attention"), "attention"),
}
_AGAIN = "Download config.json again."
MAMBA_KEYS = {  # config.json keys → metadata keys of GGUF files
    "mamba_n_heads": "ssm.time_step_rank",
    "mamba_n_groups": "ssm.group_count",
    "mamba_d_state": "ssm.state_size",
    "mamba_d_ssm": "ssm.inner_size",
    "mamba_d_conv": "ssm.conv_kernel",
}
MAMBA_FLAGS = {"mamba_conv_bias": "ssm_conv1d.bias", "mamba_proj_bias": "ssm_in.bias"}


def mamba_tensors(prefix: str) -> dict[str, str]:
    """Tensor names of a Mamba-2 layer, GGUF's → Hugging Face's, which begin with the prefix."""
    modules = {
        "ssm_in": "in_proj",
        "ssm_conv1d": "conv1d",
        "ssm_norm": "norm",
        "ssm_out": "out_proj",
    }
    whole_names = {"ssm_dt.bias": "dt_bias", "ssm_a": "A_log", "ssm_d": "D"}
    return {theirs: f"{prefix}.{ours}" for theirs, ours in (modules | whole_names).items()}


def state_shape(raw: Mapping[str, Any]) -> StateShape:
    """The sizes of a layer's state.

    Raises:
        ModelError: They don't fit each other, or no model is so large.
    """
    hidden = whole(raw, "hidden_size", _MOST_WIDTH, 4096)
    heads = whole(raw, "mamba_n_heads", _MOST_HEADS, 128)
    groups = whole(raw, "mamba_n_groups", _MOST_HEADS, 1)
    size = whole(raw, "mamba_d_state", _MOST_HEADS, 256)
    inner = whole(raw, "mamba_expand", 64, 2) * hidden
    inner = whole(raw, "mamba_d_ssm", 64 * _MOST_WIDTH, inner)
    given = raw.get("mamba_d_head")
    width = inner // heads if given in (None, "auto") else whole(raw, "mamba_d_head", inner, 64)
    if width * heads != inner:
        raise ModelError(
            f"config.json: {heads} Mamba heads of {width} numbers don't make up the layer's "
            f"{inner}.",
            _AGAIN,
        )
    if heads % groups:
        raise ModelError(
            f"config.json: {heads} Mamba heads can't share {groups} groups evenly.", _AGAIN
        )
    if inner * size > _MOST_STATE:
        raise ModelError(
            f"config.json: a Mamba layer's state has {inner * size:,} numbers; no model is so "
            "large.",
            _AGAIN,
        )
    taps = whole(raw, "mamba_d_conv", _MOST_TAPS, 4)
    return StateShape(heads, size, width, groups, inner + 2 * groups * size, taps)


def mamba_trait(raw: Mapping[str, Any]) -> Mamba:
    """What Mamba-2 layers have beyond their sizes."""
    least, most = _step_limits(raw.get("time_step_limit"))
    return Mamba(
        has_bias=bool(raw.get("mamba_proj_bias", False)),
        has_out_bias=bool(raw.get("mamba_proj_bias", False)),
        has_conv_bias=bool(raw.get("mamba_conv_bias", True)),
        least_step=least,
        most_step=most,
    )


def _step_limits(limits: object) -> tuple[float, float]:
    """The shortest and the longest time step."""
    if limits is None:
        return 0.0, math.inf
    if not isinstance(limits, list | tuple) or len(limits) != 2:
        raise _bad_limits(limits)
    least, most = (_plain(limit) for limit in limits)
    if not (isinstance(least, int | float) and isinstance(most, int | float)):
        raise _bad_limits(limits)
    if not 0 <= least < most:
        raise _bad_limits(limits)
    return float(least), float(most)


def _plain(limit: object) -> object:
    """A number; transformers writes infinity as an object."""
    told = limit.get("__float__") if isinstance(limit, Mapping) else limit
    return math.inf if told == "Infinity" else told


def _bad_limits(limits: object) -> ModelError:
    return ModelError(
        f"config.json: time_step_limit is {reprlib.repr(limits)}, no shortest and longest step.",
        _AGAIN,
    )


def mixer_kinds(raw: Mapping[str, Any], kinds: object) -> list[str]:
    """What mixes the rows of each layer: `mamba` or `attention`.

    Args:
        raw: A `config.json`.
        kinds: What it says of them, in old words or new ones.

    Raises:
        ModelError: They aren't one of these for each layer.
    """
    count = whole(raw, "num_hidden_layers", _MOST_LAYERS, 1)
    listed = kinds if isinstance(kinds, list) else []
    known = [_KINDS.get(kind) if isinstance(kind, str) else None for kind in listed]
    named = [kind for kind in known if kind is not None]
    if len(named) != count:
        raise ModelError(
            f"config.json: layer_types isn't a list of {count} words, each mamba or attention.",
            "Layers of other kinds aren't supported in this family.",
        )
    return named


def layer_shapes(raw: Mapping[str, Any], kinds: list[str]) -> tuple[LayerShape, ...]:
    """What a session holds of each layer.

    Args:
        raw: A `config.json`.
        kinds: Of each layer `mamba`, or else attention's.
    """
    state = state_shape(raw)
    rows = row_shape(raw)
    return tuple(state if kind == "mamba" else rows for kind in kinds)


def row_shape(raw: Mapping[str, Any]) -> RowShape:
    """The keys and values of a layer with attention."""
    heads = whole(raw, "num_attention_heads", _MOST_HEADS, 32)
    hidden = whole(raw, "hidden_size", _MOST_WIDTH, 4096)
    return RowShape(
        whole(raw, "num_key_value_heads", _MOST_HEADS, heads),
        whole(raw, "head_dim", _MOST_WIDTH, max(1, hidden // heads)),
    )


@dataclass(frozen=True, slots=True)
class MambaParts:
    """The parts of a Mamba-2 layer.

    Attributes:
        prefix: What the names of its tensors begin with.
        into: The projection to gate, x, B, C and Δ.
        out: The projection behind it.
        norms: Sizes of its norms, by name.
        more: Shapes of its other tensors, by their whole names.
    """

    prefix: str
    into: LinearSpec
    out: LinearSpec
    norms: dict[str, int]
    more: dict[str, tuple[int, ...]]


def mamba_parts(config: ModelConfig, index: int) -> MambaParts | None:
    """The parts of a block's Mamba-2 layer; None where it has none."""
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

    state, mamba = recurrent_part(config.layers[index]), config.traits.mamba
    if state is None or mamba is None:
        return None
    name, prefix = f"layers.{index}", f"model.layers.{index}.{mamba.name}"
    inner, heads = state.num_heads * state.value_dim, state.num_heads
    into = (TensorRows(f"{prefix}.in_proj", inner + state.channels + heads),)
    out = (TensorRows(f"{prefix}.out_proj", config.hidden_size),)
    more: dict[str, tuple[int, ...]] = {
        f"{prefix}.conv1d.weight": (state.channels, 1, state.conv_width),
        **dict.fromkeys((f"{prefix}.{one}" for one in ("A_log", "D", "dt_bias")), (heads,)),
    }
    if mamba.has_conv_bias:
        more[f"{prefix}.conv1d.bias"] = (state.channels,)
    return MambaParts(
        prefix=prefix,
        into=LinearSpec(f"{name}.mamba_in", into, config.hidden_size, mamba.has_bias),
        out=LinearSpec(f"{name}.mamba_out", out, inner, mamba.has_out_bias),
        norms={f"{prefix}.norm": inner} if mamba.has_norm else {},
        more=more,
    )


def with_mamba(parts: BlockParts, config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block, with its Mamba-2 layer if it has one."""
    found = mamba_parts(config, index)
    if found is None:
        return parts
    return replace(
        parts,
        vectors=parts.vectors | found.norms,
        more={**parts.more, **found.more},
        mixer=(found.into, found.out),
    )


def without_attention(parts: BlockParts) -> BlockParts:
    """The parts of a block, but for attention and what belongs to it."""
    attention = f"{parts.prefix}.self_attn."
    vectors = {name: size for name, size in parts.vectors.items() if attention not in name}
    return replace(parts, vectors=vectors, qkv=None, output=None)
