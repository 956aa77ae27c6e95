"""A layer for multi-token prediction in memory, as MiMo's checkpoints hold it.

x = W [norm(h); norm(e)] of the state h that leaves the target's last layer, before the final norm,
and the vector e of the token behind it; then a block of the target's own kind, and a norm, behind
which the target's projection serves. What that norm leaves is the next step's h.

Sources: MiMo (Xiaomi 2025), section 2.2; DeepSeek-V3 (2024), section 2.2, for the layer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.heads.chained import ChainedHead, TakeTensor
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.mtp_parts import MtpParts
from medusa_core.models.precision import Precision

_NORMS = ("vector_norm", "state_norm", "input_norm", "last_norm")


class MtpHead(ChainedHead):
    """See the module, and `ChainedHead`."""

    def __init__(
        self,
        parts: MtpParts,
        num_layers: int,
        take: TakeTensor,
        shared_weights: SharedWeights,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights; see `ChainedHead`.

        Args:
            parts: What the layer is made of.
            num_layers: The target's: what leaves the last of them is read.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            shared_weights: What the target lends it.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        super().__init__(parts.layer, (num_layers,), _NORMS, take, shared_weights, make, precision)

    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        assert deep is not None  # the runner tells of `taps`
        return deep.to(self._precision.device, self._precision.compute)

    def _joined(self, read: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        norms = self._norms
        pair = torch.cat([norms["state_norm"](read), norms["vector_norm"](vectors)], dim=-1)
        x = self._linears.fc(pair)
        return norms["input_norm"](x), x

    def _left(self, states: Tensor) -> Tensor:
        return self._norms["last_norm"](states)
