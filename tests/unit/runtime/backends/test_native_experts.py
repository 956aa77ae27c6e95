"""Experts in the compiled step against those in torch's operations, for every kind of router."""

import ctypes
from collections.abc import Callable
from ctypes import addressof
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.models.blocks.spec import (
    Activation,
    ActivationSpec,
    MlpSpec,
    MoeSpec,
    RoutingSpec,
    Scoring,
)
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.quant.native_linear import NativeLinear, panel_weights
from medusa_core.runtime.backends.activation import active_of
from medusa_core.runtime.backends.experts import ExpertMlps, Mlp
from medusa_core.runtime.backends.native_blocks import NativeDecoder
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.system.native.binding import open_library
from medusa_core.system.native.constants import ActivationCode
from medusa_core.system.native.structs import ActivationStruct, ExpertsStruct
from tests.support.models.natives import each_library
from tests.support.models.targets import folder_of

HIDDEN, NUM_ROWS = 48, 16
TOLERANCE = 3e-6  # of the largest number
BuildLinear = Callable[[Tensor], QuantLinear]


@dataclass(frozen=True)
class Case:
    """A kind of experts.

    Attributes:
        routing: How they are chosen.
        width: Width of an expert.
        shared: Width of the shared expert; 0 for none.
        shared_gate: Whether a gate multiplies its output.
        bias: Whether a bias takes part in the choice.
        scales: Whether each expert has a scale.
        activation: Of all MLPs; those of ReLU² have no gate.
        routed: Whether the router reads other rows than the experts.
    """

    routing: RoutingSpec
    width: int
    shared: int = 0
    shared_gate: bool = False
    bias: bool = False
    scales: bool = False
    activation: Activation = Activation.SILU
    routed: bool = False


CASES = {
    "softmax (Qwen 3)": Case(RoutingSpec(6, 2), 32),
    "softmax, not normalized": Case(RoutingSpec(5, 3, norm_topk_prob=False), 80, shared=16),
    "softmax after top-k (gpt-oss)": Case(
        RoutingSpec(7, 3, Scoring.TOPK_SOFTMAX), 32, activation=Activation.CLAMPED_SWIGLU
    ),
    "gated shared expert (Qwen 3.5)": Case(RoutingSpec(33, 5), 16, shared=48, shared_gate=True),
    "sigmoid with a bias (LFM2)": Case(RoutingSpec(17, 4, Scoring.SIGMOID), 32, bias=True),
    "sigmoid, not normalized": Case(RoutingSpec(5, 5, Scoring.SIGMOID, False, 2.5), 16, shared=80),
    "scaled, with a shared expert (GLM)": Case(
        RoutingSpec(16, 3, Scoring.SIGMOID, True, 1.5), 32, shared=64, bias=True
    ),
    "no gate (Nemotron)": Case(
        RoutingSpec(9, 2, Scoring.SIGMOID, True, 2.5),
        48,
        shared=96,
        bias=True,
        activation=Activation.RELU2,
    ),
    "scales and rows of the router's own (Gemma 4)": Case(
        RoutingSpec(5, 2), 32, scales=True, activation=Activation.GELU_TANH, routed=True
    ),
    "exact GELU": Case(RoutingSpec(6, 2), 32, activation=Activation.GELU),
}


def linear_spec(outputs: int, inputs: int) -> LinearSpec:
    return LinearSpec("", (TensorRows("", outputs),), inputs)


def mlp_spec(width: int, has_gate: bool) -> MlpSpec:
    return MlpSpec(linear_spec((1 + has_gate) * width, HIDDEN), linear_spec(HIDDEN, width))


