"""A decoder's parts from a kept model: read as they were quantized, and checked before use."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.blocks.sizes import EMBEDDING
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.quantized_cache.tensors import check_quantized
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import AfterPart, embedding_device, no_memory, read_table
from medusa_core.system.files.safetensors_header import read_metadata


class QuantizedWeights:
    """Reads what `CheckpointWeights` kept; see `Weights`."""

    def __init__(
        self,
        path: Path,
        config: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        after_part: AfterPart,
        original: Checkpoint,
    ) -> None:
        """Open a kept model.

        Args:
            path: Of it.
            config: Sizes of the target.
            precision: What it computes in, and where.
            formats: Format of every part.
            after_part: Called with the parameters that each part had.
            original: What it was made from, which has what isn't kept.

        Raises:
            CheckpointError: It isn't what was to be kept.
        """
        self._checkpoint = Checkpoint.open_file(path)
        self._original = original
        self._checksums = read_metadata(path)
        check_quantized(self._checkpoint, config, formats)
        self._config = config
        self._precision = precision
        self._formats = formats
        self._after_part = after_part
        self.num_parameters = 0
        self.nbytes = 0

    def vector(self, name: str, size: int) -> Tensor:
        return self._tensor(name, self._precision.device)

    def named(self, name: str, *shape: int) -> Tensor:
        return self._tensor(name, self._precision.device)

    def embedding(self) -> Tensor:
        return self._tensor(EMBEDDING, embedding_device(self._formats, self._precision))

    def token_table(self, name: str, rows: int, columns: int) -> Tensor | TokenTable:
        shape = (rows, columns)
        table = read_table(self._original, name, shape, self._formats, self._precision)
        self.nbytes += table.nbytes
        self._after(rows * columns)
        return table

    def linear(self, part: LinearSpec) -> QuantLinear:
        return self._linear(part, self._formats.linears)

    def _linear(self, part: LinearSpec, wanted: QuantSpec) -> QuantLinear:
        spec = part.fitting(wanted, self._formats)
        keys = spec.tensors(part.rows, part.columns, self._formats.compute)
        device, place = self._precision.device, f"{part.name}/{spec.name}"
        try:
            tensors = {key: self._read(f"{place}/{key}").to(device) for key in keys}
            bias = self._read(f"{place}/bias").to(device) if part.has_bias else None
            layer = spec.build(tensors, part.rows, bias, self._precision.compute)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise no_memory(part.name) from error
        self._after(part.rows * part.columns + (0 if bias is None else part.rows))
        self.nbytes += layer.nbytes
        return layer

    def lm_head(self, part: LinearSpec, embedding: Tensor) -> QuantLinear:
        if self._formats.shares_embedding(self._config.tie_embeddings):
            return make_linear(embedding)
        parameters = self.num_parameters
        layer = self._linear(part, self._formats.lm_head)
        if self._config.tie_embeddings:
            self.num_parameters = parameters  # they are the embedding's
        return layer

    def _read(self, name: str) -> Tensor:
        """A tensor whose bytes are those that were kept."""
        tensor, found = self._checkpoint.summed(name)
        if found != self._checksums.get(name):
            raise CheckpointError(
                f"The kept model's {name} isn't what was kept.", "Check the disk."
            )
        return tensor

    def _tensor(self, name: str, device: torch.device) -> Tensor:
        tensor = self._read(name).to(device)
        self.nbytes += tensor.nbytes
        self._after(tensor.numel())
        return tensor

    def _after(self, num_parameters: int) -> None:
        self.num_parameters += num_parameters
        self._after_part(num_parameters)
