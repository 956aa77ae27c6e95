"""The fake card refuses what a real one refuses, and counts what a real one pays for."""

import pytest
import torch
import torch.nn.functional as F

from tests.support.card.attention import AttentionError
from tests.support.card.card import GIB, fake_cuda
from tests.support.card.tensor import FakeCudaError


def test_emulated_tensors_say_that_they_are_on_a_card_and_hold_numbers() -> None:
    with fake_cuda():
        x = torch.arange(12.0, device="cuda").view(3, 4)
        assert x.is_cuda
        assert x.device == torch.device("cuda:0")
        part = x[1:, 1:3]
        assert (part.stride(), part.storage_offset()) == ((4, 1), 5)
        part += 100
        assert x.tolist() == [[0, 1, 2, 3], [4, 105, 106, 7], [8, 109, 110, 11]]


def test_views_made_in_inference_mode_work_outside_of_it() -> None:
    with fake_cuda():
        x = torch.zeros(4, device="cuda")
        with torch.inference_mode():
            x[1:3].fill_(7)
            y = x.view(2, 2) * 2
        y[0, 0] = 1.0
        assert y.tolist() == [[1, 14], [14, 0]]


def test_copies_are_counted_in_each_direction() -> None:
    with fake_cuda() as card:
        x = torch.tensor([1, 2, 3], device="cuda")
        y = torch.zeros(3, dtype=torch.int64, device="cuda")
        y.copy_(x)
        y.copy_(torch.ones(3, dtype=torch.int64))
        y[0] = 5
        assert card.journal.uploads == [24, 24]
        assert y.cpu().tolist() == [5, 1, 1]
        assert card.journal.downloads == [24]


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x[0].item(),
        lambda x: float(x.max()),
        lambda x: bool((x > 0).any()),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
    ],
)
def test_operations_that_wait_for_the_card_are_refused(ask: object) -> None:
    assert callable(ask)
    with fake_cuda() as card:
        x = torch.ones(3, device="cuda")
        with pytest.raises(FakeCudaError, match="waits for the card"):
            ask(x)
        with card.waiting():
            ask(x)


def test_operations_on_tensors_of_two_devices_are_refused() -> None:
    with fake_cuda():
        x = torch.ones(3, device="cuda")
        with pytest.raises(FakeCudaError, match="in the computer's memory"):
            x + torch.ones(3)
        with pytest.raises(FakeCudaError, match="in the computer's memory"):
            x.index_select(0, torch.tensor([1]))
        assert (x * torch.tensor(2.0)).tolist() == [2, 2, 2]  # torch takes such a number out


def test_memory_is_counted_by_storage_and_can_run_out() -> None:
    with fake_cuda(total_bytes=GIB) as card:
        x = torch.zeros(1 << 20, device="cuda")
        views = [x[i:] for i in range(4)]
        assert card.memory.taken_bytes == 4 << 20
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(GIB, dtype=torch.uint8, device="cuda")
        del x, views
        assert card.memory.taken_bytes == 0
        assert card.memory.peak_bytes == 4 << 20


def test_a_mask_that_begins_at_an_odd_column_is_refused() -> None:
    with fake_cuda():
        q = torch.randn(1, 2, 8, 16, device="cuda").bfloat16()
        keys = torch.randn(1, 2, 24, 16, device="cuda").bfloat16()
        mask = torch.zeros(8, 32, dtype=torch.bfloat16, device="cuda")
        F.scaled_dot_product_attention(q, keys, keys, attn_mask=mask[:, 8:])
        with pytest.raises(AttentionError, match="attn_bias is not correctly aligned"):
            F.scaled_dot_product_attention(q, keys, keys, attn_mask=mask[:, 3:27])


@pytest.mark.parametrize(
    ("capability", "dtype", "has_mask", "kernel"),
    [
        ((6, 1), torch.float32, True, "efficient"),
        ((7, 5), torch.float16, True, "efficient"),
        ((7, 5), torch.bfloat16, True, "math"),
        ((8, 6), torch.bfloat16, True, "efficient"),
        ((8, 6), torch.bfloat16, False, "flash"),
        ((8, 9), torch.float64, False, "math"),
    ],
)
def test_attention_takes_the_kernel_that_torch_takes_on_such_a_card(
    capability: tuple[int, int], dtype: torch.dtype, has_mask: bool, kernel: str
) -> None:
    with fake_cuda(capability) as card:
        q = torch.randn(1, 2, 8, 16, device="cuda").to(dtype)
        mask = torch.zeros(8, 8, dtype=dtype, device="cuda") if has_mask else None
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        assert [call.kernel for call in card.journal.attended] == [kernel]


def test_bitsandbytes_refuses_arguments_that_its_kernels_cannot_take() -> None:
    with fake_cuda():
        x = torch.randn(2, 64, device="cuda")
        kernels = torch.ops.bitsandbytes
        with pytest.raises(ValueError, match="A must be float16"):
            kernels.int8_vectorwise_quant(x.bfloat16(), 0.0)
        packed, largest = kernels.quantize_4bit(x, 64, "nf4", torch.uint8)
        with pytest.raises(RuntimeError, match="absmax must be float32"):
            kernels.gemm_4bit(x, packed, [2, 64], largest.half(), 64, "nf4")
        with pytest.raises(RuntimeError, match="unsupported dtype"):
            kernels.gemm_4bit(x.double(), packed, [2, 64], largest, 64, "nf4")


def test_tensors_of_a_lost_card_are_unusable() -> None:
    with fake_cuda():
        x = torch.ones(3, device="cuda")
    with pytest.raises(FakeCudaError, match="isn't there any more"):
        x + 1
