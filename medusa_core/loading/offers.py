"""Load options that take less memory, to offer after a model didn't fit; blocks."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.heads.kind import chosen_shape
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.memory.probe import live_budget
from medusa_core.loading.memory.recommend import smaller_choices
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.block_format import weight_formats

_DEFAULT_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class LoadOffer:
    """Load options that take less memory.

    Attributes:
        choice: The model with these options.
        format_label: Label of its weight format; empty if that is unchanged.
        context_tokens: Length of the context.
    """

    choice: ModelChoice
    format_label: str
    context_tokens: int


def smaller_loads(
    choice: ModelChoice, context_tokens: int = 0, device: str = "", own_bytes: int = 0
) -> tuple[LoadOffer, ...]:
    """Load options that take less memory than the current ones, the mildest first.

    Args:
        choice: The model with the current options.
        context_tokens: The context that it was loaded with; 0 if it wasn't.
        device: Torch device name; empty for the best available.
        own_bytes: Bytes of the device that it holds, which loading it again would free.

    Raises:
        ModelError: Its files can't be read.
        RequestError: There is no such device.
    """
    options, files = choice.options, ModelFiles.open(choice.model_dir)
    config = files.config
    heads = chosen_shape(files, choice.heads_dir, options.takes_own_heads)
    context = (
        context_tokens or options.context_tokens or min(_DEFAULT_CONTEXT, config.context_tokens)
    )
    budget = live_budget(device, own_bytes)
    draft_dir = options.assistant_dir
    draft_model = None if draft_dir is None else ModelFiles.open(draft_dir).config
    found = smaller_choices(config, heads, budget, options.formats, context, draft_model)
    return tuple(
        LoadOffer(
            choice.loaded_as(one.formats, one.context_tokens),
            _label(one.formats.linears) if one.formats != options.formats else "",
            one.context_tokens,
        )
        for one in found
    )


def _label(name: str) -> str:
    """Label of a weight format for users; empty for none."""
    return weight_formats().get(name).label if name else ""
