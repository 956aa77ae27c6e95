"""A decoder's parts from a kept model: read as they were quantized."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.parts import EMBEDDING, LinearPart
from medusa_core.models.precision import Precision
from medusa_core.models.weights import AfterPart, embedding_device, no_memory
from medusa_core.quant.choice import PartFormats
from medusa_core.quant.format import quant_registry
from medusa_core.quant.linear import QuantLinear, make_linear


class KeptWeights:
    """Reads what `CheckpointWeights` kept; see `Weights`."""

    def __init__(
        self,
        path: Path,
        config: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        after_part: AfterPart,
    ) -> None:
        self._checkpoint = Checkpoint.open_file(path)
        self._config = config
        self._precision = precision
        self._formats = formats
        self._after_part = after_part
        self._names: dict[str, list[str]] = {}
        for name in self._checkpoint.names:
            self._names.setdefault(name.partition("/")[0], []).append(name)
        self.num_parameters = 0
        self.nbytes = 0

    def vector(self, name: str, size: int) -> Tensor:
        return self._tensor(name, (size,), self._precision.device)

    def embedding(self) -> Tensor:
        shape = (self._config.vocab_size, self._config.hidden_size)
        return self._tensor(EMBEDDING, shape, embedding_device(self._formats, self._precision))

    def linear(self, part: LinearPart) -> QuantLinear:
        device = self._precision.device
        tensors, bias, format_name = {}, None, ""
        try:
            for name in self._names.get(part.name, []):
                _, held, key = name.split("/")
                tensor = self._checkpoint.raw(name).to(device)
                if key == "bias":
                    bias = tensor
                else:
                    format_name, tensors[key] = held, tensor
            if not tensors:
                raise CheckpointError(f"The kept model lacks {part.name}.", "Load it once more.")
            spec = quant_registry().get(format_name)
            layer = spec.build(tensors, part.rows, bias, self._precision.compute)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise no_memory(part.name) from error
        self._after(part.rows * part.columns + (0 if bias is None else part.rows))
        self.nbytes += layer.nbytes
        return layer

    def lm_head(self, part: LinearPart, embedding: Tensor) -> QuantLinear:
        if self._formats.shares_embedding(self._config.tie_embeddings):
            return make_linear(embedding)
        parameters = self.num_parameters
        layer = self.linear(part)
        if self._config.tie_embeddings:
            self.num_parameters = parameters  # they are the embedding's
        return layer

    def _tensor(self, name: str, shape: tuple[int, ...], device: torch.device) -> Tensor:
        tensor = self._checkpoint.raw(name).view(shape).to(device)
        self.nbytes += tensor.nbytes
        self._after(tensor.numel())
        return tensor

    def _after(self, num_parameters: int) -> None:
        self.num_parameters += num_parameters
        self._after_part(num_parameters)
