"""A Mamba-2 layer over the rows of a pass.

Source: Transformers are SSMs (Dao and Gu 2024), section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.decoder import SequenceRows
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.mamba import MambaParts
from medusa_core.models.plain_block import PlainConvolution, PlainRecurrence, ProjectedRow
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.recurrence import convolve, state_space
from medusa_core.models.traits import Mamba
from medusa_core.models.weights import Weights


class GatedNorm:
    """`RmsNorm` of each group on its own, and a gate before or behind it."""

    def __init__(self, weight: Tensor, groups: int, eps: float, gates_first: bool) -> None:
        self.weight = weight
        self.eps = eps
        self._groups = groups
        self._eps = torch.full((1,), eps, dtype=weight.dtype, device=weight.device)
        self._gates_first = gates_first

    def __call__(self, x: Tensor, gate: Tensor) -> Tensor:
        """[n, inner] both, in the weight's dtype."""
        x = x * gate if self._gates_first else x
        grouped = x.view(len(x), self._groups, -1)
        scale = grouped.square().mean(dim=-1, keepdim=True).add_(self._eps).rsqrt_()
        normed = (grouped * scale).view(x.shape).mul_(self.weight)
        return normed if self._gates_first else normed.mul_(gate)


@dataclass(frozen=True, slots=True)
class MambaMixer:
    """Weights of a Mamba-2 layer; those that aren't linear are float32 or float64.

    Attributes:
        shape: Sizes of its state.
        traits: What else it has.
        into: To gate, x, B, C and Δ.
        factors: What these are multiplied with, or None. [rows of `into`]
        taps: Of the convolution. [channels, width]
        conv_bias: [channels], or None.
        rates: A, which is below 0. [heads]
        skip: D. [heads, 1]
        step_bias: Of Δ. [heads]
        norm: None where there is only a gate.
        out: Back to the model's width.
    """

    shape: StateShape
    traits: Mamba
    into: QuantLinear
    factors: Tensor | None
    taps: Tensor
    conv_bias: Tensor | None
    rates: Tensor
    skip: Tensor
    step_bias: Tensor
    norm: GatedNorm | None
    out: QuantLinear

    @classmethod
    def read(
        cls,
        weights: Weights,
        parts: MambaParts,
        shape: StateShape,
        traits: Mamba,
        eps: float,
        factors: Sequence[float] = (),
    ) -> MambaMixer:
        """Read a layer.

        Args:
            weights: Gives its parts.
            parts: Which.
            shape: Sizes of its state.
            traits: What else it has.
            eps: Of its norm.
            factors: Of gate, x, B, C and Δ; empty for none.
        """
        wide = {
            name.rpartition(f"{parts.prefix}.")[2]: _wide(weights.named(name, *size))
            for name, size in parts.more.items()
        }
        norms = [
            GatedNorm(_wide(weights.vector(*norm)), shape.num_key_heads, eps, traits.gates_first)
            for norm in parts.norms.items()
        ]
        rates = wide["A_log"].exp().neg_()
        return cls(
            shape=shape,
            traits=traits,
            into=weights.linear(parts.into),
            factors=_spread(factors, shape, rates) if factors else None,
            taps=wide["conv1d.weight"].squeeze(1),
            conv_bias=wide.get("conv1d.bias"),
            rates=rates,
            skip=wide["D"].unsqueeze(-1),
            step_bias=wide["dt_bias"],
            norm=norms[0] if norms else None,
            out=weights.linear(parts.out),
        )

    def plain(self, place: int) -> PlainRecurrence:
        """The layer as plain data: the `place`-th with a state."""
        shape, traits = self.shape, self.traits
        inner, width = shape.num_heads * shape.value_dim, shape.num_key_heads * shape.key_dim
        row = ProjectedRow(
            width=inner + shape.channels + shape.num_heads,
            inputs=inner,
            gate=0,
            queries=inner + width,
            keys=inner,
            values=0,
            steps=inner + shape.channels,
            steps_width=inner + shape.channels + shape.num_heads,
        )
        return PlainRecurrence(
            shape,
            place,
            row,
            PlainConvolution(self.taps, self.conv_bias),
            rate=self.rates,
            step_bias=self.step_bias,
            skip=self.skip.squeeze(-1),
            norm=None if self.norm is None else self.norm.weight,
            together=inner // shape.num_key_heads,
            eps=0.0 if self.norm is None else self.norm.eps,
            factors=self.factors,
            gates_first=traits.gates_first,
            least_step=traits.least_step,
            most_step=traits.most_step,
        )

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.into, self.out)

    def __call__(
        self, layer: int, x: Tensor, sequences: Sequence[SequenceRows], only_row: int | None
    ) -> Tensor:
        """What a layer makes of rows.

        Args:
            layer: Which layer of the caches.
            x: Normalised. [n, hidden]
            sequences: Whose the rows are, in their order.
            only_row: The one row that goes on, or None for all.

        Returns:
            [n, hidden], or [1, hidden]
        """
        projected = self.into(x).to(self.rates.dtype)
        if self.factors is not None:
            projected = projected * self.factors
        shape = self.shape
        sizes = [shape.num_heads * shape.value_dim, shape.channels, shape.num_heads]
        gate, inputs, steps = torch.split(projected, sizes, dim=-1)
        steps = F.softplus(steps + self.step_bias)
        steps = steps.clamp(self.traits.least_step, self.traits.most_step)
        found = [self._mixed(layer, inputs[its.rows], steps[its.rows], its) for its in sequences]
        mixed = found[0] if len(found) == 1 else torch.cat(found)
        if only_row is not None:
            mixed, gate = (part[only_row : only_row + 1] for part in (mixed, gate))
        gate = F.silu(gate)
        normed = mixed * gate if self.norm is None else self.norm(mixed, gate)
        return self.out(normed.to(x.dtype))

    def _mixed(self, layer: int, inputs: Tensor, steps: Tensor, its: SequenceRows) -> Tensor:
        """What each row of one sequence takes from the rows before it. [n, inner]"""
        shape, count = self.shape, len(inputs)
        inner, width = shape.num_heads * shape.value_dim, shape.num_key_heads * shape.key_dim
        tail = its.kv.state(layer).tail
        mixed = F.silu(convolve(inputs, tail, self.taps, self.conv_bias, its.tree))
        x, b, c = torch.split(mixed, [inner, width, width], dim=-1)
        x = x.view(count, shape.num_heads, shape.value_dim)
        b, c = (part.view(count, shape.num_key_heads, shape.key_dim) for part in (b, c))
        written, decays = x * steps.unsqueeze(-1), steps * self.rates
        read = state_space(c, b, written, decays, inputs, its, layer)
        return (read + x * self.skip).reshape(count, inner)


def _wide(tensor: Tensor) -> Tensor:
    """A tensor in float32 or better."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _spread(factors: Sequence[float], shape: StateShape, like: Tensor) -> Tensor:
    """Factors of gate, x, B, C and Δ, as one for each row of the projection to them."""
    inner, width = shape.num_heads * shape.value_dim, shape.num_key_heads * shape.key_dim
    sizes = torch.tensor([inner, inner, width, width, shape.num_heads], device=like.device)
    return torch.tensor(factors, dtype=like.dtype, device=like.device).repeat_interleave(sizes)
