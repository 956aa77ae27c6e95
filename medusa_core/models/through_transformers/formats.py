"""Weight formats and options of models that run through transformers."""

from __future__ import annotations

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats

_IN_FOUR_BITS = ("nf4", "nf4-dq")
_HINT = tr("Leave the option out, or choose a model of a family that has a runner here.")


def lack_of(config: ModelConfig, formats: PartFormats) -> str:
    """Return why a model can't be loaded in these formats, as a sentence; empty if it can."""
    if config.has_native_family:
        return ""
    dense = (formats.lm_head, formats.embedding)
    if not all(spec.is_dense for spec in dense) or formats.embedding_in_ram:
        return tr("Through transformers, the first and last layer are plain numbers on the device.")
    is_card = formats.device == "cuda"
    if formats.linears.is_dense or (is_card and formats.linears.name in _IN_FOUR_BITS):
        return ""
    return tr("Through transformers, weights are plain numbers, or nf4 on a card.")


def check_options(
    config: ModelConfig, formats: PartFormats, *, has_adapter: bool, is_divided: bool
) -> None:
    """Refuse options that aren't available through transformers.

    Args:
        config: Configuration of the model.
        formats: Weight formats.
        has_adapter: Whether a LoRA is applied.
        is_divided: Whether layers run on other machines.

    Raises:
        RequestError: An option isn't available.
    """
    if config.has_native_family:
        return
    if lack := lack_of(config, formats):
        raise RequestError(lack, "Leave the weight format open.")
    wanted = {
        "--adapter": has_adapter,
        "--cluster": is_divided,
        "--cache-type": bool(formats.cache_format),
        "--sparse-attention": bool(formats.attended),
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            kind = config.model_type
            raise RequestError(
                tr("{0} isn't possible for {1} models: they run through transformers.", name, kind),
                _HINT,
            )
