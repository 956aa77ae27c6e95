"""Loaded blocks: of each spec a record that holds the spec and its weights.

Torch runs them (`torch_blocks`), and the compiled step is set up from them (`native_blocks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from medusa_core.models.blocks.spec import (
    AttentionSpec,
    BlockSpec,
    GatedDeltaNetSpec,
    Mamba2Spec,
    ShortConvolutionSpec,
)
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.backends.convolution import DynamicConvolution
from medusa_core.runtime.backends.experts import ExpertMlps, Mlp
from medusa_core.runtime.backends.host_mlp import HostMlp
from medusa_core.runtime.backends.norm import GatedNorm, QkNorm, RmsNorm


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention.

    Attributes:
        spec: Its settings; without query heads it projects to keys and values alone.
        qkv: Queries, own keys, own values, and the logits of the output gate.
        output: Output projection.
        sinks: A score per query head that belongs to no row. [q heads]
        qk_norm: Norm of queries and keys before the rotation.
        head_scales: Norm weights that apply after the rotation. [q heads + 2 · kv heads, head_dim]
        v_norm: Norm of each value head.
    """

    spec: AttentionSpec
    qkv: QuantLinear
    output: QuantLinear
    sinks: Tensor | None = None
    qk_norm: QkNorm | None = None
    head_scales: Tensor | None = None
    v_norm: RmsNorm | None = None


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """Gated delta net (Yang et al. 2024).

    Attributes:
        spec: Its settings.
        in_proj: Rows of queries and keys (per key head), values and output gates (per head).
        gates: Per head the logit of β, then the input of the decay.
        conv: Depthwise convolution over queries, keys and values; the last tap is the row itself.
            [channels, width]
        rate: −exp(A_log). [heads], float32 or float64
        dt_bias: [heads], float32 or float64
        norm: Norm of each head's readout. [value_dim]
        output: Output projection.
    """

    spec: GatedDeltaNetSpec
    in_proj: QuantLinear
    gates: QuantLinear
    conv: Tensor
    rate: Tensor
    dt_bias: Tensor
    norm: RmsNorm
    output: QuantLinear


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Mamba-2 layer (Dao and Gu 2024, section 7); vectors are float32 or float64.

    Attributes:
        spec: Its settings.
        in_proj: Projection to gate, x, B, C and Δ.
        factors: Multipliers of that projection's rows, or None. [rows of `in_proj`]
        conv: Depthwise convolution; the last tap is the row itself. [channels, width]
        conv_bias: [channels], or None.
        rate: A, which is below 0. [heads]
        skip: D. [heads]
        dt_bias: Bias of Δ. [heads]
        norm: Gated norm of the result; None for the gate alone.
        output: Output projection.
    """

    spec: Mamba2Spec
    in_proj: QuantLinear
    factors: Tensor | None
    conv: Tensor
    conv_bias: Tensor | None
    rate: Tensor
    skip: Tensor
    dt_bias: Tensor
    norm: GatedNorm | None
    output: QuantLinear


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """LFM2's gated short convolution: y = C · conv(B · x) of (B, C, x) = in_proj(h).

    Attributes:
        spec: Its settings.
        in_proj: Projection to B, C and x.
        conv: Depthwise; the last tap is the row itself. [hidden, width]
        bias: [hidden], or None.
        output: Output projection.

    Source: LFM2 technical report (Liquid AI 2025), section 2.
    """

    spec: ShortConvolutionSpec
    in_proj: QuantLinear
    conv: Tensor
    bias: Tensor | None
    output: QuantLinear


Mixer = Attention | DeltaNet | Mamba2 | ShortConvolution


@dataclass(frozen=True, slots=True)
class ParallelExperts:
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
    """A block of a decoder; fields are None for parts that it doesn't have.

    Attributes:
        spec: Its settings.
        mixers: What mixes rows: they read the same normalized rows, and their outputs are added.
        parallel_experts: Experts in parallel to the MLP.
        per_layer: Gate of per-layer embeddings.
        mlp: MLP or experts.
        convolutions: Convolutions around the mixers and around the MLP (DFlash2).
        pre_norm: Norm before the mixers.
        post_norm: Norm of the mixers' output.
        pre_mlp_norm: Norm before the MLP.
        post_mlp_norm: Norm of the MLP's output.
        scale: Multiplier of the block's output. [1]
    """

    spec: BlockSpec
    mixers: tuple[Mixer, ...]
    parallel_experts: ParallelExperts | None = None
    per_layer: PerLayerGate | None = None
    mlp: Mlp | ExpertMlps | HostMlp | None = None
    convolutions: tuple[DynamicConvolution, DynamicConvolution] | None = None
    pre_norm: RmsNorm | None = None
    post_norm: RmsNorm | None = None
    pre_mlp_norm: RmsNorm | None = None
    post_mlp_norm: RmsNorm | None = None
    scale: Tensor | None = None

    @property
    def attention(self) -> Attention | None:
        """Attention of the block; None if it has only other mixers."""
        return next((one for one in self.mixers if isinstance(one, Attention)), None)


def host_mlps(blocks: Sequence[Block]) -> list[HostMlp]:
    """Return the MLPs and experts that the processor computes beside a card."""
    found = [block.mlp for block in blocks]
    found += [block.parallel_experts.experts for block in blocks if block.parallel_experts]
    return [mlp for mlp in found if isinstance(mlp, HostMlp)]
