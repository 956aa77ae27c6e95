"""A LoRA at hand: merged into weights as they are read, or beside those that are quantized.

Source: Hu et al. 2021, "LoRA", section 4.1.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import AdapterError, CheckpointError
from medusa_core.models.blocks.tensors import LinearSpec, strided_by_group
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_config import CONFIG_NAME
from medusa_core.models.lora.adapter_shape import (
    WEIGHTS_NAME,
    AdapterShape,
    read_adapter_shape,
)
from medusa_core.models.precision import Precision
from medusa_core.models.quant.beside_linear import adapted_linear
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_adapter import Up

_ROWS_AT_ONCE = 512  # of weights that are 64 bits wide meanwhile


class Adapter:
    """A LoRA in a folder.

    Attributes:
        shape: Its sizes.
        files: Its files.
    """

    def __init__(self, folder: Path, config: ModelConfig) -> None:
        """Open it.

        Args:
            folder: In PEFT's layout.
            config: Of the model that it is to change.

        Raises:
            AdapterError: It is none, is damaged, or doesn't fit the model.
        """
        self.shape: AdapterShape = read_adapter_shape(folder, config)
        self.files = frozenset((folder / WEIGHTS_NAME, folder / CONFIG_NAME))
        self._checkpoint = Checkpoint.open_file(folder / WEIGHTS_NAME)
        self._heads = config.head_rows

    def factors(self, layer: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """A, and B times its scale. [rank, columns], [rows, rank]

        Raises:
            AdapterError: They hold something that is no number.
        """
        pair = self.shape.pairs[layer]
        try:
            a, b = (self._checkpoint.floats(name, dtype) for name in pair.names)
        except CheckpointError as error:
            raise AdapterError(error.message, "Download the adapter again.") from error
        scaled = b * pair.scale
        if not (bool(torch.isfinite(a).all()) and bool(torch.isfinite(scaled).all())):
            raise AdapterError(
                f"What the adapter adds to {layer} holds something that is no number.",
                "Choose another adapter.",
            )
        return a, scaled

    def merged(self, layer: str, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """A layer's weights and what is added to them; as they are where nothing is.

        Summed in float64: sums of 32 bits would be rounded in another way on another CPU.

        Args:
            layer: Its name.
            weight: [rows, columns]
            dtype: Of the result.
        """
        if layer not in self.shape.pairs:
            return weight.to(dtype)
        a, b = self.factors(layer, torch.float64)
        merged = torch.empty(weight.shape, dtype=dtype)
        parts = (torch.split(tensor, _ROWS_AT_ONCE) for tensor in (weight, b, merged))
        for some, some_b, to in zip(*parts, strict=True):
            to.copy_(torch.addmm(some.double(), some_b, a))
        return merged

    def beside(self, part: LinearSpec, base: QuantLinear, precision: Precision) -> QuantLinear:
        """A layer with what is added to it; as it is where nothing is.

        Args:
            part: What the layer is.
            base: The layer.
            precision: Dtype and device to compute in.
        """
        if not self.shape.changes(part):
            return base
        wide = torch.promote_types(precision.compute, torch.float32)
        names = list(dict.fromkeys(p.name for p in part.pieces if p.name in self.shape.pairs))
        factors = {name: self.factors(name, wide) for name in names}
        if part.grouped_heads is not None:
            factors = {
                name: (strided_by_group(a, part.grouped_heads), b)
                for name, (a, b) in factors.items()
            }

        def here(matrix: Tensor) -> Tensor:
            return matrix.to(precision.device, precision.compute).contiguous()

        ups, first_row, starts = [], 0, _starts({n: len(a) for n, (a, _) in factors.items()})
        for piece in part.pieces:
            if piece.name in factors:
                rows = piece.take(factors[piece.name][1])
                rows = piece.interleaved(rows, self._heads)
                ups.append(Up(here(rows), starts[piece.name], first_row))
            first_row += piece.rows
        return adapted_linear(base, here(torch.cat([factors[name][0] for name in names])), ups)


def _starts(ranks: dict[str, int]) -> dict[str, int]:
    """Where each layer's numbers begin among those of all."""
    found, start = {}, 0
    for name, rank in ranks.items():
        found[name] = start
        start += rank
    return found
