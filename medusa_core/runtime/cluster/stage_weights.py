"""The weights of some layers of a target, out of the weights of all of them."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import CheckpointWeights, Weights
from medusa_core.runtime.cluster.layer_range import (
    LayerRange,
    share_config,
)

_LAYER = re.compile(r"\blayers\.(\d+)\b")
_LEAST_OUTPUTS = 64


class StageWeights:
    """Gives a stage its layers under the numbers that they have in the whole target.

    A stage neither embeds nor projects: it gets token vectors without a row, and a projection that
    nobody asks.
    """

    def __init__(self, weights: Weights, config: ModelConfig, share: LayerRange) -> None:
        """Take layers out of a target.

        Args:
            weights: Of the whole target.
            config: Of the whole target.
            share: The layers.
        """
        self._weights = weights
        self._config = config
        self._share = share

    @property
    def num_parameters(self) -> int:
        return self._weights.num_parameters

    @property
    def nbytes(self) -> int:
        return self._weights.nbytes

    def vector(self, name: str, size: int) -> Tensor:
        return self._weights.vector(self._whole(name), size)

    def named(self, name: str, *shape: int) -> Tensor:
        return self._weights.named(self._whole(name), *shape)

    def embedding(self) -> Tensor:
        return torch.empty(0, self._config.hidden_size)

    def token_table(self, name: str, rows: int, columns: int) -> Tensor | TokenTable:
        return self._weights.token_table(name, rows, columns)

    def linear(self, part: LinearSpec) -> QuantLinear:
        pieces = tuple(replace(piece, name=self._whole(piece.name)) for piece in part.pieces)
        return self._weights.linear(replace(part, name=self._whole(part.name), pieces=pieces))

    def lm_head(self, part: LinearSpec, embedding: Tensor) -> QuantLinear:
        return make_linear(torch.zeros(_LEAST_OUTPUTS, self._config.hidden_size))

    def _whole(self, name: str) -> str:
        """A name with the layer's number in the whole target."""
        return _LAYER.sub(lambda found: f"layers.{int(found[1]) + self._share.first}", name, 1)


def read_share(
    files: ModelFiles,
    config: ModelConfig,
    share: LayerRange,
    precision: Precision,
    formats: PartFormats,
) -> Decoder:
    """Read some layers of a target; where they are none, its ends: what embeds and projects.

    Args:
        files: Of the whole target.
        config: Its sizes.
        share: The layers.
        precision: What it computes in, and where.
        formats: Weight formats of its parts.

    Raises:
        CheckpointError: A tensor is missing or misshapen.
        OutOfMemoryError: The device has no room.
    """
    whole = CheckpointWeights(files.checkpoint(), config, precision, formats)
    weights = StageWeights(whole, config, share) if share.num_layers else whole
    return Decoder(share_config(config, share), precision, weights)
