"""The decoder of LFM2: a block convolves or attends, and passes through one MLP or a few experts.

A short convolution (LFM2 technical report, Liquid AI 2025, section 2): (B, C, x) = in_proj(h);
y = C · conv(B · x), each channel by itself over the last few inputs of a row's path; out_proj(y).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.activation import active_of
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import AnyBlock, Decoder, SequenceRows
from medusa_core.models.experts import ExpertMlps, Mlp, PlainMlp, read_mlps
from medusa_core.models.norm import HeadNorm, RmsNorm
from medusa_core.models.parts import BlockParts, block_parts
from medusa_core.models.plain_block import PlainBlock, PlainConvolution
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.recurrence import short_convolution
from medusa_core.models.rope import interleave_rows, rotate
from medusa_core.models.weights import Weights


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """Weights of a convolution.

    Attributes:
        in_proj: To B, C and x.
        weight: That of the row itself is the last. [hidden, width]
        bias: [hidden], or None.
    """

    in_proj: QuantLinear
    weight: Tensor
    bias: Tensor | None


@dataclass(frozen=True, slots=True)
class NormedAttention:
    """Weights of attention whose heads are normalised."""

    qkv: QuantLinear
    norm: HeadNorm


@dataclass(frozen=True, slots=True)
class Lfm2Block:
    """Weights of one block."""

    operator_norm: RmsNorm
    operator: ShortConvolution | NormedAttention
    output: QuantLinear
    ffn_norm: RmsNorm
    mlp: Mlp | PlainMlp | ExpertMlps

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        operator = self.operator
        first = operator.qkv if isinstance(operator, NormedAttention) else operator.in_proj
        return (first, self.output, *self.mlp.linears)


class Lfm2Decoder(Decoder):
    """LFM2, with experts or without."""

    def __init__(self, config: ModelConfig, precision: Precision, weights: Weights) -> None:
        self._own: list[Lfm2Block] = []
        super().__init__(config, precision, weights)
        self._active = active_of(config.traits)

    def read_blocks(self, weights: Weights) -> Sequence[AnyBlock]:
        self._own = [self._read(weights, index) for index in range(self.config.num_layers)]
        return self._own

    def block(
        self,
        index: int,
        x: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        weights = self._own[index]
        normed, operator = weights.operator_norm(x), weights.operator
        if isinstance(operator, NormedAttention):
            turned = rotate(operator.norm(operator.qkv(normed)), rotations)
            mixed = self.mixed(index, turned, sequences, only_row)
        else:
            mixed = _convolved(index, operator, normed, sequences)
            mixed = mixed if only_row is None else mixed[only_row : only_row + 1]
        if only_row is not None:
            x = x[only_row : only_row + 1]
        x = weights.output.plus(mixed.to(x.dtype), x)
        return x + weights.mlp(weights.ffn_norm(x), self._active)

    def plain_block(self, index: int) -> PlainBlock:
        block, config = self._own[index], self.config
        assert isinstance(block.mlp, Mlp)  # experts aren't compiled
        operator, q_norm, k_norm, convolution = block.operator, None, None, None
        if isinstance(operator, NormedAttention):
            first, weight = operator.qkv, operator.norm.weight
            q_norm, k_norm = weight[0], weight[config.num_heads]
        else:
            first = operator.in_proj
            convolution = PlainConvolution(operator.weight, operator.bias)
        return PlainBlock(
            linears={
                "qkv": first,
                "output": block.output,
                "gate_up": block.mlp.gate_up,
                "down": block.mlp.down,
            },
            norms=(block.operator_norm, None, block.ffn_norm, None),
            q_norm=q_norm,
            k_norm=k_norm,
            table=0,
            query_scale=config.head_dim**-0.5,
            window=None,
            attention_cap=None,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            inner=config.intermediate_size,
            convolution=convolution,
        )

    def _read(self, weights: Weights, index: int) -> Lfm2Block:
        parts, hidden = block_parts(self.config, index), self.config.hidden_size
        assert parts.output is not None
        operator_norm = self.read_norm(weights, f"{parts.prefix}.operator_norm", hidden)
        attends = parts.qkv is not None
        operator = self._read_attention(weights, parts) if attends else _read_conv(weights, parts)
        return Lfm2Block(
            operator_norm,
            operator,
            weights.linear(parts.output),
            self.read_norm(weights, f"{parts.prefix}.ffn_norm", hidden),
            read_mlps(weights, parts, self.config.traits.experts),
        )

    def _read_attention(self, weights: Weights, parts: BlockParts) -> NormedAttention:
        assert parts.qkv is not None
        config, attention = self.config, f"{parts.prefix}.self_attn"
        q, k = (
            interleave_rows(
                weights.vector(f"{attention}.{name}", config.head_dim), *config.head_rows
            )
            for name in ("q_layernorm", "k_layernorm")
        )
        weight = torch.cat([q.expand(config.num_heads, -1), k.expand(config.num_kv_heads, -1)])
        norm = HeadNorm(weight, config.rms_norm_eps)
        return NormedAttention(weights.linear(parts.qkv), norm)


def _read_conv(weights: Weights, parts: BlockParts) -> ShortConvolution:
    (in_proj,) = parts.mixer
    conv = f"{parts.prefix}.conv.conv"
    shape, bias = parts.more[f"{conv}.weight"], f"{conv}.bias"
    weight = weights.named(f"{conv}.weight", *shape).squeeze(1)
    has_bias = bias in parts.more
    return ShortConvolution(
        weights.linear(in_proj),
        weight,
        weights.named(bias, *parts.more[bias]) if has_bias else None,
    )


def _convolved(
    index: int, weights: ShortConvolution, x: Tensor, sequences: Sequence[SequenceRows]
) -> Tensor:
    """What the rows of all sequences become. [n, hidden] → [n, hidden]"""
    before, behind, inner = weights.in_proj(x).chunk(3, dim=-1)
    inputs = before * inner
    made = [
        short_convolution(inputs[its.rows], weights.weight, weights.bias, its, index)
        for its in sequences
    ]
    return behind * (made[0] if len(made) == 1 else torch.cat(made))
