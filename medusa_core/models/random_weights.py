"""Random weights of a model of any shape: meaningless text, real times."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.models.blocks.sizes import EMBEDDING
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import DTYPES, Precision
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.models.token_table import DenseTable, StoredTable, TokenTable
from medusa_core.models.weights import embedding_device

_SCALE = 0.02
_DRAWN = 1 << 22  # numbers; larger matrices repeat them


class RandomWeights:
    """Random weights of a target, quantized one by one; see `Weights`."""

    def __init__(self, config: ModelConfig, precision: Precision, formats: PartFormats) -> None:
        self.num_parameters = 0
        self.nbytes = 0
        self._config = config
        self._precision = precision
        self._formats = formats
        drawn = torch.randn(_DRAWN, generator=torch.Generator().manual_seed(1)) * _SCALE
        self._drawn = drawn.to(precision.device, precision.compute)
        self._weights: dict[tuple[str, int, int], dict[str, Tensor]] = {}

    def vector(self, name: str, size: int) -> Tensor:
        """A norm's weight: ones."""
        return self.named(name, size)

    def named(self, name: str, *shape: int) -> Tensor:
        """A tensor of ones in the compute dtype."""
        return self._counted(
            torch.ones(shape, dtype=self._precision.compute, device=self._precision.device)
        )

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Random embeddings; of those that stay in the model's files, few rows are made."""
        dtype = DTYPES[self._formats.embedding.compute[0]]
        if name == EMBEDDING and not self._formats.embedding_on_disk:
            table = self.matrix(rows, columns)
            device = embedding_device(self._formats, self._precision)
            return DenseTable(self._counted(table.to(device, dtype)))
        drawn = self.matrix(max(1, _DRAWN // columns), columns).to("cpu", dtype)
        made = StoredTable(
            lambda token_ids: torch.tensor([token % len(drawn) for token in token_ids]),
            lambda places, _: drawn.index_select(0, places),
            *((rows, columns), dtype),
        )
        self.num_parameters += rows * columns
        self.nbytes += made.nbytes
        return made

    def linear(self, part: LinearSpec) -> QuantLinear:
        """A random linear layer in its planned format."""
        spec = self._formats.fitting_linear(part, self._formats.linears)
        bias = None
        if part.has_bias:
            bias = torch.zeros(
                part.rows, dtype=self._precision.compute, device=self._precision.device
            )
        weight = self._quantized(spec, part.rows, part.columns)
        layer = spec.build(weight, part.rows, bias, self._precision.compute)
        self.num_parameters += part.rows * part.columns
        self.nbytes += layer.nbytes
        return layer

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """A random output projection, or the embeddings if they are tied."""
        if self._formats.shares_embedding(self._config.tie_embeddings):
            return make_linear(embedding.matrix())
        spec = self._formats.fitting(self._formats.lm_head, part.rows, part.columns)
        weight = self._quantized(spec, part.rows, part.columns)
        layer = spec.build(weight, part.rows, None, self._precision.compute)
        self.nbytes += layer.nbytes
        return layer

    def _quantized(self, spec: QuantSpec, rows: int, columns: int) -> dict[str, Tensor]:
        """Return random weights in a format, in memory of their own; drawn once for each shape."""
        shape = (spec.name, rows, columns)
        if shape not in self._weights:
            is_blocks = spec.name in BLOCK_SIZES
            self._weights[shape] = (
                {"blocks": random_blocks(*shape)}
                if is_blocks
                else spec.quantize(self.matrix(rows, columns))
            )
        return {name: tensor.clone() for name, tensor in self._weights[shape].items()}

    def matrix(self, rows: int, columns: int) -> Tensor:
        """Return a random matrix on the target's device. [rows, columns]"""
        repeats = -(-rows * columns // _DRAWN)
        return self._drawn.repeat(repeats)[: rows * columns].view(rows, columns)

    def _counted(self, tensor: Tensor) -> Tensor:
        """Count a tensor's parameters and bytes, and return it."""
        self.num_parameters += tensor.numel()
        self.nbytes += tensor.nbytes
        return tensor
