"""How kinds of heads read and check the tensors of their parts, whatever files call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.medusa import MakeLinear
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear

TakeTensor = Callable[[str], Tensor | None]


def part_tensors(
    checkpoint: Checkpoint,
    names: Mapping[str, str],
    precision: Precision,
    integers: Mapping[str, Callable[[Tensor], Tensor]],
) -> TakeTensor:
    """Reads parts of heads.

    Args:
        checkpoint: Holds them.
        names: Of each part the tensor's name.
        precision: Where the heads run, and their compute dtype.
        integers: The parts that hold whole numbers, and what checks them.

    Returns:
        Gives a part on the device: in the compute dtype, or int64; None where there is none. It
        raises CheckpointError or HeadsError.
    """

    def take(part: str) -> Tensor | None:
        name = names.get(part)
        if name is None:
            return None
        if (checked := integers.get(part)) is not None:
            return checked(checkpoint.integers(name)).to(precision.device)
        tensor = check_finite(name, checkpoint.floats(name, precision.compute))
        return tensor.to(precision.device)

    return take


def need(take: TakeTensor, part: str) -> Tensor:
    """A part that is there."""
    tensor = take(part)
    assert tensor is not None  # whoever read the names has seen to it
    return tensor


def linears_of(formats: PartFormats, precision: Precision) -> MakeLinear:
    """Makes layers in the format that heads have."""

    def make(weight: Tensor, bias: Tensor | None) -> QuantLinear:
        spec = formats.fitting(formats.heads, *weight.shape)
        return spec.build(spec.quantize(weight), len(weight), bias, precision.compute)

    return make


def check_finite(name: str, tensor: Tensor) -> Tensor:
    """The tensor, if it holds numbers alone.

    Raises:
        HeadsError: It doesn't: drafts would be nothing.
    """
    if not bool(torch.isfinite(tensor).all()):
        raise HeadsError(f"{name} holds what is no number.", "Download the heads again.")
    return tensor


def tokens_of_columns(offsets: Tensor, config: ModelConfig) -> Tensor:
    """The tokens that heads draft from. int64 [columns]

    Args:
        offsets: How far each token's id lies behind its column. int64 [columns]
        config: Sizes of the target.

    Raises:
        HeadsError: One leads out of the vocabulary, or two to the same token.
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
