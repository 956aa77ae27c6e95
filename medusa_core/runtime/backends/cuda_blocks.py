"""Attention of a few rows on a card by our own kernels, split over the keys.

Torch's kernels that take a mask run a block per head, which leaves most of a card idle; these run a
block per head and split. Keys and values stay in the cache's dtype, also where the model computes
in float32, and keys that no row attends to aren't read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from medusa_core.runtime.backends.attention import attend_by_products
from medusa_core.runtime.backends.rope import rotate
from medusa_core.runtime.kv.quantized import pack_blocks, unpack_blocks
from medusa_core.runtime.kv.size import packed_bytes
from medusa_core.system import cuda
from medusa_core.system.native.cuda.kernels import (
    DTYPES,
    KV_DTYPES,
    Kernels,
    load_kernels,
    report_wrong,
)

MMA_DIMS = (64, 96, 128, 256)  # head_dim that attention.cu is compiled for
_MOST_ROWS = 64  # nodes of a tree
_MOST_DIMS = 256
_KEYS_PER_SPLIT, _MOST_SPLITS = 256, 32
_MOST_ERROR = 0.005  # relative; halves lose 5e-4


@dataclass(frozen=True, slots=True)
class CardAttention:
    """Attention over a cache in 16 or 8 bits.

    Attributes:
        kernels: Compiled kernels for the card.
        has_tensor_cores: The card multiplies halves by tensor cores.
    """

    kernels: Kernels
    has_tensor_cores: bool

    def takes(self, q: Tensor, keys: Tensor) -> bool:
        """Whether the kernels compute these rows: few, without gradients, over 16-bit keys.

        Those of 8 bits are dequantized outside of fused steps.
        """
        return (
            len(q) <= _MOST_ROWS
            and q.shape[-1] <= _MOST_DIMS
            and q.shape[-1] % 8 == 0
            and keys.dtype in (torch.float16, torch.bfloat16)
            and keys.stride()[1:] == (keys.shape[2], 1)
            and keys.data_ptr() % 16 == 0
            and not q.requires_grad
        )

    def __call__(
        self,
        q: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        sinks: Tensor | None = None,
        softcap: float | None = None,
    ) -> Tensor:
        """Attend to cached keys.

        Args:
            q: [n, q heads, head_dim], scaled.
            keys: [kv heads, s, head_dim], float16 or bfloat16; uint8 [kv heads, s, bytes] in Q8_0.
            values: As `keys`, with the same strides.
            mask: Additive [≥ n, s], of which the first n rows count; None if every row attends to
                every key.
            sinks: Attention sinks. [q heads]
            softcap: `attn_logit_softcapping`.

        Returns:
            [n, q heads · head_dim]
        """
        nodes, q_heads, head_dim = q.shape
        kv_heads, num_keys = keys.shape[:2]
        q = q.contiguous()
        rows = nodes * q_heads // kv_heads
        splits = max(1, min(_MOST_SPLITS, num_keys // _KEYS_PER_SPLIT))
        sums = q.new_empty(kv_heads, splits, rows, head_dim, dtype=torch.float32)
        statistics = q.new_empty(kv_heads, splits, rows, 2, dtype=torch.float32)
        name = attention_kernel(head_dim, keys.dtype, self.has_tensor_cores)
        uses_mma = name != "attend_dot"
        masked = (None, 0, 0) if mask is None else (mask, DTYPES[mask.dtype], mask.stride(0))
        arguments = (
            *(q, DTYPES[q.dtype], keys, values, KV_DTYPES[keys.dtype], keys.stride(0), *masked),
            *(sums, statistics, nodes, q_heads, kv_heads, num_keys, splits),
            *(None, None, None, 0, 0, softcap or 0.0),
        )
        if uses_mma:
            grid = kv_heads * splits * -(-rows // 64)
            self.kernels.launch(name, grid, 128, *arguments)
        else:
            grid = kv_heads * splits * -(-rows // 16)
            self.kernels.launch(name, grid, 128, *arguments, head_dim)
        out = torch.empty_like(q)
        sinks_dtype = 0 if sinks is None else DTYPES[sinks.dtype]
        self.kernels.launch(
            "merge_splits", kv_heads * rows, -(-head_dim // 32) * 32,
            sums, statistics, sinks, sinks_dtype, out, DTYPES[q.dtype], None,
            nodes, q_heads, kv_heads, splits, head_dim, None, 0, 1.0,
        )  # fmt: skip
        return out.view(nodes, q_heads * head_dim)


def attention_kernel(head_dim: int, dtype: torch.dtype, has_tensor_cores: bool) -> str:
    """Return the name of the attention kernel for a cache.

    Args:
        head_dim: Size of a head.
        dtype: Dtype of the cache; uint8 for Q8_0.
        has_tensor_cores: The card multiplies halves by tensor cores.
    """
    if not has_tensor_cores or head_dim not in MMA_DIMS:
        return "attend_dot"
    return f"attend_mma_{'q8_' * (dtype == torch.uint8)}{head_dim}"


@cache
def card_attention(device: torch.device) -> CardAttention | None:
    """Return attention by a card's kernels; None if they are missing or compute wrong results."""
    kernels = load_kernels(device) if device.type == "cuda" else None
    if kernels is None:
        return None
    attention = CardAttention(kernels, cuda.has_tensor_cores(device))
    for head_dim in (*MMA_DIMS, 80):
        if not _is_correct(attention, head_dim, device):
            report_wrong(device, f"attention with heads of {head_dim} numbers")
            return None
    return attention


