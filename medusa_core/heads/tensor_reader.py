"""Reading and checking of tensors that several kinds of heads share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.medusa import BuildLinear
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear

ReadTensor = Callable[[str], Tensor | None]


def tensor_reader(
    checkpoint: Checkpoint,
    names: Mapping[str, str],
    precision: Precision,
    integers: Mapping[str, Callable[[Tensor], Tensor]],
) -> ReadTensor:
    """Return a function that reads a part by name, checked and on the device.

    Args:
        names: Tensor name of each part.
        precision: Device and compute dtype.
        integers: Checks of parts that hold integers, by part.

    Returns:
        Reads a part to the device, in the compute dtype or int64; None if it is missing. Raises
        CheckpointError or HeadsError.
    """

    def read_part(part: str) -> Tensor | None:
        """Read a part to the device; None if the checkpoint lacks it."""
        name = names.get(part)
        if name is None:
            return None
        if (checked := integers.get(part)) is not None:
            return checked(checkpoint.integers(name)).to(precision.device)
        return read_tensor(checkpoint, precision, name)

    return read_part


def read_tensor(checkpoint: Checkpoint, precision: Precision, name: str) -> Tensor:
    """Read a floating-point tensor to the device.

    Raises:
        CheckpointError: The tensor is missing, or isn't floating-point.
        HeadsError: It has NaN or infinity.
    """
    return check_finite(name, checkpoint.floats(name, precision.compute)).to(precision.device)


def need(read_part: ReadTensor, part: str) -> Tensor:
    """Read a part that must exist."""
    tensor = read_part(part)
    assert tensor is not None  # names were checked
    return tensor


def linears_of(formats: PartFormats, precision: Precision) -> BuildLinear:
    """Return a builder of linear layers in the heads' weight format."""

    def build_linear(weight: Tensor, bias: Tensor | None) -> QuantLinear:
        """Quantize a matrix and make its layer."""
        spec = formats.fitting(formats.heads, *weight.shape)
        return spec.build(spec.quantize(weight), len(weight), bias, precision.compute)

    return build_linear


def check_finite(name: str, tensor: Tensor) -> Tensor:
    """Check that a tensor has no NaN or infinity.

    Raises:
        HeadsError: It has: drafts would be meaningless.
    """
    if not bool(torch.isfinite(tensor).all()):
        raise HeadsError(tr("{0} holds what is no number.", name), "Download the heads again.")
    return tensor


def tokens_of_columns(offsets: Tensor, config: ModelConfig) -> Tensor:
    """Return the token id of each column. int64 [columns]

    Args:
        offsets: Difference of token id and column (`d2t`). int64 [columns]
        config: Sizes of the target.

    Raises:
        HeadsError: A token isn't in the vocabulary, or occurs twice.
    """
    token_ids = offsets + torch.arange(len(offsets))
    ids = token_ids.tolist()
    if not all(0 <= token_id < config.vocab_size for token_id in ids):
        raise HeadsError(
            "d2t leads to tokens that the model hasn't.",
            "Choose the heads that were trained for this model.",
        )
    if len(set(ids)) != len(ids):
        raise HeadsError("d2t names a token twice.", "Download the heads again.")
    return token_ids
