"""The cache in 8 or 4 bits: each row is quantized by itself when it is written.

Groups wouldn't do that span rows: an accepted draft row must equal the row of plain decoding, and a
truncated cache one that never went further.

Sources: 8 bits have the blocks of Q8_0 (ggml); 4 bits are Sheng et al., "FlexGen" (2023), section
5.1: min-max quantization in groups of 64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import (
    BLOCK,
    group_size,
    num_blocks,
    packed_bytes,
    row_groups,
)
from medusa_core.runtime.kv.tensor import TensorCache

_STEPS = 15  # between minimum and maximum of a group
_MOST_CODE = 127  # in 8 bits
_MAX_FLOAT16 = 65504.0


class _Codec(NamedTuple):
    """Conversion of heads of one size.

    Attributes:
        pack: [..., head_dim] → uint8 [..., bytes]
        unpack: uint8 [..., bytes] → float32 [..., head_dim]
    """

    pack: Callable[[Tensor], Tensor]
    unpack: Callable[[Tensor], Tensor]


def _codec_of(cache_format: str, head_dim: int) -> _Codec:
    """Return the conversion of a format."""
    if cache_format == "q8_0":
        return _Codec(pack_blocks, partial(unpack_blocks, head_dim=head_dim))
    group = group_size(head_dim)
    return _Codec(partial(pack, group=group), partial(unpack, group=group))


class QuantizedCache(TensorCache):
    """Keys and values in few bits. [layers, 2, kv heads, slots, bytes], uint8

    The bytes of a head in a slot: its codes, then float16 scales. In 8 bits a block of 32 elements
    has one scale, and the last block may be shorter. In 4 bits codes of the first half of the
    elements are in the low four bits, of the second half in the high ones; then come scale and
    minimum of each group.
    """

    def __init__(
        self,
        config: ModelConfig,
        precision: Precision,
        capacity: int,
        num_spare: int = 0,
        memory: Tensor | None = None,
        store: KvStore | None = None,
    ) -> None:
        """Allocate the cache; see `KvCache`."""
        self._format = precision.cache_format
        super().__init__(config, precision, capacity, num_spare, memory, store)
        self._reads = precision.cache
        self._codecs = [_codec_of(self._format, shape.head_dim) for shape in row_groups(config)]

    def _dtype(self, precision: Precision) -> torch.dtype:
        """Bytes: codes and scales are packed."""
        return torch.uint8

    def _width(self, head_dim: int) -> int:
        """Bytes of a head in a slot."""
        return packed_bytes(head_dim, self._format)

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Quantize and store the reserved rows of one layer; see `TensorCache.write`."""
        return super().write(layer, self._codecs[self._places[layer][0]].pack(rows))

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Dequantized keys and values of a layer in this pass."""
        part = self._places[layer][0]
        keys, values = super().read(layer)
        return self._unpacked(keys, part), self._unpacked(values, part)

    def rows_of(self, layer: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """Dequantized committed keys and values; see `ReadableCache`."""
        part = self._places[layer][0]
        keys, values = super().rows_of(layer, first)
        return self._unpacked(keys, part), self._unpacked(values, part)

    def committed(self) -> Tensor:
        """Copy all committed rows, dequantized."""
        rows = (part[:, :, :, : self.length] for part in self.full_parts())
        return self._concat_committed(
            [self._unpacked(each, part) for part, each in enumerate(rows)]
        )

    def _unpacked(self, packed: Tensor, part: int) -> Tensor:
        """Dequantize rows of one shape to the dtype of attention."""
        return self._codecs[part].unpack(packed).to(self._reads)


def pack_blocks(rows: Tensor) -> Tensor:
    """Quantize each head of each row to 8 bits, as the compiled step does.

    Args:
        rows: [..., head_dim]

    Returns:
        uint8 [..., bytes]
    """
    head_dim = rows.shape[-1]
    count = num_blocks(head_dim)
    most = _MOST_CODE * _MAX_FLOAT16
    numbers = F.pad(rows.float().clamp(-most, most), (0, -head_dim % BLOCK))
    blocks = numbers.view(*rows.shape[:-1], count, -1)
    scales = (blocks.abs().amax(-1, keepdim=True) / _MOST_CODE).half()
    # A block of zeros has scale 0: any divisor gives code 0.
    divisor = scales.float().masked_fill_(scales == 0, 1.0)
    codes = (blocks / divisor).round_().clamp_(-_MOST_CODE, _MOST_CODE).to(torch.int8)
    padded = F.pad(scales.squeeze(-1), (0, count % 2))
    codes = codes.flatten(-2)[..., :head_dim]
    return torch.cat([codes.view(torch.uint8), padded.view(torch.uint8)], dim=-1)


def unpack_blocks(packed: Tensor, head_dim: int) -> Tensor:
    """Dequantize what `pack_blocks` returned. uint8 [..., bytes] → float32 [..., head_dim]"""
    count = num_blocks(head_dim)
    codes, scales = packed[..., :head_dim].view(torch.int8), packed[..., head_dim:]
    numbers = scales.contiguous().view(torch.float16)[..., :count].float()
    if head_dim % BLOCK == 0:
        return (codes.reshape(*numbers.shape, BLOCK) * numbers[..., None]).flatten(-2)
    return codes * numbers.repeat_interleave(BLOCK, dim=-1)[..., :head_dim]


def pack(rows: Tensor, group: int) -> Tensor:
    """Quantize each head of each row to 4 bits.

    Args:
        rows: [..., head_dim]
        group: Number of elements that share a scale.

    Returns:
        uint8 [..., bytes]
    """
    groups = rows.float().clamp(-_MAX_FLOAT16, _MAX_FLOAT16).view(*rows.shape[:-1], -1, group)
    least, largest = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    least = least.half()
    step = ((largest - least.float()) / _STEPS).half()
    # A group of equal elements has scale 0: any divisor gives code 0.
    divisor = step.float().masked_fill_(step == 0, 1.0)
    codes = ((groups - least.float()) / divisor).round_().clamp_(0, _STEPS)
    low, high = codes.to(torch.uint8).flatten(-2).chunk(2, dim=-1)
    scales = torch.cat([step, least], dim=-1).flatten(-2)
    return torch.cat([high << 4 | low, scales.view(torch.uint8)], dim=-1)


def unpack(packed: Tensor, group: int) -> Tensor:
    """Dequantize what `pack` returned. uint8 [..., bytes] → float32 [..., head_dim]"""
    num_groups = packed.shape[-1] // (group // 2 + 4)
    num_halves, outer = num_groups * group // 2, packed.shape[:-1]
    halves, scales = packed[..., :num_halves], packed[..., num_halves:]
    codes = torch.cat([halves & 15, halves >> 4], dim=-1).float().view(*outer, num_groups, group)
    numbers = scales.contiguous().view(torch.float16).float().view(*outer, num_groups, 2)
    step, least = numbers[..., :1], numbers[..., 1:]
    return torch.addcmul(least, codes, step).flatten(-2)
