"""Weights of a range of a target's layers."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.models.blocks.sizes import EMBEDDING
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.token_table import DenseTable, TokenTable
from medusa_core.models.weights import CheckpointWeights, Weights
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.cluster.layer_range import (
    LayerRange,
    share_config,
)

_LAYER = re.compile(r"\blayers\.(\d+)\b")
_LEAST_OUTPUTS = 64


class StageWeights:
    """Maps a stage's layer indices, counted from 0, to those of the whole target.

    A stage doesn't embed or compute logits: its embedding table is empty, its lm_head unused.
    """

    def __init__(self, weights: Weights, config: ModelConfig, share: LayerRange) -> None:
        """Select layers of a target.

        Args:
            weights: Weights of the whole target.
            config: Config of the whole target.
            share: The layers.
        """
        self._weights = weights
        self._config = config
        self._share = share

    @property
    def num_parameters(self) -> int:
        """Parameters that were read so far."""
        return self._weights.num_parameters

    @property
    def nbytes(self) -> int:
        """Bytes of the weights that were read so far."""
        return self._weights.nbytes

    def vector(self, name: str, size: int) -> Tensor:
        """Read a vector of one of the stage's layers."""
        return self._weights.vector(self._in_target(name), size)

    def named(self, name: str, *shape: int) -> Tensor:
        """Read a tensor of one of the stage's layers."""
        return self._weights.named(self._in_target(name), *shape)

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Open the table of per-layer embeddings; a stage gets hidden states, not tokens."""
        if name == EMBEDDING:
            return DenseTable(torch.empty(0, columns))
        return self._weights.token_table(name, rows, columns)

    def linear(self, part: LinearSpec) -> QuantLinear:
        """Read a linear layer of one of the stage's layers."""
        pieces = tuple(replace(piece, name=self._in_target(piece.name)) for piece in part.pieces)
        return self._weights.linear(replace(part, name=self._in_target(part.name), pieces=pieces))

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """An output projection of zeros, which is never used."""
        return make_linear(torch.zeros(_LEAST_OUTPUTS, self._config.hidden_size))

    def _in_target(self, name: str) -> str:
        """Return a name with the layer's index in the whole target."""
        return _LAYER.sub(lambda found: f"layers.{int(found[1]) + self._share.first}", name, 1)


def read_share(
    files: ModelFiles,
    config: ModelConfig,
    share: LayerRange,
    precision: Precision,
    formats: PartFormats,
) -> Decoder:
    """Load a range of a target's layers; for an empty range, its embedding, last norm and lm_head.

    Args:
        files: Files of the whole target.
        config: Config of the whole target.
        share: The layers.
        precision: Dtypes and device.
        formats: Resolved weight formats.

    Raises:
        CheckpointError: A tensor is missing or misshapen.
        OutOfMemoryError: The device has no room.
    """
    whole = CheckpointWeights(files.checkpoint(), config, precision, formats)
    weights = StageWeights(whole, config, share) if share.num_layers else whole
    return Decoder(share_config(config, share), precision, weights)
