"""The decoder of families with Mamba-2 layers: among those with attention, or beside it.

Source: Granite 4 (IBM 2025), Nemotron-H (NVIDIA 2025), Falcon-H1 (TII 2025), Bamba (IBM 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from medusa_core.models.activation import Active
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import AnyBlock, Decoder, SequenceRows
from medusa_core.models.experts import ExpertMlps, Mlp, PlainMlp, read_mlps
from medusa_core.models.layer_shapes import recurrent_part
from medusa_core.models.mamba import mamba_parts
from medusa_core.models.mamba_mixer import MambaMixer
from medusa_core.models.norm import RmsNorm
from medusa_core.models.parts import block_parts
from medusa_core.models.plain_block import PlainBlock
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import rotate
from medusa_core.models.traits import Factors
from medusa_core.models.traits_decoder import TraitsDecoder
from medusa_core.models.weights import Weights


@dataclass(frozen=True, slots=True)
class MambaBlock:
    """Weights of one block; what it doesn't have is None.

    Attributes:
        norm: Before what mixes rows.
        qkv: The fused projections.
        output: The projection behind attention.
        mamba: What mixes rows instead of attention, or beside it.
        mlp_norm: Before the MLP.
        mlp: One MLP, or experts.
    """

    norm: RmsNorm | None
    qkv: QuantLinear | None
    output: QuantLinear | None
    mamba: MambaMixer | None
    mlp_norm: RmsNorm | None
    mlp: Mlp | PlainMlp | ExpertMlps | None

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        attention = (one for one in (self.qkv, self.output) if one is not None)
        others = (one for one in (self.mamba, self.mlp) if one is not None)
        return (*attention, *(linear for one in others for linear in one.linears))


class MambaDecoder(TraitsDecoder):
    """A decoder whose blocks may have Mamba-2 layers."""

    def __init__(self, config: ModelConfig, precision: Precision, weights: Weights) -> None:
        self._mixed_blocks: list[MambaBlock] = []
        self._factors_of_blocks = config.traits.factors or Factors()
        super().__init__(config, precision, weights)
        if self._factors_of_blocks.gate != 1:
            self._active = partial(_scaled, self._active, self._factors_of_blocks.gate)

    def read_blocks(self, weights: Weights) -> Sequence[AnyBlock]:
        count = self.config.num_layers
        self._mixed_blocks = [self._read_block(weights, index) for index in range(count)]
        return self._mixed_blocks

    def block(
        self,
        index: int,
        x: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        weights = self._mixed_blocks[index]
        rest = x if only_row is None else x[only_row : only_row + 1]
        if weights.norm is not None:
            mixed = self._mixes(index, weights.norm(x), sequences, only_row)
            rest = rest + mixed * self.config.traits.residual_scale
        if weights.mlp is None or weights.mlp_norm is None:
            return rest
        made = weights.mlp(weights.mlp_norm(rest), self._active)
        scale = self._factors_of_blocks.down * self.config.traits.residual_scale
        return rest + made * scale

    def plain_block(self, index: int) -> PlainBlock:
        block, factors = self._mixed_blocks[index], self._factors_of_blocks
        if block.mamba is None or block.qkv is None:
            alone = self._plain(index, block)
            return replace(alone, mlp_scale=factors.down)
        attention = self._plain(index, replace(block, mamba=None))
        beside = self._plain(index, replace(block, qkv=None, output=None, mlp=None))
        return replace(
            attention,
            norms=(_grown(block.norm, factors.attention_in), *attention.norms[1:]),
            mixer_scale=factors.attention_out,
            mlp_scale=factors.down,
            beside=replace(
                beside,
                norms=(_grown(block.norm, factors.mamba_in), None, None, None),
                mixer_scale=factors.mamba_out,
            ),
        )

    def _plain(self, index: int, block: MambaBlock) -> PlainBlock:
        """A block with attention or a Mamba layer, without factors."""
        config, mamba, mlp = self.config, block.mamba, _for_all_rows(block)
        return PlainBlock(
            linears=_by_name(block),
            norms=(block.norm, None, block.mlp_norm, None),
            q_norm=None,
            k_norm=None,
            table=None if index in config.traits.unturned else 0,
            query_scale=config.traits.attention_scale or config.head_dim**-0.5,
            window=None,
            attention_cap=None,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            inner=0 if mlp is None else config.intermediate_size,
            experts=block.mlp if isinstance(block.mlp, ExpertMlps) else None,
            has_gate=not isinstance(mlp, PlainMlp),
            recurrence=None if mamba is None else mamba.plain(config.states_before(index)),
        )

    def attend(
        self, index: int, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> Tensor:
        return Decoder.attend(self, index, q, keys, values, mask)

    def _mixes(
        self, index: int, x: Tensor, sequences: Sequence[SequenceRows], only_row: int | None
    ) -> Tensor:
        """What attention, a Mamba layer or both make of normalised rows. [n, hidden]"""
        weights, factors = self._mixed_blocks[index], self._factors_of_blocks
        made: list[Tensor] = []
        if weights.mamba is not None:
            mixed = weights.mamba(index, _times(x, factors.mamba_in), sequences, only_row)
            made.append(_times(mixed, factors.mamba_out))
        if weights.qkv is not None and weights.output is not None:
            now = self._pass
            assert now is not None  # of `rotations`
            qkv = weights.qkv(_times(x, factors.attention_in))
            seen = self.mixed(index, rotate(qkv, self._factors(index, now)), sequences, only_row)
            made.append(_times(weights.output(seen.to(x.dtype)), factors.attention_out))
        return made[0] if len(made) == 1 else torch.add(*made)

    def _read_block(self, weights: Weights, index: int) -> MambaBlock:
        config, parts = self.config, block_parts(self.config, index)
        mamba = mamba_parts(config, index)
        own = {} if mamba is None else mamba.norms
        norms = [
            self.read_norm(weights, name, size)
            for name, size in parts.vectors.items()
            if name not in own
        ]
        has_mlp = parts.mlp is not None or parts.router is not None
        mixes = mamba is not None or parts.qkv is not None
        return MambaBlock(
            norm=norms[0] if mixes else None,
            qkv=None if parts.qkv is None else weights.linear(parts.qkv),
            output=None if parts.output is None else weights.linear(parts.output),
            mamba=self._read_mamba(weights, index),
            mlp_norm=norms[-1] if has_mlp else None,
            mlp=read_mlps(weights, parts, config.traits.experts) if has_mlp else None,
        )

    def _read_mamba(self, weights: Weights, index: int) -> MambaMixer | None:
        config = self.config
        parts, traits = mamba_parts(config, index), config.traits.mamba
        shape = recurrent_part(config.layers[index])
        if parts is None or traits is None or shape is None:
            return None
        factors = () if config.traits.factors is None else config.traits.factors.projected
        return MambaMixer.read(weights, parts, shape, traits, config.rms_norm_eps, factors)


def _for_all_rows(block: MambaBlock) -> Mlp | PlainMlp | None:
    """The MLP that all rows pass through, in a block with experts or without."""
    return block.mlp.shared if isinstance(block.mlp, ExpertMlps) else block.mlp


def _by_name(block: MambaBlock) -> dict[str, QuantLinear]:
    """The linear layers of a block, by what the compiled step calls them."""
    mamba, mlp = block.mamba, _for_all_rows(block)
    found = {
        "qkv": block.qkv if mamba is None else mamba.into,
        "output": block.output if mamba is None else mamba.out,
        "gate_up": mlp.gate_up if isinstance(mlp, Mlp) else None,
        "down": None if mlp is None else mlp.linears[-1],
    }
    if isinstance(mlp, PlainMlp):
        found["gate_up"] = mlp.up
    return {name: linear for name, linear in found.items() if linear is not None}


def _grown(norm: RmsNorm | None, factor: float) -> RmsNorm:
    """A norm whose weight is so many times as large."""
    assert norm is not None  # before what mixes rows
    return RmsNorm(norm.weight * factor, norm.eps)


def _times(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1 else x * factor


def _scaled(active: Active, factor: float, gate: Tensor, up: Tensor) -> Tensor:
    return active(gate * factor, up)
