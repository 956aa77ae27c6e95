"""MLPs and experts that the processor computes, while the rest of a model is on a card.

A step reads the weights of an MLP once, and of experts only those that its rows choose. The
processor reads them from its own memory faster than the bus brings them to the card, so only
activations are copied: one row in, one row out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.models.weights import Weights
from medusa_core.runtime.backends.activation import Active
from medusa_core.runtime.backends.experts import ExpertMlps, Mlp, add_shared
from medusa_core.system import cuda

# Computes an MLP or experts in host memory, given rows, activation, and the router's input or None.
Compute = Callable[[Tensor, Active, Tensor | None], Tensor]


@dataclass(frozen=True, slots=True)
class HostParts:
    """The parts of a model that the processor computes.

    Attributes:
        layers: Layers whose MLP, or experts, it computes.
        weights: Reads these parts into host memory.
        precision: Dtypes there.
    """

    layers: frozenset[int]
    weights: Weights
    precision: Precision


@dataclass(slots=True, eq=False)
class HostMlp:
    """An MLP, or routed experts with their router, in host memory.

    Attributes:
        mlp: The MLP, or experts without a shared one.
        precision: Dtypes in host memory.
        shared_gate: Projection whose sigmoid multiplies the shared expert's output, or None.
        shared: Shared expert, on the card, or None.
    """

    mlp: Mlp | ExpertMlps
    precision: Precision
    shared_gate: QuantLinear | None = None
    shared: Mlp | None = None
    _dtype: torch.dtype = field(init=False)
    _compute: Compute = field(init=False)

    def __post_init__(self) -> None:
        # Kernels of ours read rows of float32, whatever their weights are.
        is_compiled = all(isinstance(linear, NativeLinear) for linear in linears_of(self.mlp))
        self._dtype = torch.float32 if is_compiled else self.precision.compute
        self._compute = self._by_torch

    def compute_by(self, compute: Compute) -> None:
        """Compute by this function from now on instead of by torch's operations."""
        self._compute = compute

    def __call__(self, x: Tensor, active: Active, routed: Tensor | None = None) -> Tensor:
        """[n, hidden] → [n, hidden], both on the card.

        Args:
            x: Hidden states of the rows. [n, hidden]
            active: Activation of the MLP.
            routed: Input of the router; None for `x`. [n, hidden]
        """
        rows = cuda.download(x.to(self._dtype))
        read = None if routed is None else cuda.download(routed.to(self._dtype))
        # The card computes its own part while the processor computes.
        beside = None if self.shared is None else self.shared(x, active)
        y = self._compute(rows(), active, None if read is None else read())
        y = y.to(x.dtype).to(x.device)
        return y if beside is None else add_shared(y, x, beside, self.shared_gate)

    def _by_torch(self, x: Tensor, active: Active, routed: Tensor | None) -> Tensor:
        """Compute the MLP or experts by torch's operations; see `Compute`."""
        if isinstance(self.mlp, ExpertMlps):
            return self.mlp(x, active, routed)
        return self.mlp(x, active)
