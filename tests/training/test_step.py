"""A step of training: its loss, its optimizers, their rates, and in which numbers."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from medusa_core.training import precision
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.packing import make_batch, pack_whole
from medusa_core.training.pebble import muon
from medusa_core.training.pebble.muon import orthogonalise, rate_factor
from medusa_core.training.pebble.recipe import Schedule
from medusa_core.training.pebble.stages import weighted_loss
from tests.training.toy_recipe import encoded, random_network


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler warns of its own parts
def test_the_compiled_network_gives_the_same_loss_and_gradients(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    # a pool of compiling processes would outlive the test
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)
    rows = pack_whole(encoded(9, 12, 8, 20, 11, 3), 31)
    batch = make_batch(rows, np.arange(len(rows)), 0.3)
    networks = random_network(), random_network()
    networks[1].model.compile_blocks()
    losses = [weighted_loss(network, batch, bf16=False) for network in networks]
    assert float(losses[0]) == pytest.approx(float(losses[1]), rel=1e-5)
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    for plain, compiled in zip(*(network.parameters() for network in networks), strict=True):
        torch.testing.assert_close(plain.grad, compiled.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 64, 64), (2, 32, 96)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_muon_makes_the_singular_values_about_one(
    shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    result = orthogonalise(torch.randn(shape) * 5.0, dtype)
    assert result.dtype is dtype
    result = result.float()
    values = torch.linalg.svdvals(result)
    # the smallest values of a random square matrix are too small for five steps
    assert (values > 0.5).float().mean() > 0.9
    assert values.max() < 1.4


@pytest.mark.parametrize(("bf16", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_muon_multiplies_in_what_is_trained_in(
    bf16: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.dtype] = []

    def note(matrices: Tensor, of: torch.dtype) -> Tensor:
        seen.append(of)
        return matrices

    monkeypatch.setattr(muon, "trains_in_bf16", lambda _: bf16)
    monkeypatch.setattr(muon, "orthogonalise", note)
    parameter = torch.nn.Parameter(torch.ones(4, 8))
    parameter.grad = torch.ones(4, 8)
    muon.Muon([parameter], lr=0.5, momentum=0.0).step()
    assert seen == [dtype]
    assert torch.equal(parameter.detach(), torch.full((4, 8), 0.5))


def test_rates_rise_in_the_warm_up_and_then_follow_a_line() -> None:
    schedule = Schedule(10, 1, 8, 4, 1.0, 1.0, 0.0, first_rate=1.0, last_rate=0.5)
    rates = [rate_factor(schedule, step) for step in range(11)]
    assert rates[:4] == pytest.approx([0.25, 0.5 * 0.95, 0.75 * 0.9, 0.85])
    assert rates[-1] == 0.5
    steady = Schedule(10, 1, 8, 0, 1.0, 1.0, 0.0)
    assert {rate_factor(steady, step) for step in range(11)} == {1.0}


@pytest.mark.parametrize(("half_s", "bf16"), [(1.0, True), (0.5, True), (1.2, True), (1.3, False)])
def test_float32_is_trained_in_where_it_is_clearly_faster(
    half_s: float, bf16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {torch.float32: 1.0, torch.bfloat16: half_s}
    monkeypatch.setattr(precision, "_product_s", times.__getitem__)
    assert precision.trains_in_bf16.__wrapped__("cpu") is bf16
    assert precision.trains_in_bf16.__wrapped__("cuda")


def test_the_smallest_numbers_are_zero_in_threads_too() -> None:
    found: list[float] = []

    def multiply() -> None:
        found.append(float(torch.tensor(1e-30) * torch.tensor(1e-10)))

    with precision.denormals_are_zero():
        multiply()
        helper = threading.Thread(target=multiply)
        helper.start()
        helper.join()
    assert found == [0.0, 0.0]
    multiply()
    assert found[2] > 0


def test_the_products_that_are_compared_take_time() -> None:
    assert all(precision._product_s(dtype) > 0 for dtype in precision._DTYPES)


def test_chunked_cross_entropy_equals_the_plain_one_with_its_gradients() -> None:
    hidden, matrix = torch.randn(2000, 16), torch.randn(50, 16)
    targets, weights = torch.randint(0, 50, (2000,)), torch.rand(2000)
    grads = []
    for chunked in (True, False):
        h, m = hidden.clone().requires_grad_(), matrix.clone().requires_grad_()
        if chunked:
            loss = chunked_cross_entropy(h, m, targets, weights, torch.float32)
        else:
            losses = torch.nn.functional.cross_entropy(h @ m.T, targets, reduction="none")
            loss = (losses * weights).sum() / weights.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        grads.append((loss.detach(), h.grad, m.grad))
    for ours, reference in zip(*grads, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-6)


def test_the_loss_of_a_token_that_can_not_come_is_a_number_with_its_gradient() -> None:
    hidden = torch.tensor([[200.0], [1.0]], requires_grad=True)
    matrix = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    loss = chunked_cross_entropy(hidden, matrix, torch.tensor([1, 0]), torch.ones(2), torch.float32)
    loss.backward()  # type: ignore[no-untyped-call]
    assert 30 < float(loss.detach()) < 60  # −log(1e-38) / 2, where e^−400 is none
    assert hidden.grad is not None
    assert float(hidden.grad[0]) == pytest.approx(1.0)  # both rows weigh a half
