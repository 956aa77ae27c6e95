"""Layers of a block drafter, whose attention also reads the target's hidden states.

The target's features of a token become keys and values of every layer, and pass through nothing
else. Rows of a block see these keys, and each other.

Source: DFlash (arXiv 2602.06036), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.heads.block_settings import BlockSettings
from medusa_core.heads.draft_blocks import BlockReader, vector_bytes
from medusa_core.heads.medusa import BuildLinear
from medusa_core.heads.tensor_reader import ReadTensor
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import linears_of
from medusa_core.runtime.backends.caches import SequenceRows
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, project, run_block
from medusa_core.runtime.kv.tensor import TensorCache


class BlockLayers:
    """All layers of a drafter.

    Attributes:
        linears: Linear layers.
        kv_linears: Projections to keys and values alone, over the memory of `linears`.
        vector_bytes: Bytes of norms, scales and convolution kernels.
    """

    def __init__(
        self,
        config: ModelConfig,
        settings: BlockSettings,
        read_part: ReadTensor,
        build_linear: BuildLinear,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            config: Sizes of the layers.
            settings: Attention masks, and the order of the rotated pairs.
            read_part: Reads a part in the compute dtype on the device; None if it is missing.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            precision: Dtypes and device.
        """
        self._config, self._precision = config, precision
        self._visibility = tuple(zip(settings.windows, settings.are_causal, strict=True))
        reader = BlockReader(config, read_part, build_linear, settings.is_interleaved)
        layers = [reader.read_with_kv(f"{i}.") for i in range(config.num_layers)]
        self._blocks = [block for block, _ in layers]
        self._only_kv = [attention for _, attention in layers]
        self._ropes = [Rope(config, precision.scores, precision.device)]
        self.linears = list(linears_of(self._blocks))
        self.kv_linears = [attention.qkv for attention in self._only_kv]
        self.vector_bytes = vector_bytes(self._blocks)

    def inject(self, features: Tensor, position: int, kv: TensorCache) -> None:
        """Store keys and values of the target's features in every layer.

        Args:
            features: Features of consecutive tokens. [n, hidden]
            position: Position of the first.
            kv: Cache; gets a row per token.
        """
        context = self._context(position, len(features), kv)
        kv.reserve(len(features))
        for index, attention in enumerate(self._only_kv):
            rotated, _ = project(attention, features, context)
            kv.write(index, rotated)
        kv.commit(range(len(features)))

    def __call__(self, x: Tensor, position: int, kv: TensorCache) -> Tensor:
        """Run a block; its own rows aren't kept in the cache.

        Args:
            x: Token embeddings. [n, hidden]
            position: Position of the first row.
            kv: Rows of the tokens before, with room for the block.

        Returns:
            Output of the last layer. [n, hidden]
        """
        context = self._context(position, len(x), kv)
        kv.reserve(len(x))  # and never committed
        masks = {one: self._mask(len(x), kv.length, *one) for one in set(self._visibility)}
        for index, block in enumerate(self._blocks):
            rows = SequenceRows(slice(0, len(x)), masks[self._visibility[index]], kv)
            x = run_block(index, block, x, context, [rows])
        return x

    def _context(self, position: int, count: int, kv: TensorCache) -> PassContext:
        """Return the context of consecutive rows from a position on."""
        end = position + count
        positions = torch.arange(position, end, device=self._precision.device)
        num_positions, scores = max(kv.capacity, end), self._precision.scores
        return PassContext.of_layers(self._config, positions, num_positions, self._ropes, scores)

    def _mask(
        self, count: int, num_before: int, window: int | None, is_causal: bool
    ) -> Tensor | None:
        """Return the additive mask of a block's rows over the rows before it and each other."""
        if window is None and not is_causal:
            return None
        device = self._precision.device
        slots = torch.arange(num_before + count, device=device)
        ahead = slots - slots[num_before:, None]
        hidden = ahead > 0 if is_causal else torch.zeros_like(ahead, dtype=torch.bool)
        if window is not None:
            hidden |= ahead.abs() >= window
        mask = torch.zeros(hidden.shape, dtype=self._precision.scores, device=device)
        group = self._config.num_heads // self._config.num_kv_heads
        return mask.masked_fill_(hidden, float("-inf")).repeat(group, 1)
