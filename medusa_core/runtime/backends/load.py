"""Loads blocks: a spec becomes a record of tensors, for torch or for the compiled step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from medusa_core.models.blocks.spec import (
    AttentionSpec,
    BlockSpec,
    GatedDeltaNetSpec,
    Mamba2Spec,
    MlpSpec,
    MoeSpec,
    NormSpec,
    ParallelExpertsSpec,
    PerLayerGateSpec,
    ShortConvolutionSpec,
    linear_at,
)
from medusa_core.models.blocks.spec import Mixer as MixerSpec
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.row_order import interleave_rows
from medusa_core.models.weights import Weights
from medusa_core.runtime.backends.block import (
    Attention,
    Block,
    DeltaNet,
    Mamba2,
    Mixer,
    ParallelExperts,
    PerLayerGate,
    ShortConvolution,
)
from medusa_core.runtime.backends.experts import ExpertMlps, Mlp
from medusa_core.runtime.backends.host_mlp import HostMlp, HostParts
from medusa_core.runtime.backends.norm import (
    GatedNorm,
    HeadNorm,
    QkNorm,
    RmsNorm,
    SplitQkNorm,
    widened,
)

S = TypeVar("S")
P = TypeVar("P")


def load_blocks(
    config: ModelConfig, weights: Weights, precision: Precision, host: HostParts | None = None
) -> list[Block]:
    """Load all blocks of a model.

    Args:
        config: Configuration with the specs of the blocks.
        weights: Reads the tensors.
        precision: Dtypes and device.
        host: Parts that the processor computes beside a card; None for none.

    Raises:
        CheckpointError: A tensor is missing or has a wrong shape.
    """
    blocks = []
    for index, spec in enumerate(config.blocks):
        loader = _Loader(index, weights, precision, config.rms_norm_eps)
        if host is not None and index in host.layers:
            there = replace(loader, weights=host.weights, precision=host.precision)
            loader = replace(loader, host=there)
        blocks.append(loader.block(spec))
    return blocks


@dataclass(frozen=True, slots=True)
class _Loader:
    """Loads one block.

    Attributes:
        index: Its layer.
        weights: Where tensors come from.
        precision: Dtypes and device.
        eps: ε of norms.
        host: Loads its MLP or experts into host memory; None if they are on the device.
    """

    index: int
    weights: Weights
    precision: Precision
    eps: float
    host: _Loader | None = None

    def block(self, spec: BlockSpec) -> Block:
        """Load a block with all its parts."""
        # Beside experts in parallel, a dense MLP is on the device.
        norms, stays = spec.norms, spec.parallel_experts is not None
        return Block(
            spec,
            mixers=tuple(map(self._mixer, spec.mixers)),
            mlp=None if spec.mlp is None else self._mlp(spec.mlp, stays),
            pre_norm=_optional(self._norm, norms.pre),
            post_norm=_optional(self._norm, norms.post),
            pre_mlp_norm=_optional(self._norm, norms.pre_mlp),
            post_mlp_norm=_optional(self._norm, norms.post_mlp),
            parallel_experts=_optional(self._parallel_experts, spec.parallel_experts),
            per_layer=_optional(self._per_layer, spec.per_layer),
            scale=self._tensor(spec.layer_scalar, 1) if spec.layer_scalar else None,
        )

    def _linear(self, spec: LinearSpec) -> QuantLinear:
        """Read a linear layer of this block."""
        return self.weights.linear(linear_at(spec, self.index))

    def _tensor(self, name: str, *shape: int) -> Tensor:
        """Read a tensor of this block, and check its shape."""
        return self.weights.named(f"model.layers.{self.index}.{name}", *shape)

    def _vector(self, spec: NormSpec) -> Tensor:
        """Read the weight of a norm, and add the offset that its file leaves out."""
        vector = self.weights.vector(f"model.layers.{self.index}.{spec.name}", spec.size)
        return vector + spec.offset

    def _norm(self, spec: NormSpec) -> RmsNorm:
        """Load a norm."""
        return RmsNorm(self._vector(spec), self.eps)

    def _mixer(self, spec: MixerSpec) -> Mixer:
        """Load a token mixer of any kind."""
        if isinstance(spec, AttentionSpec):
            return self._attention(spec)
        if isinstance(spec, GatedDeltaNetSpec):
            return self._delta_net(spec)
        return self._mamba2(spec) if isinstance(spec, Mamba2Spec) else self._convolution(spec)

    def _attention(self, spec: AttentionSpec) -> Attention:
        """Load attention."""
        precision = self.precision
        qk_norm, head_scales = self._qk_norms(spec)
        sinks, v_norm = None, None
        if spec.sinks:
            sinks = self._tensor(spec.sinks, spec.num_heads).to(precision.scores)
        if spec.v_norm:
            ones = torch.ones(spec.head_dim, dtype=precision.compute, device=precision.device)
            v_norm = RmsNorm(ones, self.eps)
        linears = self._linear(spec.qkv), self._linear(spec.output)
        return Attention(spec, *linears, sinks, qk_norm, head_scales, v_norm)

    def _qk_norms(self, spec: AttentionSpec) -> tuple[QkNorm | None, Tensor | None]:
        """Return the norm before RoPE, and weights that apply after it."""
        if spec.q_norm is None:
            return None, None
        heads = spec.head_dim, spec.rotary_dim
        q = interleave_rows(self._vector(spec.q_norm), *heads)
        if spec.k_norm is None:
            q_width = spec.num_heads * spec.head_dim
            return SplitQkNorm(RmsNorm(q, self.eps), None, q_width, 0), None
        k = interleave_rows(self._vector(spec.k_norm), *heads)
        counts, scales = (spec.num_heads, spec.num_kv_heads), None
        if spec.norm_after_rope:
            # A rotation leaves a head's length as it was, so that only the weight comes after it.
            parts = zip((q, k, torch.ones_like(k)), (*counts, counts[1]), strict=True)
            scales = torch.cat([weight.expand(count, -1) for weight, count in parts])
            q, k = torch.ones_like(q), torch.ones_like(k)
        elif len(q) == spec.head_dim and not spec.q_norm.offset and not spec.v_norm:
            weights = zip((q, k), counts, strict=True)
            each = torch.cat([weight.expand(count, -1) for weight, count in weights])
            return HeadNorm(each, self.eps), None
        widths = (count * spec.head_dim for count in counts)
        return SplitQkNorm(RmsNorm(q, self.eps), RmsNorm(k, self.eps), *widths), scales

    def _delta_net(self, spec: GatedDeltaNetSpec) -> DeltaNet:
        """Load a gated delta net."""
        conv, rate, dt_bias = (
            self._tensor(name, *shape).to(self.precision.scores)
            for name, shape in spec.tensors.items()
        )
        return DeltaNet(
            spec,
            in_proj=self._linear(spec.in_proj),
            gates=self._linear(spec.gates),
            conv=conv.squeeze(1),
            rate=-rate.exp(),
            dt_bias=dt_bias,
            norm=self._norm(spec.norm),
            output=self._linear(spec.output),
        )

    def _mamba2(self, spec: Mamba2Spec) -> Mamba2:
        """Load a Mamba-2 mixer."""
        own = {
            name.removeprefix(f"{spec.prefix}."): widened(self._tensor(name, *shape))
            for name, shape in spec.tensors.items()
        }
        rate, groups = own["A_log"].exp().neg_(), spec.state.num_key_heads
        norms = [
            GatedNorm(widened(self._vector(norm)), groups, self.eps, not spec.norm_before_gate)
            for norm in spec.norms
        ]
        return Mamba2(
            spec,
            in_proj=self._linear(spec.in_proj),
            factors=_spread(spec.multipliers, spec.state, rate) if spec.multipliers else None,
            conv=own["conv1d.weight"].squeeze(1),
            conv_bias=own.get("conv1d.bias"),
            rate=rate,
            skip=own["D"],
            dt_bias=own["dt_bias"],
            norm=norms[0] if norms else None,
            output=self._linear(spec.output),
        )

    def _convolution(self, spec: ShortConvolutionSpec) -> ShortConvolution:
        """Load a mixer that is a short convolution."""
        conv, *bias = (self._tensor(name, *shape) for name, shape in spec.tensors.items())
        return ShortConvolution(
            spec,
            in_proj=self._linear(spec.in_proj),
            conv=conv.squeeze(1),
            bias=bias[0] if bias else None,
            output=self._linear(spec.output),
        )

    def _per_layer(self, spec: PerLayerGateSpec) -> PerLayerGate:
        """Load the gate of per-layer embeddings."""
        linears = self._linear(spec.gate), self._linear(spec.projection)
        return PerLayerGate(*linears, self._norm(spec.norm))

    def _mlp(self, spec: MlpSpec | MoeSpec, stays: bool) -> Mlp | ExpertMlps | HostMlp:
        """Load an MLP or experts; into host memory if the processor computes them."""
        if isinstance(spec, MoeSpec):
            return self._moe(spec)
        if self.host is None or stays:
            return self._dense(spec)
        return HostMlp(self.host._dense(spec), self.host.precision)

    def _dense(self, spec: MlpSpec) -> Mlp:
        """Load an MLP."""
        return Mlp(spec, self._linear(spec.gate_up), self._linear(spec.down))

    def _moe(self, spec: MoeSpec) -> ExpertMlps | HostMlp:
        """Load experts; a shared one stays on the device when others are in host memory."""
        shared = _optional(self._dense, spec.shared)
        gate = _optional(self._linear, spec.shared_gate)
        if self.host is None:
            return self._experts(spec, gate, shared)
        return HostMlp(self.host._experts(spec), self.host.precision, gate, shared)

    def _experts(
        self, spec: MoeSpec, shared_gate: QuantLinear | None = None, shared: Mlp | None = None
    ) -> ExpertMlps:
        """Load routed experts and their router, beside a shared expert that is loaded already."""
        count = spec.routing.num_experts
        bias, scales = (
            self._tensor(name, count) if name else None
            for name in (spec.router_bias, spec.expert_scales)
        )
        return ExpertMlps(
            spec,
            router=self._linear(spec.router),
            mlps=tuple(map(self._dense, spec.mlps)),
            shared=shared,
            shared_gate=shared_gate,
            bias=bias,
            scales=scales,
        )

    def _parallel_experts(self, spec: ParallelExpertsSpec) -> ParallelExperts:
        """Load experts that run in parallel to an MLP, and their norms."""
        hidden = spec.pre_norm.size
        scale = self._tensor(spec.router_scale, hidden) * hidden**-0.5
        return ParallelExperts(
            pre_norm=self._norm(spec.pre_norm),
            post_mlp_norm=self._norm(spec.post_mlp_norm),
            post_norm=self._norm(spec.post_norm),
            router_norm=RmsNorm(scale, self.eps),
            experts=self._moe(spec.moe),
        )


def _optional(load: Callable[[S], P], spec: S | None) -> P | None:
    """Load a part of a block; None if the block hasn't got it."""
    return None if spec is None else load(spec)


def _spread(multipliers: Sequence[float], state: StateShape, like: Tensor) -> Tensor:
    """Spread the multipliers of gate, x, B, C and Δ over the rows of the projection to them."""
    inner, width = state.num_heads * state.value_dim, state.num_key_heads * state.key_dim
    sizes = torch.tensor([inner, inner, width, width, state.num_heads], device=like.device)
    values = torch.tensor(multipliers, dtype=like.dtype, device=like.device)
    return values.repeat_interleave(sizes)
