"""What the two halves of an MLP's first projection become."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.traits import Activation, Traits

Active = Callable[[Tensor, Tensor], Tensor]
_SLOPE = 1.702  # of the bounded gate's sigmoid


def active_of(traits: Traits) -> Active:
    """The function of gate and up. [n, width] each"""
    if traits.activation is Activation.BOUNDED:
        return partial(_bounded, bound=traits.activation_bound)
    return {Activation.SILU: _silu, Activation.RELU2: _relu}.get(traits.activation, _gelu)


def _silu(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


def _gelu(gate: Tensor, up: Tensor) -> Tensor:
    return F.gelu(gate, approximate="tanh") * up


def _relu(gate: Tensor, up: Tensor) -> Tensor:
    """Of an MLP whose gate is what it gates: ReLU² (So et al. 2021)."""
    return F.relu(gate) * up


def _bounded(gate: Tensor, up: Tensor, bound: float) -> Tensor:
    """Of GPT-OSS (OpenAI 2025): both halves stay within a bound, and up is one more."""
    gate = gate.clamp(max=bound)
    return (up.clamp(-bound, bound) + 1) * (gate * torch.sigmoid(gate * _SLOPE))
