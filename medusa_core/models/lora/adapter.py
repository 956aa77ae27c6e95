"""Apply a LoRA: merged into weights while they are read, or added to quantized layers.

Source: Hu et al. 2021, "LoRA", section 4.1.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import AdapterError, CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_config import CONFIG_NAME
from medusa_core.models.lora.adapter_shape import (
    WEIGHTS_NAME,
    AdapterShape,
    read_adapter_shape,
)
from medusa_core.models.precision import Precision
from medusa_core.models.quant.combined_linear import adapted_linear
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_adapter import Up
from medusa_core.models.row_order import rows_of, strided_by_group

_CHUNK_ROWS = 512  # rows that are in float64 at a time


class Adapter:
    """A LoRA in PEFT's format.

    Attributes:
        shape: Its layers and their sizes.
    """

    def __init__(self, folder: Path, config: ModelConfig) -> None:
        """Open a LoRA; its matrices are read later.

        Args:
            folder: Folder of the LoRA.
            config: Configuration of the base model.

        Raises:
            AdapterError: The folder has no LoRA, it is damaged, or it doesn't fit the model.
        """
        self.shape: AdapterShape = read_adapter_shape(folder, config)
        self.files = frozenset((folder / WEIGHTS_NAME, folder / CONFIG_NAME))
        self._checkpoint = Checkpoint.open_file(folder / WEIGHTS_NAME)
        self._heads = config.head_rows

    def factors(self, layer: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Read A and the scaled B of a layer. [rank, columns], [rows, rank]

        Raises:
            AdapterError: They aren't finite, or can't be read.
        """
        pair = self.shape.pairs[layer]
        try:
            a, b = (self._checkpoint.floats(name, dtype) for name in pair.names)
        except CheckpointError as error:
            raise AdapterError(error.message, "Download the adapter again.") from error
        scaled = b * pair.scale
        if not (bool(torch.isfinite(a).all()) and bool(torch.isfinite(scaled).all())):
            raise AdapterError(
                tr("What the adapter adds to {0} holds something that is no number.", layer),
                "Choose another adapter.",
            )
        return a, scaled

    def merged(self, layer: str, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Merge the LoRA into the weights of a layer.

        Computed in float64: float32 sums would be rounded differently on different CPUs.

        Args:
            layer: Name of the layer.
            weight: [rows, columns]
            dtype: Dtype of the result.
        """
        if layer not in self.shape.pairs:
            return weight.to(dtype)
        a, b = self.factors(layer, torch.float64)
        merged = torch.empty(weight.shape, dtype=dtype)
        chunks = (torch.split(tensor, _CHUNK_ROWS) for tensor in (weight, b, merged))
        for weight_rows, b_rows, merged_rows in zip(*chunks, strict=True):
            merged_rows.copy_(torch.addmm(weight_rows.double(), b_rows, a))
        return merged

    def merged_into(self, part: LinearSpec, numbers: Tensor, dtype: torch.dtype) -> Tensor:
        """Merge the LoRA into dequantized weights of a layer whose rows are gathered.

        Args:
            part: Description of the layer.
            numbers: [rows, columns]
            dtype: Dtype of the result.
        """
        down, ups = self._stacked(part, torch.float64)
        merged = numbers.double()
        for up in ups:
            inner = up.matrix.shape[1]
            rows = merged[up.first : up.first + len(up.matrix)]
            rows.addmm_(up.matrix, down[up.start : up.start + inner])
        return merged.to(dtype)

    def add_to(self, part: LinearSpec, base: QuantLinear, precision: Precision) -> QuantLinear:
        """Return a layer to whose outputs the LoRA is added.

        Args:
            part: Description of the layer.
            precision: Compute dtype and device.
        """
        if not self.shape.changes(part):
            return base
        wide = torch.promote_types(precision.compute, torch.float32)
        down, ups = self._stacked(part, wide)

        def placed(matrix: Tensor) -> Tensor:
            """Move a LoRA matrix to the layer's device and compute dtype."""
            return matrix.to(precision.device, precision.compute).contiguous()

        return adapted_linear(
            base, placed(down), [up._replace(matrix=placed(up.matrix)) for up in ups]
        )

    def _stacked(self, part: LinearSpec, dtype: torch.dtype) -> tuple[Tensor, list[Up]]:
        """Read A of all pieces of a layer, concatenated, and each piece's scaled B.

        Rows and columns are in the order of weights that are quantized in their files.
        """
        factors: dict[str, tuple[Tensor, Tensor]] = {}
        starts, rank = {}, 0
        for piece in part.pieces:
            if piece.name in self.shape.pairs and piece.name not in factors:
                a, b = self.factors(piece.name, dtype)
                a = a if part.grouped_heads is None else strided_by_group(a, part.grouped_heads)
                factors[piece.name], starts[piece.name] = (a, b), rank
                rank += len(a)
        ups, first_row = [], 0
        for piece in part.pieces:
            if piece.name in factors:
                rows = rows_of(piece, factors[piece.name][1], self._heads)
                ups.append(Up(rows, starts[piece.name], first_row))
            first_row += piece.rows
        return torch.cat([a for a, _ in factors.values()]), ups
