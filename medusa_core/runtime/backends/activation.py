"""Activations of MLPs: functions of gate and up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.blocks.spec import Activation, ActivationSpec

Active = Callable[[Tensor, Tensor], Tensor]
_CLAMPED_ALPHA = 1.702  # of the clamped SwiGLU's sigmoid


def active_of(spec: ActivationSpec) -> Active:
    """Return the function of gate and up. [n, width] each"""
    active: Active = _ACTIVE[spec.kind]
    if spec.kind is Activation.CLAMPED_SWIGLU:
        active = partial(_clamped_swiglu, limit=spec.swiglu_limit)
    if spec.gate_multiplier == 1:
        return active
    return partial(_with_scaled_gate, active, spec.gate_multiplier)


def _silu(gate: Tensor, up: Tensor) -> Tensor:
    """SwiGLU: SiLU of the gate, times up. [n, width] each"""
    return F.silu(gate) * up


def _gelu(gate: Tensor, up: Tensor) -> Tensor:
    """GeGLU with the exact GELU. [n, width] each"""
    return F.gelu(gate) * up


def _gelu_tanh(gate: Tensor, up: Tensor) -> Tensor:
    """GeGLU with the tanh approximation of GELU. [n, width] each"""
    return F.gelu(gate, approximate="tanh") * up


def _relu2(gate: Tensor, up: Tensor) -> Tensor:
    """ReLU² (So et al. 2021) of an MLP without a gate, whose up comes as both."""
    return F.relu(gate) * up


def _clamped_swiglu(gate: Tensor, up: Tensor, limit: float = 0.0) -> Tensor:
    """GPT-OSS's SwiGLU (OpenAI 2025): both halves are clamped, and up has one added."""
    gate = gate.clamp(max=limit)
    return (up.clamp(-limit, limit) + 1) * (gate * torch.sigmoid(gate * _CLAMPED_ALPHA))


def _with_scaled_gate(active: Active, multiplier: float, gate: Tensor, up: Tensor) -> Tensor:
    """Multiply the gate before its activation. [n, width] each"""
    return active(gate * multiplier, up)


_ACTIVE: dict[Activation, Active] = {
    Activation.SILU: _silu,
    Activation.GELU: _gelu,
    Activation.GELU_TANH: _gelu_tanh,
    Activation.CLAMPED_SWIGLU: _clamped_swiglu,
    Activation.RELU2: _relu2,
}
