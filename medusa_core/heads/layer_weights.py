"""Weights of a one-layer model within heads: own tensors, and weights shared with the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.heads.medusa import SharedWeights
from medusa_core.heads.tensor_reader import check_finite
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint, EachPiece, missing_tensor
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import CheckpointWeights


class NamedTensors(Checkpoint):
    """Some tensors of a checkpoint under other names, in float32."""

    def __init__(self, checkpoint: Checkpoint, stored: Mapping[str, str]) -> None:
        """Select the tensors.

        Args:
            stored: Stored name of each tensor, by its new name.
        """
        super().__init__({})
        self._checkpoint, self._name_of = checkpoint, dict(stored)
        self.names = frozenset(stored)

    @property
    def files(self) -> frozenset[Path]:
        """Files of the checkpoint."""
        return self._checkpoint.files

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._checkpoint.shape(self._stored_name(name))

    def dtype(self, name: str) -> str:
        """Return float32, the dtype in which `floats` returns every tensor."""
        return "float32"  # as `floats` returns them

    def floats(self, name: str, dtype: torch.dtype | None) -> Tensor:
        """Read a tensor; NaN and infinity raise."""
        stored = self._stored_name(name)
        return check_finite(stored, self._checkpoint.floats(stored, dtype))

    def _raw(self, name: str, each_piece: EachPiece) -> Tensor:
        """Read a tensor in its stored dtype."""
        return self._checkpoint._raw(self._stored_name(name), each_piece)

    def _stored_name(self, name: str) -> str:
        """Return the name of a tensor in the checkpoint."""
        if name not in self._name_of:
            raise missing_tensor(name)
        return self._name_of[name]


class LayerWeights(CheckpointWeights):
    """Reads a layer in the heads' weight format; shared weights don't count as memory."""

    def __init__(
        self,
        tensors: Checkpoint,
        layer: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        shared_weights: SharedWeights,
    ) -> None:
        """Prepare to read.

        Args:
            tensors: Tensors of the layer, by their names in a model of one layer.
            layer: Sizes of that model.
            precision: Dtypes and device.
            formats: Weight formats, with that of heads.
            shared_weights: Weights of the target that are shared.
        """
        own = replace(formats, linears=formats.heads, keeps_blocks=False)
        super().__init__(tensors, layer, precision, own)
        self._shared = shared_weights

    def vector(self, name: str, size: int) -> Tensor:
        """Read a norm's weight; counted with its epsilon in float32."""
        held, vector = self.nbytes, super().vector(name, size)
        wide = torch.promote_types(vector.dtype, torch.float32)
        self.nbytes = held + (size + 1) * wide.itemsize  # a norm keeps its epsilon beside it
        return vector

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Return the target's token embeddings; a layer has no others."""
        return self._shared.embedding

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """Return the target's LM head."""
        return self._shared.lm_head
