"""Suggest smaller formats or contexts for a model that doesn't fit. Nothing here needs torch."""

from __future__ import annotations

from functools import partial

from medusa_core.memory.budget import Budget
from medusa_core.memory.recommend import Recommendation, choices, plan_choice
from medusa_core.messages import Fit, HeadsShape, WeightFormats
from medusa_core.models.config import ModelConfig

_MIN_CONTEXT = 512
_MAX_CHOICES = 3


def smaller_choices(
    config: ModelConfig,
    heads: HeadsShape,
    budget: Budget,
    now: WeightFormats,
    context_tokens: int,
    draft_model: ModelConfig | None = None,
) -> tuple[Recommendation, ...]:
    """Return recommendations that need less memory than the present one, the mildest first.

    Args:
        config: Configuration of the model.
        heads: Sizes of its heads.
        budget: Memory of the device.
        now: Weight formats that didn't fit.
        context_tokens: Context that didn't fit.
        draft_model: Configuration of a model that drafts; None for none.

    Returns:
        At most three: the same weights with a half of the context or less, and smaller weights
        with the same context. Those that don't fit are left out if any fits.
    """
    plan = partial(plan_choice, config, heads, now, budget, draft_model=draft_model)
    present = plan(context_tokens)
    most = present.plan.weights_bytes
    shorter = []
    tokens = context_tokens // 2
    while tokens >= _MIN_CONTEXT:
        shorter.append(plan(tokens))
        tokens //= 2
    coarser = [
        choice
        for choice in choices(config, heads, budget, context_tokens, draft_model)
        if not choice.lack and choice.plan.weights_bytes < most and not config.quantization
    ]
    fitting = [one for one in shorter if one.plan.fit is not Fit.NO][:1]
    fitting += [one for one in coarser if one.plan.fit is not Fit.NO][: _MAX_CHOICES - len(fitting)]
    return tuple(fitting or [*shorter[:1], *coarser[-1:]])
