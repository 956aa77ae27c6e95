"""MLPs of which each row passes through a few: rows are grouped by expert, each is read once.

Sources: Shazeer et al. 2017, "Outrageously Large Neural Networks"; of Qwen 3 (Qwen Team 2025) the
order: shares of all experts, of these the largest, which may be made to add up to one; of DeepSeek
V3 (DeepSeek-AI 2024, section 2.1.2) shares by a sigmoid, and a bias that only chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.activation import Active
from medusa_core.models.parts import BlockParts, MlpParts
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.traits import Experts
from medusa_core.models.weights import Weights

SUM_EPS = 1e-6  # is added to a sum of shares by a sigmoid, which may all be near zero


@dataclass(frozen=True, slots=True)
class Mlp:
    """An MLP.

    Attributes:
        gate_up: Its fused projections.
        down: Its last one.
        width: Numbers between the two.
    """

    gate_up: QuantLinear
    down: QuantLinear
    width: int

    def __call__(self, x: Tensor, active: Active) -> Tensor:
        """[n, hidden] → [n, hidden]"""
        return self.down(self._inner(x, active))

    def plus(self, x: Tensor, active: Active, residual: Tensor) -> Tensor:
        """Add its output to the residual in one product. [n, hidden] each → [n, hidden]"""
        return self.down.plus(self._inner(x, active), residual)

    def _inner(self, x: Tensor, active: Active) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return active(gate, up)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.gate_up, self.down)


@dataclass(frozen=True, slots=True)
class PlainMlp:
    """An MLP without a gate.

    Attributes:
        up: Its first projection.
        down: Its last one.
        width: Numbers between the two.
    """

    up: QuantLinear
    down: QuantLinear
    width: int

    def __call__(self, x: Tensor, active: Active) -> Tensor:
        """[n, hidden] → [n, hidden]"""
        made = self.up(x)
        return self.down(active(made, made))

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.up, self.down)


class ExpertMlps:
    """The experts of a block, their router, and the MLP that all rows pass through beside them.

    Attributes:
        traits: How many there are, and how a row's are chosen.
        router: Gives each expert a score.
        mlps: The experts.
        shared: The shared expert, which all rows pass through, or None.
        shared_gate: Projection whose sigmoid multiplies the shared expert's output, or None.
        bias: What is added to shares where experts are chosen, or None. [experts]
        scales: What the share of each is multiplied with at last, or None. [experts]
        linears: All linear layers.
    """

    def __init__(
        self,
        experts: Experts,
        router: QuantLinear,
        mlps: Sequence[Mlp | PlainMlp],
        shared: Mlp | PlainMlp | None = None,
        bias: Tensor | None = None,
        scales: Tensor | None = None,
        shared_gate: QuantLinear | None = None,
    ) -> None:
        """Take the parts.

        Args:
            experts: How they are chosen.
            router: Gives their scores.
            mlps: They.
            shared: What all rows pass through beside them; None for nothing.
            bias: What is added to shares where experts are chosen. [experts]
            scales: What the share of each is multiplied with at last; None for nothing. [experts]
            shared_gate: See above.
        """
        self.traits = experts
        self.router = router
        self.bias = bias
        self.mlps = tuple(mlps)
        self.shared = shared
        self.scales = scales
        self.shared_gate = shared_gate
        gate = () if shared_gate is None else (shared_gate,)
        beside = () if shared is None else shared.linears
        self.linears = (router, *gate, *beside, *(one for mlp in self.mlps for one in mlp.linears))

    def __call__(self, x: Tensor, active: Active, routed: Tensor | None = None) -> Tensor:
        """[n, hidden] → [n, hidden]

        A row's experts are added in the order of their numbers, so that its result doesn't depend
        on the rows beside it.

        Args:
            x: What passes through experts.
            active: Of their gates.
            routed: What the router reads; None for the same. [n, hidden]
        """
        shares, chosen = self._shares(x if routed is None else routed)
        y = torch.zeros_like(x)
        for number in torch.unique(chosen).tolist():
            rows, place = torch.nonzero(chosen == number, as_tuple=True)
            made = self.mlps[number](x.index_select(0, rows), active)
            y.index_add_(0, rows, made * shares[rows, place, None])
        if self.shared is None:
            return y
        made = self.shared(x, active)
        if self.shared_gate is not None:
            made = torch.sigmoid(self.shared_gate(x)) * made
        return y.add_(made)

    def _shares(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Of every row its experts and their shares. [n, chosen] each"""
        scores, experts = self.router(x), self.traits
        wide = torch.promote_types(scores.dtype, torch.float32)
        if experts.chooses_first:
            best, chosen = scores.to(wide).topk(experts.chosen, dim=-1)
            return torch.softmax(best, dim=-1).to(x.dtype), chosen
        if experts.is_sigmoid:
            shares, chosen = self._chosen_by_bias(torch.sigmoid(scores.to(wide)))
        else:
            shares, chosen = torch.softmax(scores, dim=-1, dtype=wide).topk(experts.chosen, dim=-1)
        if experts.normalises:
            least = SUM_EPS if experts.is_sigmoid else 0.0
            shares = shares / (shares.sum(dim=-1, keepdim=True) + least)
        if self.scales is not None:
            shares = shares * self.scales[chosen]
        return (shares * experts.scale).to(x.dtype), chosen

    def _chosen_by_bias(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """The shares of the chosen experts, and which they are. [n, chosen] each"""
        biased = shares if self.bias is None else shares + self.bias
        chosen = biased.topk(self.traits.chosen, dim=-1).indices
        return shares.gather(-1, chosen), chosen


def read_mlp(weights: Weights, parts: MlpParts) -> Mlp | PlainMlp:
    """One MLP."""
    kind = Mlp if parts.has_gate else PlainMlp
    gate_up, down = weights.linear(parts.gate_up), weights.linear(parts.down)
    return kind(gate_up, down, parts.down.columns)


def read_mlps(
    weights: Weights, parts: BlockParts, experts: Experts | None
) -> Mlp | PlainMlp | ExpertMlps:
    """What rows of a block pass through: one MLP, or experts with or without one beside them."""
    if experts is None or parts.router is None:
        assert parts.mlp is not None
        return read_mlp(weights, parts.mlp)
    router, mlps = weights.linear(parts.router), [read_mlp(weights, mlp) for mlp in parts.experts]
    shared = None if parts.mlp is None else read_mlp(weights, parts.mlp)
    names = [name for name in parts.more if experts.bias and name.endswith(experts.bias)]
    bias = weights.named(names[0], experts.count) if names else None
    return ExpertMlps(experts, router, mlps, shared, bias)