@cache
def small_cache_works(device: torch.device) -> bool:
    """Whether decoding steps read and write keys and values in 8 bits correctly on a card."""
    kernels = load_kernels(device)
    if kernels is None:
        return False
    attention = CardAttention(kernels, cuda.has_tensor_cores(device))
    is_read = all(_is_correct(attention, dim, device, in_8_bits=True) for dim in (*MMA_DIMS, 80))
    if is_read and _rotation_is_correct(kernels, device, in_8_bits=True):
        return True
    report_wrong(device, "8-bit keys and values")
    return False


@cache
def fused_kernels_work(device: torch.device) -> bool:
    """Whether norms and rotations of decoding steps are correct on a card."""
    kernels = load_kernels(device)
    if kernels is None:
        return False
    checks = {
        "fused norms": _norm_is_correct,
        "fused rotations": _rotation_is_correct,
    }
    wrong = [name for name, check in checks.items() if not check(kernels, device)]
    for name in wrong:
        report_wrong(device, name)
    return not wrong


def _norm_is_correct(kernels: Kernels, device: torch.device) -> bool:
    """Compare the norm of 3 rows, after an update of them, with float64."""
    generator = torch.Generator().manual_seed(2)
    x, update = torch.randn(2, 3, 352, generator=generator)
    post, weight = torch.randn(2, 352, generator=generator)
    eps, slope, offset = 1e-5, 3.0, 0.5
    summed = x + _normed(update, eps) * post
    expected = _normed(summed, eps) * weight
    x_there, y = x.to(device), torch.full((3, 352), torch.nan, device=device)
    halves, scales = torch.full_like(y, torch.nan).half(), torch.full_like(y[:, 0], torch.nan)
    product_scales = torch.full_like(scales, torch.nan)
    codes, steps = torch.full_like(y, 119).char(), torch.full_like(y[:, :11], torch.nan)
    kernels.launch(
        "norm_rows", 3, 256, x_there, 0, update.to(device), post.to(device), weight.to(device),
        halves, scales, product_scales, codes, steps, y, 352, eps, slope, offset,
    )  # fmt: skip
    order = torch.tensor([0, 2, 1, 3, 4, 6, 5, 7])  # of rows_mma
    numbers = halves.cpu().view(3, -1, 8)[:, :, order.argsort()].reshape(3, -1)
    most = (expected.norm(dim=1) * slope + offset).square() / product_scales.cpu()
    found = (
        (x_there.cpu(), summed, 1e-5),
        (y.cpu(), expected, 1e-5),
        (numbers.float() * scales.cpu()[:, None], expected, 1e-3),
        (codes.cpu().view(3, 11, 32) * steps.cpu()[:, :, None], expected.view(3, 11, 32), 0.02),
    )
    return bool(((most > 16384) & (most <= 32768)).all()) and all(
        bool((one - other).norm() / other.norm() < error) for one, other, error in found
    )


