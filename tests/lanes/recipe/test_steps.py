"""A step of the recipe: its loss, compiled or not, and its optimizers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from recipe import muon
from recipe.muon import orthogonalise, rate_factor
from recipe.packing import make_batch, pack_whole
from recipe.recipe import Schedule
from recipe.stages import weighted_loss
from tests.lanes.recipe.toy_recipe import encoded, random_network


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
def test_muon_makes_all_singular_values_about_one(
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
def test_muon_multiplies_in_the_training_dtype(
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
