"""Reads blocks of every architecture: settings from its configuration, weights from its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.arch.gemma4_text import EXPERT_NORMS
from medusa_core.models.blocks.block import (
    Attention,
    Block,
    Branch,
    DeltaNet,
    ExpertsBeside,
    Mamba2,
    PerLayerGate,
    ShortConvolution,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.experts import ExpertMlps, read_mlp, read_mlps
from medusa_core.models.layer_shapes import StateShape, recurrent_part, rows_read
from medusa_core.models.mamba import MambaParts, mamba_parts
from medusa_core.models.norm import GatedNorm, HeadNorm, QkNorm, RmsNorm, SplitQkNorm
from medusa_core.models.parts import BlockParts, block_parts, norm_names, qk_norm_names
from medusa_core.models.precision import Precision
from medusa_core.models.rope import interleave_rows
from medusa_core.models.traits import Factors, NormPlaces
from medusa_core.models.weights import Weights


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Reads the blocks of one model.

    Attributes:
        config: Its sizes.
        precision: Dtypes and device.
        weights: Where its weights come from.
    """

    config: ModelConfig
    precision: Precision
    weights: Weights

    def read(self, index: int) -> Block:
        """Read a block.

        Raises:
            CheckpointError: A tensor is missing or misshapen.
        """
        parts = block_parts(self.config, index)
        shape = self.config.layers[index]
        traits = self.config.traits
        if traits.per_layer is not None or traits.scales_layers:
            return self._gemma4(index, parts)
        if traits.mamba is not None:
            return self._with_mamba(index, parts)
        if traits.delta_net is not None:
            return self._with_delta_net(index, parts)
        if isinstance(shape, StateShape):
            return self._short_convolution(parts)
        return self._transformer(index, parts)

    def norm(self, name: str, size: int) -> RmsNorm:
        """Read an RMS norm; some families store its weight without an offset of one."""
        vector = self.weights.vector(name, size) + self.config.traits.norm_offset
        return RmsNorm(vector, self.config.rms_norm_eps)

    def _transformer(self, index: int, parts: BlockParts) -> Block:
        """A block of attention and an MLP or experts."""
        pre, post, pre_mlp, post_mlp = self._norms(parts)
        qk_norm, head_scales = self._qk_norm(parts)
        attention = self._attention(index, parts, qk_norm, head_scales, self._sinks(parts))
        return Block(
            branches=(Branch(attention),),
            mlp=read_mlps(self.weights, parts, self.config.traits.experts),
            pre_norm=pre,
            post_norm=post,
            pre_mlp_norm=pre_mlp,
            post_mlp_norm=post_mlp,
            residual_scale=self.config.traits.residual_scale,
        )

    def _attention(
        self,
        index: int,
        parts: BlockParts,
        qk_norm: QkNorm | None = None,
        head_scales: Tensor | None = None,
        sinks: Tensor | None = None,
        is_gated: bool = False,
    ) -> Attention:
        config, traits = self.config, self.config.traits
        assert parts.qkv is not None
        assert parts.output is not None
        window = traits.windows[index] if traits.windows else None
        is_local = window is not None and traits.local_theta is not None
        return Attention(
            qkv=self.weights.linear(parts.qkv),
            output=self.weights.linear(parts.output),
            num_heads=config.num_heads,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            scale=traits.attention_scale or config.head_dim**-0.5,
            rope=None if index in traits.unturned else int(is_local),
            kv_layer=index,
            window=window,
            softcap=traits.attention_cap,
            sinks=sinks,
            qk_norm=qk_norm,
            head_scales=head_scales,
            is_gated=is_gated,
        )

    def _norms(self, parts: BlockParts) -> tuple[RmsNorm | None, ...]:
        """Norms before and after the mixers, before and after the MLP."""
        found = [
            self.norm(f"{parts.prefix}.{name}", self.config.hidden_size)
            for name in norm_names(self.config)
        ]
        places = self.config.traits.norm_places
        if places is NormPlaces.BEFORE:
            return found[0], None, found[1], None
        if places is NormPlaces.BEHIND:
            return None, found[0], None, found[1]
        return tuple(found)

    def _qk_norm(self, parts: BlockParts) -> tuple[QkNorm | None, Tensor | None]:
        """Norm before the rotation, and weights that apply after it."""
        config, traits = self.config, self.config.traits
        if not (traits.qk_norm or traits.wide_qk_norm):
            return None, None
        counts = (config.num_heads, config.num_kv_heads)
        weights = []
        for name, heads in zip(qk_norm_names(config), counts, strict=True):
            size = config.head_dim * (heads if traits.wide_qk_norm else 1)
            vector = self.weights.vector(f"{parts.prefix}.self_attn.{name}", size)
            weights.append(interleave_rows(vector + traits.norm_offset, *config.head_rows))
        if traits.is_usual:
            return self._head_norm(*weights), None
        scales = None
        if traits.norms_turned:
            # A rotation leaves a head's length as it was, so that only the weight comes after it.
            every = zip((*weights, torch.ones_like(weights[1])), (*counts, counts[1]), strict=True)
            scales = torch.cat([weight.expand(count, -1) for weight, count in every])
            weights = [torch.ones_like(weight) for weight in weights]
        q, k = (RmsNorm(weight, config.rms_norm_eps) for weight in weights)
        return SplitQkNorm(q, k, *(count * config.head_dim for count in counts)), scales

    def _head_norm(self, q: Tensor, k: Tensor) -> HeadNorm:
        """Norm of each query and key head by weights of one head. [head_dim] each"""
        config = self.config
        heads = torch.cat([q.expand(config.num_heads, -1), k.expand(config.num_kv_heads, -1)])
        return HeadNorm(heads, config.rms_norm_eps)

    def _sinks(self, parts: BlockParts) -> Tensor | None:
        if not self.config.traits.has_sinks:
            return None
        name = f"{parts.prefix}.self_attn.sinks"
        return self.weights.named(name, self.config.num_heads).to(self.precision.scores)

    def _with_delta_net(self, index: int, parts: BlockParts) -> Block:
        """A block of Qwen3-Next or Qwen3.5: a gated delta net or gated attention."""
        hidden, shape = self.config.hidden_size, self.config.layers[index]
        pre_norm = self.norm(f"{parts.prefix}.input_layernorm", hidden)
        mixer: DeltaNet | Attention
        if isinstance(shape, StateShape):
            mixer = self._delta_net(index, parts, shape)
        else:
            norm, _ = self._qk_norm(parts)
            mixer = self._attention(index, parts, norm, is_gated=True)
        pre_mlp_norm = self.norm(f"{parts.prefix}.post_attention_layernorm", hidden)
        assert parts.mlp is not None
        mlp, experts = read_mlp(self.weights, parts.mlp), self.config.traits.experts
        if experts is None or parts.router is None:
            return Block((Branch(mixer),), mlp, pre_norm=pre_norm, pre_mlp_norm=pre_mlp_norm)
        router = self.weights.linear(parts.router)
        gate = self.weights.linear(parts.mixer[-1])
        routed = [read_mlp(self.weights, one) for one in parts.experts]
        mixed = ExpertMlps(experts, router, routed, shared=mlp, shared_gate=gate)
        return Block((Branch(mixer),), mixed, pre_norm=pre_norm, pre_mlp_norm=pre_mlp_norm)

    def _delta_net(self, index: int, parts: BlockParts, shape: StateShape) -> DeltaNet:
        assert parts.output is not None
        in_proj, gates, *_ = parts.mixer
        weights, wide = self.weights, self.precision.scores
        prefix, heads = f"{parts.prefix}.linear_attn", shape.num_heads
        conv = weights.named(f"{prefix}.conv1d.weight", shape.channels, 1, shape.conv_width)
        norm = weights.vector(f"{prefix}.norm", shape.value_dim)  # without the offset of others
        return DeltaNet(
            shape=shape,
            state_index=self.config.states_before(index),
            in_proj=weights.linear(in_proj),
            gates=weights.linear(gates),
            conv=conv.squeeze(1).to(wide),
            rate=-weights.named(f"{prefix}.A_log", heads).to(wide).exp(),
            dt_bias=weights.named(f"{prefix}.dt_bias", heads).to(wide),
            norm=RmsNorm(norm, self.config.rms_norm_eps),
            output=weights.linear(parts.output),
            tiled=parts.output.grouped_heads,
        )

    def _short_convolution(self, parts: BlockParts) -> Block:
        """A block of LFM2 whose mixer is a convolution."""
        assert parts.output is not None
        (in_proj,) = parts.mixer
        pre_norm, _, pre_mlp_norm, _ = self._norms(parts)
        name = f"{parts.prefix}.conv.conv"
        conv = self.weights.named(f"{name}.weight", *parts.more[f"{name}.weight"])
        bias = parts.more.get(f"{name}.bias")
        mixer = ShortConvolution(
            in_proj=self.weights.linear(in_proj),
            conv=conv.squeeze(1),
            bias=None if bias is None else self.weights.named(f"{name}.bias", *bias),
            output=self.weights.linear(parts.output),
        )
        mlp = read_mlps(self.weights, parts, self.config.traits.experts)
        return Block((Branch(mixer),), mlp, pre_norm=pre_norm, pre_mlp_norm=pre_mlp_norm)

    def _with_mamba(self, index: int, parts: BlockParts) -> Block:
        """A block with attention, a Mamba-2 layer, both in parallel, or an MLP alone."""
        traits, found = self.config.traits, mamba_parts(self.config, index)
        factors = traits.factors or Factors()
        of_mixer = {} if found is None else found.norms
        norms = [
            self.norm(name, size) for name, size in parts.vectors.items() if name not in of_mixer
        ]
        branches = []
        if parts.qkv is not None:
            attention = self._attention(index, parts)
            branches.append(Branch(attention, factors.attention_in, factors.attention_out))
        if found is not None:
            mamba = self._mamba(index, found)
            branches.append(Branch(mamba, factors.mamba_in, factors.mamba_out))
        has_mlp = parts.mlp is not None or parts.router is not None
        return Block(
            branches=tuple(branches),
            mlp=read_mlps(self.weights, parts, traits.experts) if has_mlp else None,
            pre_norm=norms[0] if branches else None,
            pre_mlp_norm=norms[-1] if has_mlp else None,
            residual_scale=traits.residual_scale,
            mlp_scale=factors.down,
        )

    def _mamba(self, index: int, parts: MambaParts) -> Mamba2:
        shape, traits = recurrent_part(self.config.layers[index]), self.config.traits
        assert shape is not None
        assert traits.mamba is not None
        weights, settings = self.weights, traits.mamba
        wide = {
            name.rpartition(f"{parts.prefix}.")[2]: _wide(weights.named(name, *size))
            for name, size in parts.more.items()
        }
        norms = [
            GatedNorm(
                _wide(weights.vector(*norm)),
                shape.num_key_heads,
                self.config.rms_norm_eps,
                settings.gates_first,
            )
            for norm in parts.norms.items()
        ]
        rate = wide["A_log"].exp().neg_()
        return Mamba2(
            shape=shape,
            state_index=self.config.states_before(index),
            in_proj=weights.linear(parts.into),
            factors=None
            if traits.factors is None
            else _spread(traits.factors.projected, shape, rate),
            conv=wide["conv1d.weight"].squeeze(1),
            conv_bias=wide.get("conv1d.bias"),
            rate=rate,
            skip=wide["D"],
            dt_bias=wide["dt_bias"],
            norm=norms[0] if norms else None,
            output=weights.linear(parts.out),
            min_dt=settings.least_step,
            max_dt=settings.most_step,
        )

    def _gemma4(self, index: int, parts: BlockParts) -> Block:
        """A block of Gemma 4: two head sizes, shared keys and values, per-layer embeddings."""
        config, weights = self.config, self.weights
        pre, post, pre_mlp, post_mlp = self._norms(parts)
        attention = self._gemma4_attention(index, parts)
        per_layer = self._per_layer_gate(parts)
        assert parts.mlp is not None
        mlp = read_mlp(weights, parts.mlp)
        return Block(
            branches=(Branch(attention),),
            mlp=mlp,
            pre_norm=pre,
            post_norm=post,
            pre_mlp_norm=pre_mlp,
            post_mlp_norm=post_mlp,
            experts_beside=self._experts_beside(parts),
            per_layer=per_layer,
            scale=weights.named(f"{parts.prefix}.layer_scalar", 1)
            if config.traits.scales_layers
            else None,
        )

    def _gemma4_attention(self, index: int, parts: BlockParts) -> Attention:
        config, eps = self.config, self.config.rms_norm_eps
        found = rows_read(config.layers, index)
        assert found is not None  # every layer attends
        assert parts.qkv is not None
        assert parts.output is not None
        kv_layer, rows = found
        window, owns_kv = config.traits.windows[index], kv_layer == index
        qkv, output = self.weights.linear(parts.qkv), self.weights.linear(parts.output)

        def head_norm(name: str) -> RmsNorm:
            vector = self.weights.vector(f"{parts.prefix}.self_attn.{name}", rows.head_dim)
            return RmsNorm(interleave_rows(vector, rows.head_dim), eps)

        k_width = rows.num_kv_heads * rows.head_dim if owns_kv else 0
        qk_norm = SplitQkNorm(
            head_norm("q_norm"),
            head_norm("k_norm") if owns_kv else None,
            config.num_heads * rows.head_dim,
            k_width,
        )
        ones = torch.ones_like(qk_norm.q_weight, dtype=self.precision.compute)
        return Attention(
            qkv=qkv,
            output=output,
            num_heads=config.num_heads,
            num_kv_heads=rows.num_kv_heads,
            head_dim=rows.head_dim,
            scale=1.0,
            rope=0 if window is None else 1,
            kv_layer=kv_layer,
            window=window,
            qk_norm=qk_norm,
            v_norm=RmsNorm(ones, eps),
            owns_kv=owns_kv,
            values_are_keys=owns_kv and index in config.traits.keys_are_values,
        )

    def _experts_beside(self, parts: BlockParts) -> ExpertsBeside | None:
        experts, hidden = self.config.traits.experts, self.config.hidden_size
        if experts is None or parts.router is None:
            return None
        pre, post_mlp, post = (self.norm(f"{parts.prefix}.{name}", hidden) for name in EXPERT_NORMS)
        scale = self.weights.named(f"{parts.prefix}.router.scale", hidden)
        scales = self.weights.named(f"{parts.prefix}.router.per_expert_scale", experts.count)
        mlps = [read_mlp(self.weights, mlp) for mlp in parts.experts]
        router = self.weights.linear(parts.router)
        return ExpertsBeside(
            pre_norm=pre,
            post_mlp_norm=post_mlp,
            post_norm=post,
            router_norm=RmsNorm(scale * hidden**-0.5, self.config.rms_norm_eps),
            experts=ExpertMlps(experts, router, mlps, scales=scales),
        )

    def _per_layer_gate(self, parts: BlockParts) -> PerLayerGate | None:
        if not parts.mixer:
            return None
        gate, projection = (self.weights.linear(part) for part in parts.mixer)
        norm = self.norm(f"{parts.prefix}.post_per_layer_input_norm", self.config.hidden_size)
        return PerLayerGate(gate, projection, norm)


def _wide(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 or better."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _spread(factors: Sequence[float], shape: StateShape, like: Tensor) -> Tensor:
    """Spread the multipliers of gate, x, B, C and Δ over the rows of the projection to them."""
    inner, width = shape.num_heads * shape.value_dim, shape.num_key_heads * shape.key_dim
    sizes = torch.tensor([inner, inner, width, width, shape.num_heads], device=like.device)
    return torch.tensor(factors, dtype=like.dtype, device=like.device).repeat_interleave(sizes)
