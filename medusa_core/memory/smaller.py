"""Smaller ways to load a model, for when its memory doesn't suffice. Nothing here needs torch."""

from __future__ import annotations

from functools import partial

from medusa_core.memory.budget import Budget
from medusa_core.memory.recommend import Recommendation, choices, plan_choice
from medusa_core.messages import Fit, HeadsShape, WeightFormats
from medusa_core.models.config import ModelConfig

_SHORTEST = 512
_MOST = 3


def smaller_choices(
    config: ModelConfig,
    heads: HeadsShape,
    budget: Budget,
    now: WeightFormats,
    context_tokens: int,
    draft_model: ModelConfig | None = None,
) -> tuple[Recommendation, ...]:
    """Ways that take less than the present one, the mildest first.

    Args:
        config: Sizes of the model.
        heads: Sizes of its heads.
        budget: What the device has.
        now: Weight formats that were too large.
        context_tokens: The context that was too long.
        draft_model: Sizes of a model that drafts for it; None for none.

    Returns:
        At most three: the same weights with half the context or less, and smaller weights with
        the same one. Those that fit come alone where there are any.
    """
    plan = partial(plan_choice, config, heads, now, budget, draft_model=draft_model)
    present = plan(context_tokens)
    most = present.plan.weights_bytes
    shorter = []
    tokens = context_tokens // 2
    while tokens >= _SHORTEST:
        shorter.append(plan(tokens))
        tokens //= 2
    coarser = [
        choice
        for choice in choices(config, heads, budget, context_tokens, draft_model)
        if not choice.lack and choice.plan.weights_bytes < most and not config.quantization
    ]
    fitting = [one for one in shorter if one.plan.fit is not Fit.NO][:1]
    fitting += [one for one in coarser if one.plan.fit is not Fit.NO][: _MOST - len(fitting)]
    return tuple(fitting or [*shorter[:1], *coarser[-1:]])
