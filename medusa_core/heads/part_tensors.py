"""How kinds of heads read the tensors of their parts, whatever these are called in the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from medusa_core.heads.checks import check_finite
from medusa_core.heads.medusa import MakeLinear
from medusa_core.models.checkpoints.checkpoint import Checkpoint
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
