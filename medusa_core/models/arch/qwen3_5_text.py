"""Qwen 3.5 and 3.6 (dense; text): gated delta nets, and gated attention in each fourth layer."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.architecture import (
    AGAIN,
    MAX_LAYERS,
    Arch,
    ArchConfig,
    ModelFields,
)
from medusa_core.models.blocks.compose import QkNorm, attention, linear, mlp, moe, pre_norms
from medusa_core.models.blocks.spec import (
    AttentionSpec,
    BlockSpec,
    GatedDeltaNetSpec,
    MlpSpec,
    MoeSpec,
)
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.gguf_architecture import GgufArchitecture, num_layers
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.system.files.gguf import Gguf

_ATTENTION, _DELTA_NET = "full_attention", "linear_attention"
_MAX_SIZE = 1 << 10  # of heads and their widths
_MAX_TAPS = 1 << 5
_PREFIX = "linear_attn"
DELTA_NET_DEFAULTS = {"head_dim": 256, "partial_rotary_factor": 0.25}


def delta_net_blocks(
    config: ArchConfig, layer: MlpSpec | MoeSpec, is_fused: bool = False
) -> list[BlockSpec]:
    """Return blocks of a gated delta net or gated attention, and the same MLP or experts each.

    Args:
        config: Settings.
        layer: The MLP or the experts.
        is_fused: Whether projections of a delta net are two tensors, in which the rows of a key
            head are consecutive (Qwen3-Next), instead of four.

    Raises:
        ModelError: Sizes make no sense, or layers are of other kinds.
    """
    norms, state, kinds = pre_norms(config, offset=1.0), _state(config), _layer_types(config)
    attending, listed = _gated_attention(config), config.raw.get("grouped_outputs")
    grouped = listed if isinstance(listed, list) else []
    nets = [_delta_net(config, state, is_fused, is_grouped) for is_grouped in (False, True)]
    return [
        BlockSpec(norms, (attending if kind == _ATTENTION else nets[index in grouped],), layer)
        for index, kind in enumerate(kinds)
    ]


def _gated_attention(config: ArchConfig) -> AttentionSpec:
    """Return attention with output gates; each head's query precedes its gate in one tensor."""
    norms = QkNorm(offset=1.0)
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=norms)
    query, key, value = mixer.qkv.pieces
    query = replace(query, total=2 * query.rows, stride=2 * config.head_dim)
    gate = replace(query, rotates=False, first=config.head_dim)
    qkv = replace(mixer.qkv, pieces=(query, key, value, gate))
    return replace(mixer, qkv=qkv, is_gated=True)


def _state(config: ArchConfig) -> StateShape:
    """Return the sizes of a gated delta net."""
    key_heads = config.whole("linear_num_key_heads", _MAX_SIZE, 16)
    heads = config.whole("linear_num_value_heads", _MAX_SIZE, 32)
    key_dim = config.whole("linear_key_head_dim", _MAX_SIZE, 128)
    value_dim = config.whole("linear_value_head_dim", _MAX_SIZE, 128)
    if heads % key_heads:
        raise ModelError(
            tr("config.json: {0} value heads can't share {1} key heads evenly.", heads, key_heads),
            AGAIN,
        )
    channels = 2 * key_heads * key_dim + heads * value_dim
    taps = config.whole("linear_conv_kernel_dim", _MAX_TAPS, 4)
    return StateShape(heads, key_dim, value_dim, key_heads, channels, taps)


def _layer_types(config: ArchConfig) -> list[str]:
    """Return `layer_types`; by default each fourth layer has attention."""
    kinds, count = config.raw.get("layer_types"), config.num_layers
    if kinds is None:
        every = config.whole("full_attention_interval", MAX_LAYERS, 4)
        return [_DELTA_NET if (index + 1) % every else _ATTENTION for index in range(count)]
    if not isinstance(kinds, list) or len(kinds) != count:
        raise ModelError(
            tr("config.json: layer_types isn't a list of {0} kinds of layers.", count), AGAIN
        )
    if others := [kind for kind in kinds if kind not in (_ATTENTION, _DELTA_NET)]:
        raise ModelError(
            tr("Layers of kind {0} aren't supported in this family.", reprlib.repr(others[0])),
            tr("It has {0} and {1}: download config.json again.", _ATTENTION, _DELTA_NET),
        )
    return kinds


def _delta_net(
    config: ArchConfig, state: StateShape, is_fused: bool, is_grouped: bool
) -> GatedDeltaNetSpec:
    """Return a gated delta net with separate or fused projections."""
    hidden, inner = config.hidden_size, state.num_heads * state.value_dim
    projections, gates = _fused_projections(state) if is_fused else _separate_projections(state)
    output = linear("output", f"{_PREFIX}.out_proj", hidden, inner)
    groups = (state.num_key_heads, state.num_heads) if is_grouped else None
    return GatedDeltaNetSpec(
        prefix=_PREFIX,
        state=state,
        in_proj=LinearSpec("in_proj", projections, hidden),
        gates=LinearSpec("gates", gates, hidden, stays_dense=True),
        output=replace(output, grouped_heads=groups),
    )


