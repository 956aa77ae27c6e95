"""What the gate of an MLP passes through."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.family import Activation

Active = Callable[[Tensor], Tensor]


def active_of(activation: Activation) -> Active:
    """The function of an activation."""
    if activation is Activation.SILU:
        return F.silu
    return partial(F.gelu, approximate="tanh")
