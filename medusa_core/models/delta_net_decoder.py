"""The decoder of Qwen3.5 and Qwen3-Next: gated delta nets, gated attention, MLPs or experts.

Sources: Gated Delta Networks (Yang et al. 2024); Gated Attention (Qiu et al. 2025); Qwen3-Next and
Qwen3.5 (Qwen Team 2025, 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.activation import Active, active_of
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import AnyBlock, Decoder, SequenceRows
from medusa_core.models.experts import ExpertMlps, Mlp, PlainMlp, read_mlp
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.norm import HeadNorm, RmsNorm
from medusa_core.models.parts import BlockParts, block_parts, in_tiles
from medusa_core.models.plain_block import (
    PlainBlock,
    PlainConvolution,
    PlainRecurrence,
    ProjectedRow,
)
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.recurrence import convolve, delta_rule
from medusa_core.models.rope import interleave_rows, rotate
from medusa_core.models.weights import Weights

_L2_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class DeltaNetMixer:
    """Weights of a gated delta net.

    Attributes:
        shape: Its sizes.
        in_proj: Rows of queries and keys (of key heads), values and output gates (of heads).
        gates: Of each head what β is made of, then what the decay is made of.
        conv: Of queries, keys and values; that of the row itself is the last. [channels, width]
        rate: −exp(A_log): how fast each head forgets. [heads], float32 or float64
        dt_bias: [heads], float32 or float64
        norm: Of what each head reads from its state. [value_dim]
        output: The projection behind it.
        tiled: How many key heads and heads, where `output` reads one head of each key head, then
            the next; else None.
    """

    shape: StateShape
    in_proj: QuantLinear
    gates: QuantLinear
    conv: Tensor
    rate: Tensor
    dt_bias: Tensor
    norm: RmsNorm
    output: QuantLinear
    tiled: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class GatedAttention:
    """Weights of attention whose result passes through a gate.

    Attributes:
        qkv: Rows of queries, keys, values and gates.
        qk_norm: Of every query and key head.
        output: The projection behind it.
    """

    qkv: QuantLinear
    qk_norm: HeadNorm
    output: QuantLinear


@dataclass(frozen=True, slots=True)
class SharedExpert:
    """Experts, and an MLP beside them that all rows pass through, as far as its gate is open.

    Attributes:
        experts: Of which each row passes through a few.
        mlp: The one beside them.
        gate: How far it is open. [1, hidden]
    """

    experts: ExpertMlps
    mlp: Mlp | PlainMlp
    gate: QuantLinear

    def __call__(self, x: Tensor, active: Active) -> Tensor:
        """[n, hidden] → [n, hidden]"""
        return self.experts(x, active) + torch.sigmoid(self.gate(x)) * self.mlp(x, active)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (*self.experts.linears, *self.mlp.linears, self.gate)


@dataclass(frozen=True, slots=True)
class DeltaNetBlock:
    """Weights of one block.

    Attributes:
        attention_norm: Before the mixer.
        mixer: What rows take from others.
        mlp_norm: Before the MLP.
        mlp: One, or experts.
    """

    attention_norm: RmsNorm
    mixer: DeltaNetMixer | GatedAttention
    mlp_norm: RmsNorm
    mlp: Mlp | PlainMlp | SharedExpert

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        mixer = self.mixer
        if isinstance(mixer, GatedAttention):
            return (mixer.qkv, mixer.output, *self.mlp.linears)
        return (mixer.in_proj, mixer.gates, mixer.output, *self.mlp.linears)


class DeltaNetDecoder(Decoder):
    """A decoder whose layers are gated delta nets and gated attention.

    Attributes:
        own: Weights of its blocks.
    """

    def __init__(self, config: ModelConfig, precision: Precision, weights: Weights) -> None:
        self.own: list[DeltaNetBlock] = []
        self._wide = precision.scores
        super().__init__(config, precision, weights)
        self._active = active_of(config.traits)

    def read_blocks(self, weights: Weights) -> Sequence[AnyBlock]:
        self.own = [self._read(weights, index) for index in range(self.config.num_layers)]
        return self.own

    @staticmethod
    def _mixing(mixer: DeltaNetMixer | GatedAttention) -> dict[str, QuantLinear]:
        if isinstance(mixer, GatedAttention):
            return {"qkv": mixer.qkv}
        return {"qkv": mixer.in_proj, "gates": mixer.gates}

    def plain_block(self, index: int) -> PlainBlock:
        block, config = self.own[index], self.config
        mixer, mlp = block.mixer, block.mlp
        assert isinstance(mlp, Mlp)  # with experts nobody asks
        net = mixer if isinstance(mixer, DeltaNetMixer) else None
        norms = mixer.qk_norm.weight if isinstance(mixer, GatedAttention) else None
        return PlainBlock(
            linears={
                **self._mixing(mixer),
                "output": mixer.output,
                "gate_up": mlp.gate_up,
                "down": mlp.down,
            },
            norms=(block.attention_norm, None, block.mlp_norm, None),
            q_norm=None if norms is None else norms[0],
            k_norm=None if norms is None else norms[config.num_heads],
            table=0,
            query_scale=config.head_dim**-0.5,
            window=None,
            attention_cap=None,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            inner=config.intermediate_size,
            is_gated=net is None,
            recurrence=None if net is None else _plain(net, config.states_before(index)),
        )

    def block(
        self,
        index: int,
        x: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        block = self.own[index]
        normed = block.attention_norm(x)
        if isinstance(block.mixer, GatedAttention):
            mixed = self._attended(index, block.mixer, normed, rotations, sequences, only_row)
        else:
            mixed = self._recalled(index, block.mixer, normed, sequences, only_row)
        if only_row is not None:
            x = x[only_row : only_row + 1]
        x = block.mixer.output.plus(mixed.to(x.dtype), x)
        return x + block.mlp(block.mlp_norm(x), self._active)

    def _attended(
        self,
        index: int,
        weights: GatedAttention,
        normed: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None,
    ) -> Tensor:
        """What rows take from others by attention. [n, q heads · head_dim], or one row"""
        config = self.config
        inner = config.num_heads * config.head_dim
        projected = weights.qkv(normed)
        qkv, gate = projected[:, :-inner], projected[:, -inner:]
        mixed = self.mixed(index, rotate(weights.qk_norm(qkv), rotations), sequences, only_row)
        if only_row is not None:
            gate = gate[only_row : only_row + 1]
        return mixed * torch.sigmoid(gate.to(mixed.dtype))

    def _recalled(
        self,
        index: int,
        weights: DeltaNetMixer,
        normed: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None,
    ) -> Tensor:
        """What rows read from a state. [n, heads · value_dim], or one row"""
        shape = weights.shape
        projected, gates = weights.in_proj(normed), weights.gates(normed).to(self._wide)
        inputs, z = projected[:, : shape.channels], projected[:, shape.channels :]
        beta, dt = gates.chunk(2, dim=-1)
        beta, decays = torch.sigmoid(beta), weights.rate * F.softplus(dt + weights.dt_bias)
        found = [
            self._recalled_of(
                index, weights, inputs[its.rows], beta[its.rows], decays[its.rows], its
            )
            for its in sequences
        ]
        read = found[0] if len(found) == 1 else torch.cat(found)
        if only_row is not None:
            read, z = read[only_row : only_row + 1], z[only_row : only_row + 1]
        normed_heads = weights.norm(read.reshape(-1, shape.value_dim)).to(self._wide)
        gated = normed_heads.view(len(read), -1) * F.silu(z.to(self._wide))
        return gated if weights.tiled is None else in_tiles(gated, weights.tiled)

    def _recalled_of(
        self,
        index: int,
        weights: DeltaNetMixer,
        inputs: Tensor,
        beta: Tensor,
        decays: Tensor,
        its: SequenceRows,
    ) -> Tensor:
        """Of one sequence. [n, heads, value_dim]"""
        shape, tail = weights.shape, its.kv.state(index).tail
        mixed = F.silu(convolve(inputs.to(self._wide), tail, weights.conv, None, its.tree))
        keys = shape.num_key_heads * shape.key_dim
        q, k, v = torch.split(mixed, [keys, keys, shape.num_heads * shape.value_dim], dim=-1)
        q, k = (_unit(some.view(len(some), -1, shape.key_dim)) for some in (q, k))
        v = v.view(len(v), -1, shape.value_dim)
        return delta_rule(q * shape.key_dim**-0.5, k, v, beta, decays, inputs, its, index)

    def _read(self, weights: Weights, index: int) -> DeltaNetBlock:
        parts, config = block_parts(self.config, index), self.config
        shape, hidden = config.layers[index], config.hidden_size
        return DeltaNetBlock(
            attention_norm=self.read_norm(weights, f"{parts.prefix}.input_layernorm", hidden),
            mixer=self._read_delta_net(weights, parts, shape)
            if isinstance(shape, StateShape)
            else self._read_attention(weights, parts),
            mlp_norm=self.read_norm(weights, f"{parts.prefix}.post_attention_layernorm", hidden),
            mlp=self._read_mlp(weights, parts),
        )

    def _read_delta_net(
        self, weights: Weights, parts: BlockParts, shape: StateShape
    ) -> DeltaNetMixer:
        assert parts.output is not None
        in_proj, gates, *_ = parts.mixer
        of, heads = f"{parts.prefix}.linear_attn", shape.num_heads
        conv = weights.named(f"{of}.conv1d.weight", shape.channels, 1, shape.conv_width)
        norm = weights.vector(f"{of}.norm", shape.value_dim)  # without the one that others add
        return DeltaNetMixer(
            shape=shape,
            in_proj=weights.linear(in_proj),
            gates=weights.linear(gates),
            conv=conv.squeeze(1).to(self._wide),
            rate=-weights.named(f"{of}.A_log", heads).to(self._wide).exp(),
            dt_bias=weights.named(f"{of}.dt_bias", heads).to(self._wide),
            norm=RmsNorm(norm, self.config.rms_norm_eps),
            output=weights.linear(parts.output),
            tiled=parts.output.tiled,
        )

    def _read_attention(self, weights: Weights, parts: BlockParts) -> GatedAttention:
        assert parts.qkv is not None
        assert parts.output is not None
        config, attention = self.config, f"{parts.prefix}.self_attn"
        q, k = (
            interleave_rows(
                weights.vector(f"{attention}.{name}", config.head_dim) + config.traits.norm_offset,
                *config.head_rows,
            )
            for name in ("q_norm", "k_norm")
        )
        heads = torch.cat([q.expand(config.num_heads, -1), k.expand(config.num_kv_heads, -1)])
        return GatedAttention(
            qkv=weights.linear(parts.qkv),
            qk_norm=HeadNorm(heads, config.rms_norm_eps),
            output=weights.linear(parts.output),
        )

    def _read_mlp(self, weights: Weights, parts: BlockParts) -> Mlp | PlainMlp | SharedExpert:
        experts = self.config.traits.experts
        assert parts.mlp is not None
        mlp = read_mlp(weights, parts.mlp)
        if experts is None or parts.router is None:
            return mlp
        router, gate = weights.linear(parts.router), weights.linear(parts.mixer[-1])
        several = ExpertMlps(experts, router, [read_mlp(weights, one) for one in parts.experts])
        return SharedExpert(several, mlp, gate)


def _plain(net: DeltaNetMixer, place: int) -> PlainRecurrence:
    """A delta net as plain data: the `place`-th layer with a state."""
    shape = net.shape
    keys, inner = shape.num_key_heads * shape.key_dim, shape.num_heads * shape.value_dim
    row = ProjectedRow(
        width=shape.channels + inner,
        inputs=0,
        gate=shape.channels,
        queries=0,
        keys=keys,
        values=2 * keys,
        steps=shape.num_heads,
        steps_width=2 * shape.num_heads,
    )
    return PlainRecurrence(
        shape,
        place,
        row,
        PlainConvolution(net.conv, None),
        rate=net.rate,
        step_bias=net.dt_bias,
        skip=None,
        norm=net.norm.weight.repeat(shape.num_heads),
        together=shape.value_dim,
        eps=net.norm.eps,
        tiles=0 if net.tiled is None else net.tiled[0],
    )


def _unit(heads: Tensor) -> Tensor:
    """Vectors of length one. [n, heads, key_dim]"""
    return heads * torch.rsqrt(heads.square().sum(-1, keepdim=True) + _L2_EPS)