def _separate_projections(
    state: StateShape,
) -> tuple[tuple[TensorRows, ...], tuple[TensorRows, ...]]:
    """Return the tensors of q, k, v and output gates; and those of the β and decay gates."""
    inner, heads = state.num_heads * state.value_dim, state.num_heads
    projections = {"in_proj_qkv": state.channels, "in_proj_z": inner}
    gates = {"in_proj_b": heads, "in_proj_a": heads}
    first, second = (
        tuple(TensorRows(f"{_PREFIX}.{name}", rows) for name, rows in sizes.items())
        for sizes in (projections, gates)
    )
    return first, second


def _fused_projections(state: StateShape) -> tuple[tuple[TensorRows, ...], tuple[TensorRows, ...]]:
    """As `_separate_projections`, for Qwen3-Next's fused tensors, grouped by key head."""
    groups = state.num_key_heads
    shared = state.num_heads // groups

    def pieces(name: str, sizes: tuple[int, ...]) -> tuple[TensorRows, ...]:
        """Return the rows of each projection, interleaved by key head in one tensor."""
        stride, starts = sum(sizes), accumulate((0, *sizes))
        return tuple(
            TensorRows(
                f"{_PREFIX}.{name}",
                groups * size,
                first=first,
                total=groups * stride,
                stride=stride,
            )
            for size, first in zip(sizes, starts, strict=False)
        )

    values = shared * state.value_dim
    qkvz = pieces("in_proj_qkvz", (state.key_dim, state.key_dim, values, values))
    return qkvz, pieces("in_proj_ba", (shared, shared))


def shared_expert_moe(config: ArchConfig) -> MoeSpec:
    """Return experts and a shared expert behind a gate.

    Raises:
        ModelError: Some layers have no experts.
    """
    if config.raw.get("mlp_only_layers") or config.raw.get("decoder_sparse_step", 1) != 1:
        raise ModelError(
            "Some layers of this model have no experts, which isn't supported in its family.",
            "Choose one whose layers all have them, such as Qwen3.5-35B-A3B.",
        )
    shared = mlp(config, "mlp.shared_expert", name="shared.")
    gate = linear("shared.gate", "mlp.shared_expert_gate", 1, config.hidden_size, stays_dense=True)
    routing = config.routing("num_experts", 256, 8)
    experts = moe(config, routing, config.expert_width(512), shared=shared)
    return replace(experts, shared_gate=gate)


def shared_expert_width(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Use the width of the shared expert as the model's `intermediate_size`."""
    return {**raw, "intermediate_size": raw.get("shared_expert_intermediate_size", 512)}


def delta_net_model(_: ArchConfig) -> ModelFields:
    """Return model settings: norms store w − 1."""
    return {"norm_offset": 1.0}


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks of a gated delta net or gated attention, and an MLP."""
    return delta_net_blocks(config, mlp(config))


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return kinds of layers, and those whose quantized output reads grouped value heads."""
    heads, inner = gguf.of_model("ssm.time_step_rank"), gguf.of_model("ssm.inner_size")
    layers, is_grouped = range(num_layers(gguf)), heads != gguf.of_model("ssm.group_count")
    outputs = {index: gguf.tensors.get(f"blk.{index}.ssm_out.weight") for index in layers}
    found: dict[str, Any] = {
        "grouped_outputs": [
            index
            for index, tensor in outputs.items()
            if tensor is not None and tensor.kind in BLOCK_SIZES and is_grouped
        ]
    }
    marks = gguf.numbers(f"{gguf.architecture}.attention.recurrent_layers")
    if marks:
        kinds = ("full_attention", "linear_attention")
        found["layer_types"] = [kinds[bool(mark)] for mark in list(marks)[: len(layers)]]
    if isinstance(heads, int) and isinstance(inner, int) and heads > 0:
        found["linear_value_head_dim"] = inner // heads
    return found


QWEN35_GGUF = GgufArchitecture(
    "qwen35",
    tensors={
        "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
        "attn_gate.weight": "linear_attn.in_proj_z.weight",
        "ssm_beta.weight": "linear_attn.in_proj_b.weight",
        "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
        "ssm_conv1d.weight": "linear_attn.conv1d.weight",
        "ssm_dt.bias": "linear_attn.dt_bias",
        "ssm_a": "linear_attn.A_log",
        "ssm_norm.weight": "linear_attn.norm.weight",
        "ssm_out.weight": "linear_attn.out_proj.weight",
        "nextn.eh_proj": "mtp.fc",
        "nextn.enorm": "mtp.pre_fc_norm_embedding",
        "nextn.hnorm": "mtp.pre_fc_norm_hidden",
        "nextn.shared_head_norm": "mtp.norm",
    },
    keys={
        "linear_num_key_heads": "ssm.group_count",
        "linear_num_value_heads": "ssm.time_step_rank",
        "linear_key_head_dim": "ssm.state_size",
        "linear_conv_kernel_dim": "ssm.conv_kernel",
        "full_attention_interval": "full_attention_interval",
    },
    config=_gguf_config,
    partial_rotary=True,
    norm_offset=1.0,
    grouped_value_heads=True,
    mtp_prefix=True,
)


SPEC = Arch(
    "qwen3_5_text",
    _blocks,
    delta_net_model,
    defaults=DELTA_NET_DEFAULTS,
    gguf=QWEN35_GGUF,
)
