"""A step of training: its loss, and in which numbers."""

import threading

import pytest
import torch

from medusa_core.training import precision
from medusa_core.training.losses import chunked_cross_entropy, chunked_overlap


@pytest.mark.parametrize(("half_s", "bf16"), [(1.0, True), (0.5, True), (1.2, True), (1.3, False)])
def test_training_uses_float32_if_it_is_clearly_faster(
    half_s: float, bf16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {torch.float32: 1.0, torch.bfloat16: half_s}
    monkeypatch.setattr(precision, "_product_s", times.__getitem__)
    assert precision.trains_in_bf16.__wrapped__("cpu") is bf16
    assert precision.trains_in_bf16.__wrapped__("cuda")


def test_denormals_are_flushed_to_zero_in_threads_too() -> None:
    found: list[float] = []

    def multiply() -> None:
        found.append(float(torch.tensor(1e-30) * torch.tensor(1e-10)))

    with precision.flush_denormals():
        multiply()
        helper = threading.Thread(target=multiply)
        helper.start()
        helper.join()
    assert found == [0.0, 0.0]
    multiply()
    assert found[2] > 0


def test_the_compared_products_take_measurable_time() -> None:
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


def test_the_loss_of_an_impossible_token_is_finite_with_its_gradient() -> None:
    hidden = torch.tensor([[200.0], [1.0]], requires_grad=True)
    matrix = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    targets = torch.tensor([1, 0])
    with precision.flush_denormals():
        loss = chunked_cross_entropy(hidden, matrix, targets, torch.ones(2), torch.float32)
        loss.backward()  # type: ignore[no-untyped-call]
    assert 30 < float(loss.detach()) < 60  # −log(1e-37) / 2, where e^−400 is none
    assert hidden.grad is not None
    assert float(hidden.grad[0]) == pytest.approx(1.0)  # both rows weigh a half


def test_chunked_overlap_equals_the_plain_one_with_its_gradient() -> None:
    hidden, matrix = torch.randn(1000, 16), torch.randn(50, 16)
    chances, columns = torch.softmax(torch.randn(1000, 50) * 3, -1).topk(8)
    grads = []
    for chunked in (True, False):
        h = hidden.clone().requires_grad_()
        if chunked:
            loss = chunked_overlap(h, matrix, columns, chances, torch.float32)
        else:
            drafted = torch.softmax(h @ matrix.T, -1).gather(1, columns)
            loss = -torch.minimum(drafted, chances).sum(1).log().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        grads.append((loss.detach(), h.grad))
    for ours, reference in zip(*grads, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-6)


def test_the_overlap_with_a_certain_token_is_its_cross_entropy() -> None:
    hidden, matrix = torch.randn(600, 16), torch.randn(50, 16)
    targets = torch.randint(0, 50, (600, 1))
    ones = torch.ones(600, 1)
    ours = chunked_overlap(hidden, matrix, targets, ones, torch.float32)
    plain = chunked_cross_entropy(hidden, matrix, targets[:, 0], ones[:, 0], torch.float32)
    torch.testing.assert_close(ours, plain)
