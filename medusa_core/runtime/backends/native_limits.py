"""Which models the compiled step computes. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats
from medusa_core.system.native.constants import LANES, MAX_KERNEL_SIZE


def why_not(config: ModelConfig, formats: PartFormats | None = None) -> str | None:
    """Return why the compiled step doesn't compute a model, for people; None if it does.

    Args:
        config: The model.
        formats: Format of every part; None to look at the model alone.
    """
    shapes = config.state_layers
    states = [size for shape in shapes for size in (shape.key_dim, shape.value_dim)]
    odd = [size for size in (*config.row_sizes, *states) if size % LANES]
    taps = max((shape.conv_width for shape in shapes), default=0)
    if not config.has_native_family:
        reason = tr("transformers runs it")
    elif odd:
        reason = tr("it has rows of {0} numbers, which isn't a multiple of {1}", odd[0], LANES)
    elif taps > MAX_KERNEL_SIZE:
        reason = tr("its convolutions read {0} rows, more than {1}", taps, MAX_KERNEL_SIZE)
    else:
        return None if formats is None else _why_not_formats(config, formats)
    return reason


def _why_not_formats(config: ModelConfig, formats: PartFormats) -> str | None:
    """Return why the compiled step doesn't support the formats of a model; None if it does."""
    if formats.device != "cpu":
        reason = tr("it runs on a graphics card")
    elif formats.cache_format == "q4":
        reason = tr("its keys and values are kept as {0}", formats.cache_format)
    elif formats.attended:
        reason = tr("its attention is sparse")
    elif not formats.compiles:
        names = f"{formats.linears.name} in {formats.compute}"
        reason = tr("this processor has no kernels for {0}", names)
    elif config.quantization and not formats.keeps_blocks:
        reason = tr("its weights are stored as {0}", config.quantization)
    else:
        return None
    return reason


def torch_note(config: ModelConfig, formats: PartFormats) -> str:
    """Return why a CPU runs a model without the compiled step; empty if it doesn't."""
    note, reason = "", why_not(config, formats)
    if formats.device == "cpu" and config.has_native_family and reason is not None:
        note = tr("Not compiled: {0}.", reason)
    return note
