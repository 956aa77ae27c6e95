"""One block of Gemma 4, in torch's operations: of the model itself, and of what drafts for it.

Sources: transformers' `Gemma4TextDecoderLayer`; llama.cpp's `gemma4.cpp` (read, not copied).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.activation import Active
from medusa_core.models.config import ModelConfig, RopeConfig
from medusa_core.models.experts import ExpertMlps, Mlp, PlainMlp
from medusa_core.models.layer_shapes import RowShape
from medusa_core.models.norm import RmsNorm
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import rotate_heads


@dataclass(frozen=True, slots=True)
class PerLayerGate:
    """The way in for the per-layer embeddings of one layer.

    Attributes:
        gate: Of a row; what it opens is multiplied with the row's vector for the layer.
        projection: Of the product.
        norm: Of what the projection makes, before it is added.
    """

    gate: QuantLinear
    projection: QuantLinear
    norm: RmsNorm

    def __call__(self, x: Tensor, vectors: Tensor) -> Tensor:
        """[n, hidden], [n, width] → [n, hidden]"""
        opened = F.gelu(self.gate(x), approximate="tanh")
        return x + self.norm(self.projection(opened * vectors))


@dataclass(frozen=True, slots=True)
class ExpertsBeside:
    """Experts beside the MLP of one layer; their halves are normalised apart, then added.

    Attributes:
        norms: Before the experts, behind the MLP, behind the experts.
        router_norm: Before the router, which reads what enters both halves.
        mlps: The experts.
    """

    norms: tuple[RmsNorm, RmsNorm, RmsNorm]
    router_norm: RmsNorm
    mlps: ExpertMlps

    def __call__(self, x: Tensor, beside: Tensor, active: Active) -> Tensor:
        """What enters, and what the MLP makes of it. [n, hidden] each → [n, hidden]"""
        before, behind_mlp, behind = self.norms
        return behind_mlp(beside) + behind(self.mlps(before(x), active, self.router_norm(x)))


@dataclass(frozen=True, slots=True)
class Gemma4Block:
    """Weights of one block.

    Attributes:
        norms: Before attention, behind it, before the MLP, behind it.
        owner: The layer whose keys and values it reads: itself, or an earlier one.
        rows: What those are.
        window: Tokens that attention looks back on; None for all.
        q_norm: Of each query head.
        k_norm: Of each key head; None where it reads another layer's.
        keys_are_values: There is no projection to values: they are the keys', not yet normalised.
        qkv: The fused projections to queries, and where it is the owner to keys and values.
        output: The projection behind attention.
        mlp: What follows attention.
        experts: They stand beside it; None for none.
        per_layer: The way in for per-layer embeddings, or None.
        scale: What leaves the block is multiplied with it. [1]
    """

    norms: tuple[RmsNorm, RmsNorm, RmsNorm, RmsNorm]
    owner: int
    rows: RowShape
    window: int | None
    q_norm: RmsNorm
    k_norm: RmsNorm | None
    keys_are_values: bool
    qkv: QuantLinear
    output: QuantLinear
    mlp: Mlp | PlainMlp
    experts: ExpertsBeside | None
    per_layer: PerLayerGate | None
    scale: Tensor

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """All its linear layers."""
        experts = () if self.experts is None else self.experts.mlps.linears
        gate = self.per_layer
        per_layer = () if gate is None else (gate.gate, gate.projection)
        return (self.qkv, self.output, *experts, *per_layer, *self.mlp.linears)

    def projected(self, x: Tensor) -> Tensor:
        """Queries, and keys and values if they are its own. [n, hidden] → [n, any]"""
        return self.qkv(self.norms[0](x))

    def queries(self, x: Tensor, turns: Tensor) -> Tensor:
        """Those of a block that reads other layers' keys and values.

        Args:
            x: [n, hidden]
            turns: Of every row, from `Rope.turns`. [n, head_dim / 2], complex

        Returns:
            [n, q heads, head_dim]
        """
        heads = self.projected(x).view(len(x), -1, self.rows.head_dim)
        return rotate_heads(normed_heads(self.q_norm, heads), turns)

    def behind(self, x: Tensor, mixed: Tensor, active: Active) -> Tensor:
        """What the MLP leaves; per-layer embeddings and the scale come behind it.

        Args:
            x: What entered the block. [n, hidden]
            mixed: What attention gave. [n, q heads · head_dim]
            active: Of the MLP.

        Returns:
            [n, hidden]
        """
        _, behind, before_mlp, behind_mlp = self.norms
        x = x + behind(self.output(mixed.to(x.dtype)))
        made = self.mlp(before_mlp(x), active)
        if self.experts is not None:
            made = self.experts(x, made, active)
        return x + behind_mlp(made)


def with_window(config: ModelConfig) -> ModelConfig:
    """The configuration as layers with a window have it."""
    local = [
        shape
        for shape, window in zip(config.layers, config.traits.windows, strict=True)
        if window is not None and isinstance(shape, RowShape)
    ]
    rope = RopeConfig(theta=config.traits.local_theta or config.rope.theta)
    size = local[0].head_dim if local else config.head_dim
    return replace(config, rope=rope, head_dim=size)


def normed_heads(norm: RmsNorm, heads: Tensor) -> Tensor:
    """Each head on its own. [n, heads, head_dim]"""
    return norm(heads.reshape(-1, heads.shape[-1])).view(heads.shape)