def _normed(x: Tensor, eps: float) -> Tensor:
    """RMS-normalize rows without a weight, for comparisons. [n, width]"""
    return x * (x.square().mean(dim=1, keepdim=True) + eps).rsqrt()


def _rotation_is_correct(
    kernels: Kernels, device: torch.device, *, in_8_bits: bool = False
) -> bool:
    """Compare rotated heads of 3 rows, and what reaches the cache, with torch."""
    heads, kv_heads, head_dim, slots, eps, scale = 4, 2, 80, 9, 1e-5, 0.3
    generator = torch.Generator().manual_seed(3)
    qkv = torch.randn(3, heads + 2 * kv_heads, head_dim, generator=generator)
    weights = torch.randn(heads + kv_heads, head_dim, generator=generator)
    angles = torch.randn(20, head_dim // 2, generator=generator)
    table = torch.polar(torch.ones_like(angles), angles)
    positions, places = torch.tensor([5, 0, 19]), torch.tensor([7, 2, 3])
    turned = qkv[:, : heads + kv_heads]
    normed = _normed(turned.reshape(-1, head_dim), eps).view_as(turned) * weights
    turns = table.index_select(0, positions).repeat_interleave(heads + kv_heads, 0)
    rotated = rotate(normed.reshape(3, -1), turns.view(3, heads + kv_heads, -1))
    width = packed_bytes(head_dim, "q8_0") if in_8_bits else head_dim
    cache = torch.full((2, 2, kv_heads, slots, width), torch.nan, device=device).half()
    cache = torch.full_like(cache, 119, dtype=torch.uint8) if in_8_bits else cache
    addresses = [part.data_ptr() for part in cache[1]]
    step = torch.tensor([0, slots, 3, 0, 0, *addresses]).to(device)
    q = torch.full((3, heads, head_dim), torch.nan, device=device)
    kernels.launch(
        "rotate_rows", -(-3 * qkv.shape[1] // 4), 128, qkv.to(device), 0, weights.to(device),
        torch.view_as_real(table).to(device), step, positions.to(device), places.to(device),
        q, KV_DTYPES[cache.dtype], 1, 3, heads, kv_heads, head_dim, scale, eps,
    )  # fmt: skip
    stored, error = cache.cpu(), 0.01 if in_8_bits else 1e-3
    keys, values = (stored[1, part][:, places].transpose(0, 1) for part in (0, 1))
    if in_8_bits:
        keys, values = (unpack_blocks(part, head_dim) for part in (keys, values))
    found = (
        (q.cpu(), rotated[:, :heads] * scale, 1e-5),
        (keys, rotated[:, heads:], error),
        (values, qkv[:, heads + kv_heads :], error),
    )
    stored[1][:, :, places] = cache[0, 0, 0, 0, 0].cpu()  # all others are as before
    others = bool((stored == 119).all() if in_8_bits else stored.isnan().all())
    return others and all(
        bool((one - other).norm() / other.norm() < error) for one, other, error in found
    )


def _is_correct(
    attention: CardAttention, head_dim: int, device: torch.device, *, in_8_bits: bool = False
) -> bool:
    """Compare a tree of 7 nodes over 530 keys with torch in float64."""
    nodes, q_heads, kv_heads, num_keys = 7, 4, 2, 530
    generator = torch.Generator().manual_seed(head_dim)
    shapes = ((nodes, q_heads, head_dim), *[(kv_heads, num_keys, head_dim)] * 2)
    q, keys, values = (torch.randn(*shape, generator=generator).half() for shape in shapes)
    q *= head_dim**-0.5
    on_card = [keys, values]
    if in_8_bits:
        on_card = [pack_blocks(part) for part in on_card]
        keys, values = (unpack_blocks(part, head_dim) for part in on_card)
    mask = torch.zeros(nodes, num_keys)
    mask[torch.rand(nodes, num_keys, generator=generator) < 0.3] = -torch.inf
    mask[:, 256:400] = -torch.inf  # tiles that are skipped
    wide = mask.double().repeat(q_heads // kv_heads, 1)
    expected = attend_by_products(q.double(), keys.double(), values.double(), wide)
    on_keys, on_values = (part.to(device) for part in on_card)
    mixed = attention(q.to(device), on_keys, on_values, mask.to(device))
    found = mixed.cpu().double()
    return bool((found - expected).norm() / expected.norm() < _MOST_ERROR)