def experts_of(case: Case, make: BuildLinear) -> ExpertMlps:
    """Random experts, the same ones for every `make`."""
    generator = torch.Generator().manual_seed(17)
    has_gate = case.activation is not Activation.RELU2

    def linear(outputs: int, inputs: int) -> QuantLinear:
        return make(torch.randn(outputs, inputs, generator=generator) * 2 / inputs**0.5)

    def mlp(width: int) -> Mlp:
        up, down = linear((1 + has_gate) * width, HIDDEN), linear(HIDDEN, width)
        return Mlp(mlp_spec(width, has_gate), up, down)

    count = case.routing.num_experts
    router = linear(count, HIDDEN)
    mlps = tuple(mlp(case.width) for _ in range(count))
    bias, scales = (torch.rand(count, generator=generator) for _ in range(2))
    shared = mlp(case.shared) if case.shared else None
    return ExpertMlps(
        MoeSpec(case.routing, linear_spec(count, HIDDEN), mlp_spec(case.width, has_gate)),
        router,
        linear(1, HIDDEN) if case.shared_gate else None,
        shared,
        mlps,
        bias if case.bias else None,
        scales + 0.5 if case.scales else None,
    )


@cache
def describing() -> NativeDecoder:
    """Return the compiled step's description of experts."""
    target = load_target(folder_of("mistral").model, None, LoadOptions("float32", "cpu"))
    assert isinstance(target.runner, NativeRunner)
    return target.runner._native


def run(
    library: ctypes.CDLL, struct: ExpertsStruct, case: Case, x: Tensor, routed: Tensor
) -> Tensor:
    activation = ActivationStruct(ActivationCode[case.activation.name], 0.0, 1.0)
    library.experts_scratch.restype = ctypes.c_int64
    floats = library.experts_scratch(ctypes.c_void_p(addressof(struct)), HIDDEN, len(x))
    scratch, y = torch.full((floats,), torch.nan), torch.full_like(x, torch.nan)
    library.run_experts.argtypes = (
        *(ctypes.c_void_p,) * 3,
        ctypes.c_int32,
        *(ctypes.c_void_p,) * 2,
        ctypes.c_int32,
        *(ctypes.c_void_p,) * 2,
    )
    library.run_experts(
        None,
        addressof(struct),
        addressof(activation),
        HIDDEN,
        x.data_ptr(),
        routed.data_ptr(),
        len(x),
        scratch.data_ptr(),
        y.data_ptr(),
    )
    return y


@each_library
@pytest.mark.parametrize("name", CASES)
def test_compiled_experts_equal_torchs_and_rows_are_independent(path: Path, name: str) -> None:
    case, library = CASES[name], open_library(path)
    native = experts_of(
        case, lambda weight: NativeLinear(library, [panel_weights(weight)], bias=None)
    )
    struct = describing()._experts_of(native)
    generator = torch.Generator().manual_seed(3)
    x, other = (torch.randn(NUM_ROWS, HIDDEN, generator=generator) for _ in range(2))
    routed = other if case.routed else x
    y = run(library, struct, case, x, routed)
    exact = experts_of(case, lambda weight: make_linear(weight.double()))
    active = active_of(ActivationSpec(case.activation))
    wanted = exact(x.double(), active, routed.double())
    assert (y - wanted).abs().max() <= TOLERANCE * wanted.abs().max()
    rows_of = partial(run, library, struct, case)
    for count in range(1, NUM_ROWS + 1):
        start = (NUM_ROWS - count) // 2
        some = slice(start, start + count)
        found = rows_of(x[some].contiguous(), routed[some].contiguous())
        assert torch.equal(found, y[some]), count


@each_library
@pytest.mark.parametrize("scoring", [Scoring.SOFTMAX, Scoring.SIGMOID])
def test_of_equal_router_logits_the_first_experts_are_chosen(path: Path, scoring: Scoring) -> None:
    library = open_library(path)
    case = Case(RoutingSpec(20, 3, scoring), 16)
    native = experts_of(
        case, lambda weight: NativeLinear(library, [panel_weights(weight)], bias=None)
    )
    spec = replace(native.spec, routing=RoutingSpec(3, 3, scoring))
    few = replace(native, spec=spec, mlps=native.mlps[:3])
    x, nothing = torch.randn(2, HIDDEN), torch.zeros(2, HIDDEN)
    structs = [describing()._experts_of(experts) for experts in (native, few)]
    structs[1].router.outputs = 3
    found = [run(library, struct, case, x, nothing) for struct in structs]
    assert torch.equal(*found)
