"""MLPs and mixtures of experts: rows are grouped by expert, so that each is read once.

Sources: Shazeer et al. 2017, "Outrageously Large Neural Networks"; Qwen 3 (Qwen Team 2025) for a
softmax over all experts before top-k; DeepSeek-V3 (DeepSeek-AI 2024, section 2.1.2) for sigmoid
weights and a bias for top-k only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.blocks.spec import MlpSpec, MoeSpec, Scoring
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.backends.activation import Active

SUM_EPS = 1e-6  # is added to the sum of sigmoid weights, all of which may be near zero


@dataclass(frozen=True, slots=True)
class Mlp:
    """An MLP.

    Attributes:
        spec: Its settings.
        gate_up: Gate and up projection; up alone without a gate.
        down: Down projection.
    """

    spec: MlpSpec
    gate_up: QuantLinear
    down: QuantLinear

    def __call__(self, x: Tensor, active: Active) -> Tensor:
        """[n, hidden] → [n, hidden]"""
        return self.down(self._inner(x, active))

    def plus(self, x: Tensor, active: Active, residual: Tensor) -> Tensor:
        """Add its output to the residual in one product. [n, hidden] each → [n, hidden]"""
        return self.down.plus(self._inner(x, active), residual)

    def _inner(self, x: Tensor, active: Active) -> Tensor:
        """Compute the activations that enter the last projection. [n, width]"""
        made = self.gate_up(x)
        gate, up = made.chunk(2, dim=-1) if self.spec.has_gate else (made, made)
        return active(gate, up)


@dataclass(frozen=True, slots=True)
class ExpertMlps:
    """The experts of a block, their router, and the MLP that all rows pass through beside them.

    Attributes:
        spec: Settings.
        router: Router.
        shared_gate: Projection whose sigmoid multiplies the shared expert's output, or None.
        shared: The shared expert, which all rows pass through, or None.
        mlps: The experts.
        bias: Bias of the weights for top-k only, or None. [experts]
        scales: Factor of each expert's weight, or None. [experts]
    """

    spec: MoeSpec
    router: QuantLinear
    shared_gate: QuantLinear | None
    shared: Mlp | None
    mlps: tuple[Mlp, ...]
    bias: Tensor | None = None
    scales: Tensor | None = None

    def __call__(self, x: Tensor, active: Active, routed: Tensor | None = None) -> Tensor:
        """[n, hidden] → [n, hidden]

        A row's experts are added in the order of their numbers, so that its result doesn't depend
        on the rows beside it.

        Args:
            x: Hidden states of the rows. [n, hidden]
            active: Activation of the experts' gates.
            routed: Input of the router; None for `x`. [n, hidden]
        """
        weights, chosen = self._route(x if routed is None else routed)
        y = torch.zeros_like(x)
        for number in torch.unique(chosen).tolist():
            rows, place = torch.nonzero(chosen == number, as_tuple=True)
            made = self.mlps[number](x.index_select(0, rows), active)
            y.index_add_(0, rows, made * weights[rows, place, None])
        if self.shared is None:
            return y
        return add_shared(y, x, self.shared(x, active), self.shared_gate)

    def _route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights and numbers of each row's experts. [n, experts per row] each"""
        logits, routing = self.router(x), self.spec.routing
        wide = torch.promote_types(logits.dtype, torch.float32)
        count = routing.num_experts_per_tok
        if routing.scoring is Scoring.TOPK_SOFTMAX:
            best, chosen = logits.to(wide).topk(count, dim=-1)
            return torch.softmax(best, dim=-1).to(x.dtype), chosen
        if routing.scoring is Scoring.SIGMOID:
            weights, chosen = self._biased_topk(torch.sigmoid(logits.to(wide)))
        else:
            weights, chosen = torch.softmax(logits, dim=-1, dtype=wide).topk(count, dim=-1)
        if routing.norm_topk_prob:
            eps = SUM_EPS if routing.scoring is Scoring.SIGMOID else 0.0
            weights = weights / (weights.sum(dim=-1, keepdim=True) + eps)
        if self.scales is not None:
            weights = weights * self.scales[chosen]
        return (weights * routing.routed_scaling_factor).to(x.dtype), chosen

    def _biased_topk(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights of the chosen experts, and which they are."""
        biased = weights if self.bias is None else weights + self.bias
        chosen = biased.topk(self.spec.routing.num_experts_per_tok, dim=-1).indices
        return weights.gather(-1, chosen), chosen


def add_shared(y: Tensor, x: Tensor, shared: Tensor, gate: QuantLinear | None) -> Tensor:
    """Add a shared expert's output to that of routed experts, in place.

    Args:
        y: Output of the routed experts. [n, hidden]
        x: Input of the experts. [n, hidden]
        shared: Output of the shared expert. [n, hidden]
        gate: Projection whose sigmoid multiplies it, or None.
    """
    return y.add_(shared if gate is None else torch.sigmoid(gate(x)) * shared)
