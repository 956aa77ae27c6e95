"""Mamba-2: blocks of one Mamba-2 layer. Hybrid architectures compose their layers here, too.

Source: Transformers are SSMs (Dao and Gu 2024), section 7.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.architecture import AGAIN, MAX_HEADS, MAX_HIDDEN, Arch, ArchConfig, whole
from medusa_core.models.blocks.compose import linear
from medusa_core.models.blocks.spec import BlockSpec, Mamba2Spec, NormSpec, NormsSpec
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.layer_shapes import StateShape

_MAX_TAPS = 64
_KINDS = {
    **dict.fromkeys(("mamba", "linear_attention"), "mamba"),
    **dict.fromkeys(("attention", "full_attention"), "attention"),
}
MAMBA_KEYS = {  # config.json keys → metadata keys of GGUF files
    "mamba_n_heads": "ssm.time_step_rank",
    "mamba_n_groups": "ssm.group_count",
    "mamba_d_state": "ssm.state_size",
    "mamba_d_ssm": "ssm.inner_size",
    "mamba_d_conv": "ssm.conv_kernel",
}
MAMBA_FLAGS = {"mamba_conv_bias": "ssm_conv1d.bias", "mamba_proj_bias": "ssm_in.bias"}


def mamba_tensors(prefix: str) -> dict[str, str]:
    """Return tensor names of a Mamba-2 layer, GGUF's → Hugging Face's.

    Args:
        prefix: What Hugging Face's names begin with.
    """
    modules = {
        "ssm_in": "in_proj",
        "ssm_conv1d": "conv1d",
        "ssm_norm": "norm",
        "ssm_out": "out_proj",
    }
    whole_names = {"ssm_dt.bias": "dt_bias", "ssm_a": "A_log", "ssm_d": "D"}
    return {theirs: f"{prefix}.{ours}" for theirs, ours in (modules | whole_names).items()}


def mamba2(config: ArchConfig, prefix: str = "mamba") -> Mamba2Spec:
    """Return a Mamba-2 layer.

    Args:
        prefix: What names of its tensors begin with.

    Raises:
        ModelError: Sizes don't fit each other.
    """
    state, bias = _state(config), config.flag("mamba_proj_bias")
    inner, hidden = state.num_heads * state.value_dim, config.hidden_size
    rows = inner + state.channels + state.num_heads
    least, most = _time_step_limits(config.raw.get("time_step_limit"))
    return Mamba2Spec(
        prefix=prefix,
        state=state,
        in_proj=linear("mamba_in", f"{prefix}.in_proj", rows, hidden, bias),
        output=linear("mamba_out", f"{prefix}.out_proj", hidden, inner, bias),
        has_conv_bias=config.flag("mamba_conv_bias", True),
        time_step_min=least,
        time_step_max=most,
    )


def _state(config: ArchConfig) -> StateShape:
    """Return the sizes of the recurrent state."""
    heads = config.whole("mamba_n_heads", MAX_HEADS, 128)
    groups = config.whole("mamba_n_groups", MAX_HEADS, 1)
    size = config.whole("mamba_d_state", MAX_HEADS, 256)
    inner = config.whole("mamba_expand", 64, 2) * config.hidden_size
    inner = config.whole("mamba_d_ssm", 64 * MAX_HIDDEN, inner)
    given = config.raw.get("mamba_d_head")
    is_given = given not in (None, "auto")
    width = config.whole("mamba_d_head", inner, 64) if is_given else inner // heads
    if width * heads != inner:
        raise ModelError(
            tr(
                "config.json: {0} Mamba heads of {1} numbers don't make up the layer's {2}.",
                heads,
                width,
                inner,
            ),
            AGAIN,
        )
    if heads % groups:
        raise ModelError(
            tr("config.json: {0} Mamba heads can't share {1} groups evenly.", heads, groups), AGAIN
        )
    taps = config.whole("mamba_d_conv", _MAX_TAPS, 4)
    return StateShape(heads, size, width, groups, inner + 2 * groups * size, taps)


def _time_step_limits(limits: object) -> tuple[float, float]:
    """Parse `time_step_limit`: the smallest and the largest time step."""
    if limits is None:
        return 0.0, math.inf
    if isinstance(limits, list | tuple) and len(limits) == 2:
        least, most = map(_number, limits)
        if isinstance(least, int | float) and isinstance(most, int | float) and 0 <= least < most:
            return float(least), float(most)
    raise ModelError(
        tr(
            "config.json: time_step_limit is {0}, no shortest and longest step.",
            reprlib.repr(limits),
        ),
        AGAIN,
    )


def _number(limit: object) -> object:
    """Convert a limit: transformers writes an infinite one as an object."""
    named = limit.get("__float__") if isinstance(limit, Mapping) else limit
    return math.inf if named == "Infinity" else named


def mixer_types(config: ArchConfig, *keys: str) -> list[str]:
    """Return the mixer of each layer, `mamba` or `attention`, by the first of the keys present.

    Raises:
        ModelError: It isn't a list of one of these for each layer.
    """
    kinds = next(filter(None, map(config.raw.get, keys)), None)
    listed = kinds if isinstance(kinds, list) else []
    known = [_KINDS.get(kind) if isinstance(kind, str) else None for kind in listed]
    named = [kind for kind in known if kind is not None]
    if len(named) != config.num_layers:
        raise ModelError(
            tr(
                "config.json: layer_types isn't a list of {0} words, each mamba or attention.",
                config.num_layers,
            ),
            "Layers of other kinds aren't supported in this family.",
        )
    return named


_CONTEXT_TOKENS = 1 << 18  # config.json says nothing, and no size of a model depends on it
_KEYS = {  # this engine's → those of config.json
    "rms_norm_eps": "layer_norm_epsilon",
    "mamba_n_heads": "num_heads",
    "mamba_d_head": "head_dim",
    "mamba_n_groups": "n_groups",
    "mamba_d_state": "state_size",
    "mamba_d_conv": "conv_kernel",
    "mamba_expand": "expand",
    "mamba_conv_bias": "use_conv_bias",
    "mamba_proj_bias": "use_bias",
}


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add sizes of attention and MLP, which the model lacks but every config needs."""
    hidden = whole(raw, "hidden_size", MAX_HIDDEN, 4096)
    none = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 16}
    return {**raw, **none, "intermediate_size": hidden}


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks of one Mamba-2 layer without an MLP."""
    norms = NormsSpec(pre=NormSpec("norm", config.hidden_size))
    return [BlockSpec(norms, (mamba2(config, "mixer"),), None)] * config.num_layers


SPEC = Arch(
    "mamba2",
    _blocks,
    defaults={"max_position_embeddings": _CONTEXT_TOKENS},
    keys=_KEYS,
    normalize=_normalize,
    gguf=GgufArchitecture(
        "mamba2",
        tensors={**mamba_tensors("mixer"), "attn_norm": "norm"},
        keys=MAMBA_KEYS,
        flags=MAMBA_FLAGS,
    ),
)
