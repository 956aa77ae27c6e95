"""Parts of blocks by the settings and tensor names that most architectures share.

An architecture composes its blocks of these, and changes what differs by `dataclasses.replace`.
Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from medusa_core.models.blocks.spec import (
    EACH_EXPERT,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    MoeSpec,
    NormSpec,
    NormsSpec,
    RoutingSpec,
)
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

if TYPE_CHECKING:  # which knows the architectures, and they these parts
    from medusa_core.models.architecture import ArchConfig, ModelFields

GATED = ("gate_proj", "up_proj", "down_proj")
UNGATED = ("up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class QkNorm:
    """Norms of queries and keys.

    Attributes:
        names: Their tensors, within attention.
        offset: Number that is added to the stored weights.
        across_heads: They normalize all heads at once, not each on its own.
    """

    names: tuple[str, str] = ("q_norm", "k_norm")
    offset: float = 0.0
    across_heads: bool = False


PER_HEAD = QkNorm()
ACROSS_HEADS = QkNorm(across_heads=True)


def attention(
    config: ArchConfig,
    prefix: str = "self_attn",
    *,
    bias: bool = False,
    output_bias: bool | None = None,
    output: str = "o_proj",
    qk_norm: QkNorm | None = None,
) -> AttentionSpec:
    """Return full attention with rotary embedding.

    Args:
        config: Sizes.
        prefix: What names of its tensors begin with.
        bias: Projections to queries, keys and values have biases.
        output_bias: The output projection has one; None for as the others.
        output: Name of the output projection.
        qk_norm: Norms of queries and keys, or None.
    """
    size, hidden = config.head_dim, config.hidden_size
    inner, kv = config.num_heads * size, config.num_kv_heads * size
    qkv = (
        TensorRows(f"{prefix}.q_proj", inner, rotates=True),
        TensorRows(f"{prefix}.k_proj", kv, rotates=True),
        TensorRows(f"{prefix}.v_proj", kv),
    )
    norms: list[NormSpec | None] = [None, None]
    if qk_norm is not None:
        widths = (inner, kv) if qk_norm.across_heads else (size, size)
        norms = [
            NormSpec(f"{prefix}.{name}", width, qk_norm.offset)
            for name, width in zip(qk_norm.names, widths, strict=True)
        ]
    return AttentionSpec(
        qkv=LinearSpec("qkv", qkv, hidden, bias),
        output=linear("output", f"{prefix}.{output}", hidden, inner, bias, output_bias),
        num_heads=config.num_heads,
        num_kv_heads=config.num_kv_heads,
        head_dim=size,
        rotary_dim=config.rotary_dim,
        q_norm=norms[0],
        k_norm=norms[1],
    )


def interleaved(attention: AttentionSpec) -> AttentionSpec:
    """Return attention whose heads are stored as rotated pairs."""
    return replace(attention, qkv=attention.qkv.stored_interleaved)


def linear(
    name: str,
    tensor: str,
    rows: int,
    columns: int,
    bias: bool = False,
    own_bias: bool | None = None,
    *,
    stays_dense: bool = False,
) -> LinearSpec:
    """Return a linear layer of one tensor; `own_bias` overrides `bias` unless it is None."""
    has_bias = bias if own_bias is None else own_bias
    return LinearSpec(name, (TensorRows(tensor, rows),), columns, has_bias, stays_dense)


def mlp(
    config: ArchConfig,
    prefix: str = "mlp",
    *,
    name: str = "",
    width: int = 0,
    bias: bool = False,
    names: Sequence[str] = GATED,
    fused: str = "",
) -> MlpSpec:
    """Return an MLP.

    Args:
        config: Sizes.
        prefix: What names of its tensors begin with.
        name: What this engine's names of its layers begin with.
        width: Its intermediate size; 0 for the model's.
        bias: Its layers have biases.
        names: Names of its layers: gate, up and down, or up and down.
        fused: Tensor that holds gate and up; empty if each has its own.
    """
    width, hidden = width or config.intermediate_size, config.hidden_size
    *before, down = (f"{prefix}.{own}" for own in names)
    rows = tuple(TensorRows(tensor, width) for tensor in before)
    gate_up = LinearSpec(f"{name}gate_up", rows, hidden, bias)
    return MlpSpec(
        gate_up.fused_in(f"{prefix}.{fused}") if fused else gate_up,
        linear(f"{name}down", down, hidden, width, bias),
    )


def moe(
    config: ArchConfig,
    routing: RoutingSpec,
    width: int,
    prefix: str = "mlp",
    *,
    router: str = "gate",
    bias: bool = False,
    names: Sequence[str] = GATED,
    router_bias: str = "",
    shared: MlpSpec | None = None,
) -> MoeSpec:
    """Return experts.

    Args:
        config: Sizes.
        routing: How they are chosen.
        width: Intermediate size of one.
        prefix: What names of their tensors begin with.
        router: Name of the router.
        bias: The router and all layers have biases.
        names: Names of an expert's layers, as of `mlp`.
        router_bias: Name of the bias for top-k; empty for none.
        shared: Shared expert, or None.
    """
    count = routing.num_experts
    lead = f"{prefix}." if prefix else ""
    return MoeSpec(
        routing=routing,
        router=linear(
            "router", f"{lead}{router}", count, config.hidden_size, bias, stays_dense=True
        ),
        experts=mlp(
            config,
            f"{lead}experts.{EACH_EXPERT}",
            name=f"experts.{EACH_EXPERT}.",
            width=width,
            bias=bias,
            names=names,
        ),
        shared=shared,
        router_bias=f"{lead}{router_bias}" if router_bias else "",
    )


def pre_norms(
    config: ArchConfig,
    names: tuple[str, str] = ("input_layernorm", "post_attention_layernorm"),
    offset: float = 0.0,
) -> NormsSpec:
    """Return norms before the mixers and before the MLP."""
    pre, pre_mlp = (NormSpec(name, config.hidden_size, offset) for name in names)
    return NormsSpec(pre=pre, pre_mlp=pre_mlp)


def post_norms(config: ArchConfig) -> NormsSpec:
    """Return norms of what the mixers and the MLP give (OLMo 2)."""
    names = ("post_attention_layernorm", "post_feedforward_layernorm")
    post, post_mlp = (NormSpec(name, config.hidden_size) for name in names)
    return NormsSpec(post=post, post_mlp=post_mlp)


def sandwich_norms(
    config: ArchConfig,
    names: tuple[str, str, str, str] = (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    offset: float = 0.0,
) -> NormsSpec:
    """Return norms before and after the mixers and the MLP (Gemma 2)."""
    return NormsSpec(*(NormSpec(name, config.hidden_size, offset) for name in names))


def windowed_blocks(
    config: ArchConfig,
    period: int,
    norms: NormsSpec,
    mixer: AttentionSpec,
    mlp: MlpSpec | MoeSpec,
    ropes: tuple[int | None, int | None] = (0, 0),
) -> list[BlockSpec]:
    """Return blocks with full attention in some layers and a sliding window in the others.

    Args:
        config: Lists them in `layer_types`.
        period: Period of layers with full attention where it doesn't.
        norms: Norms of all blocks.
        mixer: Attention of all blocks.
        mlp: MLP or experts of all blocks.
        ropes: Rotary embedding of layers with full attention, and of those with a window.
    """
    return [
        BlockSpec(norms, (replace(mixer, sliding_window=one, rope=ropes[one is not None]),), mlp)
        for one in config.layer_windows(period)
    ]


def limited_to_window(config: ArchConfig) -> ModelFields:
    """Limit the context to the sliding window, within which all rows are seen."""
    return {"sliding_window": config.sliding_window}


def limited_to_used_window(config: ArchConfig) -> ModelFields:
    """Limit the context to the sliding window if `use_sliding_window`."""
    is_used = config.flag("use_sliding_window")
    return {"sliding_window": config.sliding_window if is_used else None}
