"""What models of gated delta nets and gated attention are made of. Nothing here needs torch.

Of Qwen3-Next and Qwen3.5: most layers are gated delta nets, each fourth is attention whose result
passes through a gate.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.architecture import whole
from medusa_core.models.layer_shapes import RowShape, StateShape
from medusa_core.models.traits import DeltaNet, Experts, Traits

if TYPE_CHECKING:  # a config knows its family
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_ATTENTION, _DELTA_NET = "full_attention", "linear_attention"
_MOST_HEADS = 1 << 10
_MOST_DIM = 1 << 10
_MOST_WIDTH = 1 << 5
_MOST_LAYERS = 1 << 10
_MOST_EXPERTS = 1 << 12
_TURNED = 0.25  # of a head, where config.json doesn't say


def delta_net_as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `config.json` with what these models have where it says nothing."""
    return {"head_dim": 256, "partial_rotary_factor": _TURNED, **raw}


def as_usual_with_experts(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same; the MLP that all rows pass through is the one beside the experts.

    Raises:
        ModelError: Some layers have no experts.
    """
    if raw.get("mlp_only_layers") or raw.get("decoder_sparse_step", 1) != 1:
        raise ModelError(
            "Some layers of this model have no experts, which isn't supported in its family.",
            "Choose one whose layers all have them, such as Qwen3.5-35B-A3B.",
        )
    shared = raw.get("shared_expert_intermediate_size", 512)
    return {**delta_net_as_usual(raw), "intermediate_size": shared}


def delta_net_traits(raw: Mapping[str, Any]) -> Traits:
    """Sizes of states, and which layers have them.

    Raises:
        ModelError: They make no sense, or layers are of other kinds.
    """
    bias = bool(raw.get("attention_bias", False))
    state = _state(raw)
    heads = whole(raw, "num_attention_heads", _MOST_HEADS, 16)
    rows = RowShape(
        whole(raw, "num_key_value_heads", _MOST_HEADS, heads),
        whole(raw, "head_dim", _MOST_DIM, 256),
    )
    kinds = _kinds(raw)
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        qk_norm=True,
        norm_offset=1.0,
        layers=tuple(rows if kind == _ATTENTION else state for kind in kinds),
        delta_net=DeltaNet(tiled=_tiled(raw, kinds)),
    )


def with_experts(traits: Traits, raw: Mapping[str, Any]) -> Traits:
    """The same, where rows pass through a few of many MLPs, and all through one beside them."""
    count = whole(raw, "num_experts", _MOST_EXPERTS, 256)
    chosen = whole(raw, "num_experts_per_tok", _MOST_EXPERTS, 8)
    normalises = bool(raw.get("norm_topk_prob", True))
    width = whole(raw, "moe_intermediate_size", 1 << 20, 512)
    return replace(traits, experts=Experts(count, chosen, width, normalises))


def _state(raw: Mapping[str, Any]) -> StateShape:
    """What a gated delta net holds."""
    key_heads = whole(raw, "linear_num_key_heads", _MOST_HEADS, 16)
    heads = whole(raw, "linear_num_value_heads", _MOST_HEADS, 32)
    key_dim = whole(raw, "linear_key_head_dim", _MOST_DIM, 128)
    value_dim = whole(raw, "linear_value_head_dim", _MOST_DIM, 128)
    if heads % key_heads:
        raise ModelError(
            f"config.json: {heads} value heads can't share {key_heads} key heads evenly.",
            "Download config.json again.",
        )
    return StateShape(
        num_heads=heads,
        key_dim=key_dim,
        value_dim=value_dim,
        num_key_heads=key_heads,
        channels=2 * key_heads * key_dim + heads * value_dim,
        conv_width=whole(raw, "linear_conv_kernel_dim", _MOST_WIDTH, 4),
    )


def _kinds(raw: Mapping[str, Any]) -> list[str]:
    """The kinds of all layers; where a `config.json` doesn't say, each fourth is attention."""
    count = whole(raw, "num_hidden_layers", _MOST_LAYERS, 32)
    kinds = raw.get("layer_types")
    if kinds is None:
        every = whole(raw, "full_attention_interval", _MOST_LAYERS, 4)
        return [_DELTA_NET if (index + 1) % every else _ATTENTION for index in range(count)]
    if not isinstance(kinds, list) or len(kinds) != count:
        raise ModelError(
            f"config.json: layer_types isn't a list of {count} kinds of layers.",
            "Download config.json again.",
        )
    if others := [kind for kind in kinds if kind not in (_ATTENTION, _DELTA_NET)]:
        raise ModelError(
            f"Layers of kind {reprlib.repr(others[0])} aren't supported in this family.",
            f"It has {_ATTENTION} and {_DELTA_NET}: download config.json again.",
        )
    return kinds


def _tiled(raw: Mapping[str, Any], kinds: list[str]) -> frozenset[int]:
    """Layers whose heads a GGUF file stores in tiles."""
    listed = raw.get("tiled_outputs")
    layers = listed if isinstance(listed, list) else []
    return frozenset(i for i, kind in enumerate(kinds) if kind == _DELTA_NET and i in layers)


def delta_net_parts(config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block: those of a gated delta net, or of gated attention."""
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.parts import mlp_parts, shared_parts

    block, shape = shared_parts(config, index), config.layers[index]
    if isinstance(shape, StateShape):
        block = _with_state(block, config, index, shape)
    else:
        block = replace(block, qkv=_gated_qkv(block, config))
    if config.traits.experts is None:
        return block
    mlp, name = f"{block.prefix}.mlp", f"layers.{index}.shared"
    gate = (TensorRows(f"{mlp}.shared_expert_gate", 1),)
    return replace(
        block,
        mlp=mlp_parts(config, name, f"{mlp}.shared_expert", config.intermediate_size),
        mixer=(
            *block.mixer,
            LinearSpec(f"{name}.gate", gate, config.hidden_size, stays_dense=True),
        ),
    )


def _gated_qkv(block: BlockParts, config: ModelConfig) -> LinearSpec:
    """Queries, keys, values, gates: each head's query lies before its gate in one tensor."""
    assert block.qkv is not None
    query, key, value = block.qkv.pieces
    query = replace(query, total=2 * query.rows, stride=2 * config.head_dim)
    gate = replace(query, rotates=False, first=config.head_dim)
    return replace(block.qkv, pieces=(query, key, value, gate))


def _with_state(
    block: BlockParts, config: ModelConfig, index: int, shape: StateShape
) -> BlockParts:
    """A block with a gated delta net in the place of attention."""
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

    traits = config.traits.delta_net
    assert traits is not None
    mixer, name, hidden = f"{block.prefix}.linear_attn", f"layers.{index}", config.hidden_size
    norms = {name: size for name, size in block.vectors.items() if ".self_attn." not in name}
    inner = shape.num_heads * shape.value_dim
    is_tiled = index in traits.tiled
    projections, gates = _fused(mixer, shape) if traits.is_fused else _apart(mixer, shape)
    return replace(
        block,
        vectors=norms | {f"{mixer}.norm": shape.value_dim},
        qkv=None,
        output=LinearSpec(
            f"{name}.output",
            (TensorRows(f"{mixer}.out_proj", hidden),),
            inner,
            grouped_heads=(shape.num_key_heads, shape.num_heads) if is_tiled else None,
        ),
        more={
            f"{mixer}.conv1d.weight": (shape.channels, 1, shape.conv_width),
            f"{mixer}.A_log": (shape.num_heads,),
            f"{mixer}.dt_bias": (shape.num_heads,),
        },
        mixer=(
            LinearSpec(f"{name}.in_proj", projections, hidden),
            LinearSpec(f"{name}.gates", gates, hidden, stays_dense=True),
        ),
    )


def _apart(mixer: str, shape: StateShape) -> tuple[tuple[TensorRows, ...], tuple[TensorRows, ...]]:
    """Queries, keys, values, gates of what is made; gates of what is written and kept."""
    from medusa_core.models.blocks.tensors import TensorRows

    inner, heads = shape.num_heads * shape.value_dim, shape.num_heads
    projections = (("in_proj_qkv", shape.channels), ("in_proj_z", inner))
    gates = (("in_proj_b", heads), ("in_proj_a", heads))
    first, second = (
        tuple(TensorRows(f"{mixer}.{name}", rows) for name, rows in some)
        for some in (projections, gates)
    )
    return first, second


def _fused(mixer: str, shape: StateShape) -> tuple[tuple[TensorRows, ...], tuple[TensorRows, ...]]:
    """The same out of two tensors, in which the rows of a key head stand together."""
    from medusa_core.models.blocks.tensors import TensorRows

    groups = shape.num_key_heads
    shared = shape.num_heads // groups

    def pieces(name: str, sizes: tuple[int, ...]) -> tuple[TensorRows, ...]:
        stride, starts = sum(sizes), accumulate((0, *sizes))
        return tuple(
            TensorRows(
                f"{mixer}.{name}",
                groups * size,
                first=first,
                total=groups * stride,
                stride=stride,
            )
            for size, first in zip(sizes, starts, strict=False)
        )

    values = shared * shape.value_dim
    qkvz = pieces("in_proj_qkvz", (shape.key_dim, shape.key_dim, values, values))
    return qkvz, pieces("in_proj_ba", (shared, shared))
