"""The CUDA kernels on the CPU, a few of each; the lane `card` runs all of them."""

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.models.quant.block_types import block_type
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.runtime.backends import cuda_blocks
from medusa_core.runtime.backends.cuda_blocks import CardAttention
from medusa_core.system.native.cuda.build import changes
from medusa_core.system.native.cuda.kernels import kernel_file
from medusa_core.system.resources import native_dir
from tests.support.card import guard
from tests.support.card.host_kernels import HostKernels, shared_host_kernels

CPU = torch.device("cpu")
OUTPUTS = 19  # more than a block of rows, and not a whole second one


@pytest.fixture(scope="module")
def kernels() -> HostKernels:
    return shared_host_kernels()


@pytest.mark.parametrize("of", ["q4_k", "q6_k", "q4_0"])
def test_compiled_card_products_are_correct_and_independent_of_other_rows(
    kernels: HostKernels, of: str
) -> None:
    columns = 512 if of.endswith("k") else 96
    blocks, x = random_blocks(of, OUTPUTS, columns), torch.randn(33, columns)
    expected = x.double() @ block_type(of).dequantize(blocks).double().t()
    first = []
    for kernels.seed, count, compiled in ((1, 1, 8), (2, 9, 16), (3, 33, 64)):
        halves = torch.full((count, columns), torch.nan).half()
        scales, y = torch.full((count,), torch.nan), torch.full((count, OUTPUTS), torch.nan)
        kernels.launch("prepare_rows", count, 256, x, 0, halves, scales, columns)
        weights = (blocks, halves, scales, y, 0, None, None, None, 0)
        shape = (OUTPUTS, OUTPUTS, columns, count)
        kernels.launch(f"rows_mma_{of}_{compiled}", 2, 128, *weights, *shape)
        assert error(y, expected[:count]) < 0.002
        first.append(y[0])
    assert torch.equal(first[0], first[1])
    assert torch.equal(first[0], first[2])
    codes, steps = torch.zeros(3, columns, dtype=torch.int8), torch.zeros(3, columns // 32)
    y = torch.full((3, OUTPUTS), torch.nan)
    kernels.launch(
        "quantize_rows", -(-codes.numel() // 128), 128, x, 0, codes, steps, steps.numel()
    )
    weights = (blocks, codes, steps, y, 0, None, None, None, 0)
    kernels.launch(f"rows_dot_{of}_4", 5, 128, *weights, OUTPUTS, OUTPUTS, columns, 3, 1)
    assert error(y, expected[:3]) < 0.02


@pytest.mark.parametrize(("has_tensor_cores", "head_dim"), [(True, 64), (False, 80)])
def test_compiled_card_attention_is_correct(
    kernels: HostKernels, has_tensor_cores: bool, head_dim: int
) -> None:
    assert cuda_blocks._is_correct(CardAttention(kernels, has_tensor_cores), head_dim, CPU)


def test_compiled_8_bit_keys_and_values_are_correct(kernels: HostKernels) -> None:
    attentions = (CardAttention(kernels, has_mma) for has_mma in (True, False))
    for attention in attentions:
        for head_dim in (64, 96):
            assert cuda_blocks._is_correct(attention, head_dim, CPU, in_8_bits=True)
    assert cuda_blocks._rotation_is_correct(kernels, CPU, in_8_bits=True)


def test_compiled_card_norms_and_rope_are_correct(kernels: HostKernels) -> None:
    assert cuda_blocks._norm_is_correct(kernels, CPU)
    assert cuda_blocks._rotation_is_correct(kernels, CPU)


def test_the_shipped_kernels_match_the_sources() -> None:
    assert changes(native_dir() / "cuda") == []


def test_every_compute_capability_has_a_file() -> None:
    names = {
        (6, 1): "rows_sm61.cubin.xz",
        (7, 5): "rows_sm75.cubin.xz",
        (8, 7): "rows_sm86.cubin.xz",
        (8, 9): "rows_sm89.cubin.xz",
        (12, 1): "rows_sm120.cubin.xz",
        (10, 0): "rows_compute75.ptx.xz",
    }
    files = {card: kernel_file("rows", card) for card in names}
    assert {card: path.name for card, path in files.items()} == names
    assert all(path.is_file() for path in files.values())


def test_a_missing_compiler_is_named_and_ziglang_replaces_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEDUSA_TEST_SHARED", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(guard.shutil, "which", lambda _: None)
    monkeypatch.setattr(guard.importlib.util, "find_spec", lambda _: None)
    kind = AssertionError if sys.platform.startswith("linux") else pytest.skip.Exception
    with pytest.raises(kind, match=r"Install g\+\+ .*, or the extra native: pip install"):
        shared_host_kernels()
    monkeypatch.setattr(guard.importlib.util, "find_spec", lambda name: name == "ziglang")
    found = guard.find_compiler()
    assert found is not None
    assert found[:4] == [sys.executable, "-m", "ziglang", "c++"]


def error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())
