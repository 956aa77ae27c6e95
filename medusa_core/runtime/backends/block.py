"""Loaded blocks of every architecture: what torch runs and what the compiled step is described by.

A block mixes the rows of a sequence in one or two parallel branches (attention, a recurrent layer
or a short convolution), adds the result, and passes through an MLP or experts. Each record holds
both the settings and the weights of one part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.backends.convolution import DynamicConvolution
from medusa_core.runtime.backends.experts import ExpertMlps, Mlp, PlainMlp
from medusa_core.runtime.backends.host_mlp import HostMlp
from medusa_core.runtime.backends.norm import GatedNorm, QkNorm, RmsNorm


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention, with the variants of all supported architectures.

    Attributes:
        qkv: Fused projection: queries, own keys, own values, and the output gate if `is_gated`.
        output: Output projection.
        num_heads: Query heads.
        num_kv_heads: Key and value heads.
        head_dim: Width of a head.
        scale: Factor of the attention scores, usually 1/√head_dim.
        rope: Index of the rotary embedding in `Decoder.ropes`; None for no rotation (NoPE).
        window: Sliding window in tokens, the row itself included; None for full attention.
        softcap: `attn_logit_softcapping`; None for none.
        sinks: Attention sinks: a score per query head that belongs to no row. [q heads]
        qk_norm: Norm of queries and keys before the rotation.
        head_scales: Norm weights that apply after the rotation. [q heads + 2 · kv heads, head_dim]
        v_norm: Norm of each value head.
        kv_layer: Layer whose keys and values are read: its own, or an earlier one that it shares.
        owns_kv: Whether `qkv` projects to keys, and they are stored in this layer's cache.
        values_are_keys: V equals K before norm and rotation; there is no v_proj.
        is_gated: The result is multiplied by the sigmoid of a projection of the same input.
    """

    qkv: QuantLinear
    output: QuantLinear
    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    rope: int | None
    kv_layer: int
    window: int | None = None
    softcap: float | None = None
    sinks: Tensor | None = None
    qk_norm: QkNorm | None = None
    head_scales: Tensor | None = None
    v_norm: RmsNorm | None = None
    owns_kv: bool = True
    values_are_keys: bool = False
    is_gated: bool = False

    @property
    def inner(self) -> int:
        """Width of the attention result."""
        return self.num_heads * self.head_dim

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.qkv, self.output)


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """Gated delta net (Yang et al. 2024).

    Attributes:
        shape: Sizes of its state.
        state_index: Index among the layers with a state.
        in_proj: Rows of queries and keys (per key head), values and output gates (per head).
        gates: Per head the logit of β, then the input of the decay.
        conv: Depthwise convolution over queries, keys and values; the last tap is the row itself.
            [channels, width]
        rate: −exp(A_log). [heads], float32 or float64
        dt_bias: [heads], float32 or float64
        norm: Norm of each head's readout. [value_dim]
        output: Output projection.
        tiled: (key heads, heads) if `output` reads one head of each key head, then the next, as
            llama.cpp stores them; else None.
    """

    shape: StateShape
    state_index: int
    in_proj: QuantLinear
    gates: QuantLinear
    conv: Tensor
    rate: Tensor
    dt_bias: Tensor
    norm: RmsNorm
    output: QuantLinear
    tiled: tuple[int, int] | None

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.in_proj, self.gates, self.output)


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Mamba-2 layer (Dao and Gu 2024, section 7); vectors are float32 or float64.

    Attributes:
        shape: Sizes of its state; a key head is one of its groups.
        state_index: Index among the layers with a state.
        in_proj: Projection to gate, x, B, C and Δ.
        factors: Multipliers of that projection's rows, or None. [rows of `in_proj`]
        conv: Depthwise convolution; the last tap is the row itself. [channels, width]
        conv_bias: [channels], or None.
        rate: A, which is below 0. [heads]
        skip: D. [heads]
        dt_bias: Bias of Δ. [heads]
        norm: Gated norm of the result; None for the gate alone.
        output: Output projection.
        min_dt: Smallest time step Δ.
        max_dt: Largest time step Δ.
    """

    shape: StateShape
    state_index: int
    in_proj: QuantLinear
    factors: Tensor | None
    conv: Tensor
    conv_bias: Tensor | None
    rate: Tensor
    skip: Tensor
    dt_bias: Tensor
    norm: GatedNorm | None
    output: QuantLinear
    min_dt: float = 0.0
    max_dt: float = math.inf

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.in_proj, self.output)


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """LFM2's gated short convolution: y = C · conv(B · x) of (B, C, x) = in_proj(h).

    Attributes:
        in_proj: Projection to B, C and x.
        conv: Depthwise; the last tap is the row itself. [hidden, width]
        bias: [hidden], or None.
        output: Output projection.

    Source: LFM2 technical report (Liquid AI 2025), section 2.
    """

    in_proj: QuantLinear
    conv: Tensor
    bias: Tensor | None
    output: QuantLinear

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.in_proj, self.output)


Mixer = Attention | DeltaNet | Mamba2 | ShortConvolution


@dataclass(frozen=True, slots=True)
class Branch:
    """A mixer of a block, and the multipliers around it.

    Attributes:
        mixer: What mixes rows.
        input_scale: Multiplier of its input.
        output_scale: Multiplier of its output.
    """

    mixer: Mixer
    input_scale: float = 1.0
    output_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class ExpertsBeside:
    """Experts in parallel to the MLP (Gemma 4); both halves have norms of their own.

    Attributes:
        pre_norm: Norm of the experts' input.
        post_mlp_norm: Norm of the MLP's output.
        post_norm: Norm of the experts' output.
        router_norm: Norm of the router's input, which is the block's residual.
        experts: The experts.
    """

    pre_norm: RmsNorm
    post_mlp_norm: RmsNorm
    post_norm: RmsNorm
    router_norm: RmsNorm
    experts: ExpertMlps | HostMlp


@dataclass(frozen=True, slots=True)
class PerLayerGate:
    """Gate by which a token's per-layer embedding enters a block (Gemma 3n and 4).

    Attributes:
        gate: Projection of the row; its activation is multiplied by the embedding.
        projection: Projection of the product.
        norm: Norm of that projection, before it is added.
    """

    gate: QuantLinear
    projection: QuantLinear
    norm: RmsNorm


@dataclass(frozen=True, slots=True)
class Block:
    """One block; None for what it doesn't have.

    Attributes:
        branches: Its mixers, which read the same normalised rows; their outputs are added. Empty
            for a block that is an MLP alone.
        mlp: MLP or experts.
        pre_norm: Norm before the mixers.
        post_norm: Norm of the mixers' output.
        pre_mlp_norm: Norm before the MLP.
        post_mlp_norm: Norm of the MLP's output.
        experts_beside: Experts in parallel to the MLP.
        per_layer: Gate of per-layer embeddings.
        residual_scale: Multiplier of both halves before they are added to the residual.
        mlp_scale: Multiplier of the MLP's output besides.
        scale: Multiplier of the block's output. [1]
        convolutions: Convolutions around the mixers and around the MLP (DFlash2).
    """

    branches: tuple[Branch, ...]
    mlp: Mlp | PlainMlp | ExpertMlps | HostMlp | None
    pre_norm: RmsNorm | None = None
    post_norm: RmsNorm | None = None
    pre_mlp_norm: RmsNorm | None = None
    post_mlp_norm: RmsNorm | None = None
    experts_beside: ExpertsBeside | None = None
    per_layer: PerLayerGate | None = None
    residual_scale: float = 1.0
    mlp_scale: float = 1.0
    scale: Tensor | None = None
    convolutions: tuple[DynamicConvolution, DynamicConvolution] | None = None

    @property
    def attention(self) -> Attention | None:
        """Its attention, if it has one."""
        found = (b.mixer for b in self.branches if isinstance(b.mixer, Attention))
        return next(found, None)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """All its linear layers."""
        return tuple(self._linears())

    def _linears(self) -> Iterator[QuantLinear]:
        for branch in self.branches:
            yield from branch.mixer.linears
        if self.experts_beside is not None:
            yield from self.experts_beside.experts.linears
        if self.per_layer is not None:
            yield from (self.per_layer.gate, self.per_layer.projection)
        if self.mlp is not None:
            yield from self.mlp.linears
        for convolution in self.convolutions or ():
            yield convolution.projection


def linears_of(blocks: Sequence[Block]) -> list[QuantLinear]:
    """Linear layers of all blocks, in order."""
    return [linear for block in blocks for linear in block.linears]


def host_mlps(blocks: Sequence[Block]) -> list[HostMlp]:
    """Return the MLPs and experts that the processor computes beside a card."""
    found = [block.mlp for block in blocks]
    found += [block.experts_beside.experts for block in blocks if block.experts_beside]
    return [mlp for mlp in found if isinstance(mlp, HostMlp)]
