"""The CUDA kernels through the host shim, and models whose weights they multiply."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.doctor.machine import machine_checks
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.quant.block_types import block_type
from medusa_core.models.quant.card_linear import card_linear, working_types
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.runtime.backends.cuda_blocks import card_attention, small_cache_works
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.system.native.cuda import BLOCK_TYPES
from medusa_core.system.native.cuda.build import SOURCES
from medusa_core.system.native.cuda.kernels import wrong_kernels
from tests.support.card.card import fake_cuda
from tests.support.card.host_kernels import HostKernels, before_guard_page, build_host_kernels
from tests.support.engine.laws import decode, plainly, user_says
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import ACCURACIES, TinySpec, random_heads, write_heads, write_tiny
from tests.tools.card_budgets import BUDGETS, measured

gelu_tanh = partial(F.gelu, approximate="tanh")
WIDE = TinySpec(hidden_size=64, intermediate_size=96, seed=51)
MESSAGES = user_says("Tell me a story about a lighthouse.")
CARDS = pytest.mark.parametrize("capability", [(6, 1), (8, 6)], ids=["dp4a", "tensor cores"])
# Faults in the sources that a check at load must find: file, text, and what stands in its place.
FAULTS = {
    "no barrier": (
        "rows.cu",
        "    __syncthreads();\n  }\n#pragma unroll 1",
        "  }\n#pragma unroll 1",
    ),
    "wrong scale": ("weights.cuh", "out->scale = d * scale;", "out->scale = d * (scale ^ 1);"),
    "wrong sub-block": ("rows.cu", "group += warps", "group += warps + 1"),
    "other row": ("rows.cu", "int row = 8 * i + g;", "int row = 8 * i + (g ^ 1);"),
}


@CARDS
def test_kernels_multiply_all_block_types_correctly(
    kernels: HostKernels, capability: tuple[int, int]
) -> None:
    for kernels.seed in (1, 2):  # other orders of threads
        on_card = fake_cuda(capability, kernels=kernels, checks_kernels=True)
        with on_card as card, card.waiting():
            assert working_types(torch.device("cuda", 0)) == BLOCK_TYPES


@CARDS
@pytest.mark.parametrize("of", sorted(BLOCK_TYPES))
def test_a_linear_kernel_adds_bias_and_residual(
    kernels: HostKernels, capability: tuple[int, int], of: str
) -> None:
    outputs, columns = 19, 768 if of.endswith("k") else 96
    blocks, bias = random_blocks(of, outputs, columns), torch.randn(outputs)
    x, residual = torch.randn(5, columns), torch.randn(5, outputs)
    x[1] *= 1e5  # beyond the range of halves
    expected = residual + x @ block_type(of).dequantize(blocks).t() + bias
    with fake_cuda(capability, kernels=kernels) as card, card.waiting():
        layer = card_linear(block_type(of), blocks.cuda(), bias.cuda())
        assert layer is not None
        result = layer.plus(x.cuda(), residual.cuda()).cpu()
        rounded = layer(x.bfloat16().cuda()).cpu()
        assert rounded.dtype == torch.bfloat16
    assert _error(result, expected) < 0.01
    assert _error(rounded.float(), expected - residual) < 0.02


@pytest.mark.parametrize("of", sorted(BLOCK_TYPES))
def test_kernels_stay_within_their_buffers(kernels: HostKernels, of: str) -> None:
    """Each buffer ends where a page begins that nothing may touch: one byte more is a crash."""
    outputs, columns, num_rows = 19, 768 if of.endswith("k") else 96, 5
    blocks = before_guard_page(random_blocks(of, outputs, columns))
    x = before_guard_page(torch.randn(num_rows, columns))
    y = before_guard_page(torch.full((num_rows, outputs), torch.nan))
    expected = x @ block_type(of).dequantize(blocks).t()
    halves = before_guard_page(torch.zeros(num_rows, columns, dtype=torch.float16))
    scales = before_guard_page(torch.zeros(num_rows, columns // 32))
    shape = (outputs, outputs, columns, num_rows)
    kernels.launch("prepare_rows", num_rows, 256, x, 0, halves, scales, columns)
    weights = (blocks, halves, scales, y, 0, None, None, None, 0)
    kernels.launch(f"rows_mma_{of}_8", -(-outputs // 16), 128, *weights, *shape)
    assert _error(y, expected) < 0.01
    codes = before_guard_page(torch.zeros(num_rows, columns, dtype=torch.int8))
    num_blocks = num_rows * columns // 32
    kernels.launch("quantize_rows", -(-num_blocks // 4), 128, x, 0, codes, scales, num_blocks)
    weights = (blocks, codes, scales, y.fill_(torch.nan), 0, None, None, None, 0)
    kernels.launch(f"rows_dot_{of}_8", -(-outputs // 4), 128, *weights, *shape, 1)
    assert _error(y, expected) < 0.02
    numbers = before_guard_page(torch.zeros(outputs, columns))
    grid = -(-numbers.numel() // 1024)
    kernels.launch(f"dequantize_{of}", grid, 128, blocks, numbers, 0, outputs, columns)
    assert torch.equal(numbers, block_type(of).dequantize(blocks))


@CARDS
def test_attention_is_correct_for_all_head_sizes(
    kernels: HostKernels, capability: tuple[int, int]
) -> None:
    on_card = fake_cuda(capability, kernels=kernels, checks_kernels=True)
    with on_card as card, card.waiting():
        assert card_attention(torch.device("cuda", 0)) is not None
        assert small_cache_works(torch.device("cuda", 0))


@CARDS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_attention_kernels_handle_sinks_and_a_softcap(
    kernels: HostKernels, capability: tuple[int, int], dtype: torch.dtype
) -> None:
    nodes, q_heads, kv_heads, num_keys, head_dim = 3, 6, 2, 45, 64
    q = torch.randn(nodes, q_heads, head_dim) / 4
    cache = torch.randn(2, kv_heads, 50, head_dim).to(dtype)  # with more slots than keys
    keys, values = cache[:, :, :num_keys]
    mask = torch.zeros(nodes, num_keys).masked_fill_(torch.rand(nodes, num_keys) < 0.4, -torch.inf)
    sinks = torch.randn(q_heads)
    group = torch.arange(q_heads) // (q_heads // kv_heads)
    scores = torch.einsum("nhd,hkd->nhk", q, keys.float()[group])
    scores = 2 * torch.tanh(scores / 2) + mask[:, None]
    sunk = torch.cat([scores, sinks.view(1, -1, 1).expand(nodes, -1, -1)], dim=-1)
    weights = sunk.softmax(dim=-1)[..., :-1]
    expected = torch.einsum("nhk,hkd->nhd", weights, values.float()[group]).flatten(1)
    with fake_cuda(capability, kernels=kernels) as card, card.waiting():
        attention = card_attention(torch.device("cuda", 0))
        assert attention is not None
        on_card = cache.cuda()[:, :, :num_keys]
        assert attention.takes(q.cuda(), on_card[0])
        found = attention(q.cuda(), *on_card, mask.cuda(), sinks.cuda(), 2.0).cpu()
    assert _error(found, expected) < 0.005


@pytest.mark.parametrize(("activation", "active"), [(1, F.silu), (2, gelu_tanh)])
def test_matmul_kernels_apply_the_gated_activation(
    kernels: HostKernels, activation: int, active: Callable[[Tensor], Tensor]
) -> None:
    outputs, columns, num_rows, of = 11, 512, 3, "q4_k"
    blocks, bias = random_blocks(of, 2 * outputs, columns), torch.randn(2 * outputs)
    x, y = torch.randn(num_rows, columns), torch.full((num_rows, outputs), torch.nan)
    gate, up = (x @ block_type(of).dequantize(blocks).t() + bias).chunk(2, dim=1)
    shape = (0, bias, None, None, activation, outputs, outputs, columns, num_rows)
    halves, scales = torch.zeros(num_rows, columns, dtype=torch.float16), torch.zeros(num_rows)
    kernels.launch("prepare_rows", num_rows, 256, x, 0, halves, scales, columns)
    kernels.launch("rows_mma_q4_k_8", -(-outputs // 8), 128, blocks, halves, scales, y, *shape)
    assert _error(y, active(gate) * up) < 0.01
    codes = torch.zeros(num_rows, columns, dtype=torch.int8)
    scales, count = torch.zeros(num_rows, columns // 32), num_rows * columns // 32
    kernels.launch("quantize_rows", -(-count // 4), 128, x, 0, codes, scales, count)
    y.fill_(torch.nan)
    kernels.launch("rows_dot_q4_k_4", -(-outputs // 4), 128, blocks, codes, scales, y, *shape, 1)
    assert _error(y, active(gate) * up) < 0.03


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_kernel_is_not_used(name: str, compiler: list[str], tmp_path: Path) -> None:
    sources = shutil.copytree(SOURCES, tmp_path / "sources")
    file, text, fault = FAULTS[name]
    source = (sources / file).read_text(encoding="utf-8")
    assert source.count(text) == 1
    (sources / file).write_text(source.replace(text, fault), encoding="utf-8")
    wrong = build_host_kernels(tmp_path, compiler, sources)
    device = torch.device("cuda", 0)
    with fake_cuda(kernels=wrong, checks_kernels=True) as card, card.waiting():
        assert "q4_k" not in working_types(device)
        assert "products with q4_k weights of 1,280 columns" in wrong_kernels(device)


def test_a_wrong_kernel_is_named_in_header_doctor_and_log(
    compiler: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sources = shutil.copytree(SOURCES, tmp_path / "sources")
    source = (sources / "fused.cu").read_text(encoding="utf-8")
    text, fault = "a * turn.x - b * turn.y", "a * turn.x + b * turn.y"
    assert source.count(text) == 1
    (sources / "fused.cu").write_text(source.replace(text, fault), encoding="utf-8")
    wrong = build_host_kernels(tmp_path, compiler, sources)
    path = write_as_gguf(write_tiny(tmp_path / "tiny", WIDE), tmp_path / "x.gguf", "q4_0")
    with fake_cuda(kernels=wrong) as card, card.waiting():
        target = load_target(path, None, LoadOptions(device="cuda"))
        assert isinstance(target.runner, ResidentRunner)
        note = "Wrong on this card, and replaced by PyTorch: fused rotations."
        assert target.not_compiled == note
        (check,) = (one.run() for one in machine_checks() if one.name == "Kernels for cards")
        assert (check.ok, check.message) == (False, note)
    assert "torch replaces: fused rotations" in caplog.text


@CARDS
def test_a_gguf_file_keeps_its_stored_format_and_drafts_change_no_token(
    kernels: HostKernels, capability: tuple[int, int], tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path / "tiny", WIDE)
    heads = write_heads(tmp_path / "heads", random_heads(WIDE), ACCURACIES)
    path = write_as_gguf(folder, tmp_path / "mixed.gguf", "q4_0", others={"attn_v": "q8_0"})
    settings = GenerateSettings(drafter="medusa", max_new_tokens=12)
    with fake_cuda(capability, kernels=kernels) as card:
        with card.waiting():
            target = load_target(path, heads, LoadOptions(device="cuda"))
        assert target.formats.keeps_blocks
        assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes
        kernels.launched.clear()
        drafted = decode(target, settings, MESSAGES)
        plain = decode(target, plainly(settings), MESSAGES)
        assert kernels.launched
    assert drafted.token_ids == plain.token_ids


def test_the_shipped_kernels_keep_their_register_and_memory_budgets() -> None:
    """Registers, local memory and code are recorded: a change of them is to be seen."""
    found = measured()
    assert found == json.loads(BUDGETS.read_text(encoding="ascii"))
    for name, (registers, stack, code, per_weight) in (
        (f"{file}, {kernel}", numbers)
        for file, kernels in found.items()
        for kernel, numbers in kernels.items()
    ):
        assert stack == 0, name  # no register is spilled
        assert registers <= 255, name
        # A loop is unrolled, but it must fit the instruction cache of about 128 KiB.
        assert code <= 112 << 10, name
        is_read = not name.partition(",")[0].endswith(("sm90", "sm120"))
        assert (per_weight > 0) == ("rows_" in name.partition(", ")[2] and is_read), name


def _error(result: Tensor, expected: Tensor) -> float:
    return float((result - expected).norm() / expected.norm())
