"""Recommend weight formats and context for a model on a device. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from medusa_core.loading.memory.budget import GIB, Budget
from medusa_core.loading.memory.plan import (
    NO_ADAPTER,
    DraftModel,
    check_cache_type,
    default_plan,
    plan_memory,
    weights_bytes,
    with_small_cache,
)
from medusa_core.messages import Fit, HeadsShape, MemoryPlan, WeightFormats
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import AdapterShape
from medusa_core.models.quant.choice import PartFormats, resolve_formats
from medusa_core.models.quant.format import (
    Hardware,
    quant_registry,
)
from medusa_core.models.through_transformers.formats import lack_of

_CONTEXT = 4096
_SHORT_CONTEXT = 2048
_SMALL_BYTES = 2 * GIB
_MIN_SHORTER_CONTEXT, _MAX_CHOICES = 512, 3
_MAX_BITS = 32  # float64 is for tests
_WIDTH = 4096


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One way to load a model.

    Attributes:
        formats: Weight formats.
        context_tokens: Longest prompt plus answer.
        plan: The memory plan.
        lack: Capability that the hardware lacks for it, for people; empty if none.
    """

    formats: WeightFormats
    context_tokens: int
    plan: MemoryPlan
    lack: str


def plan_choice(
    config: ModelConfig,
    heads: HeadsShape,
    wanted: WeightFormats,
    budget: Budget,
    context_tokens: int,
    dtype: str = "",
    draft_model: ModelConfig | None = None,
    adapter: AdapterShape = NO_ADAPTER,
    *,
    may_shrink_cache: bool = False,
) -> Recommendation:
    """Plan one way to load a model.

    Args:
        config: Configuration of the target.
        heads: Sizes of its heads.
        wanted: Weight formats.
        budget: Memory of the device.
        context_tokens: Longest prompt plus answer.
        dtype: Name of the compute dtype; empty for the best.
        draft_model: Configuration of a model that drafts; None for none.
        adapter: LoRA adapter of the target.
        may_shrink_cache: Whether keys and values may be planned in 8 bits if the context doesn't
            fit otherwise, and their type was left open.

    Raises:
        RequestError: The formats don't go together.
    """
    formats = resolve_formats(wanted, dtype, budget.hardware, config.stored)
    check_cache_type(wanted.cache, config, formats)
    drafts = None
    if draft_model is not None:
        drafts = resolve_draft_model(draft_model, wanted, dtype, budget.hardware)

    def plan_for(formats: PartFormats) -> MemoryPlan:
        """Plan some formats."""
        return plan_memory(
            config, heads, formats, budget, context_tokens, draft_model=drafts, adapter=adapter
        )

    plan = plan_for(formats)
    if may_shrink_cache and config.has_native_family:
        plan = with_small_cache(plan, plan_for, wanted.cache, formats)
    lack = lack_of(config, formats) or formats.linears.limitation(budget.hardware)
    return Recommendation(wanted, plan.context_tokens, plan, lack)


def resolve_draft_model(
    config: ModelConfig, wanted: WeightFormats, dtype: str, hardware: Hardware
) -> DraftModel:
    """Return a draft model in the target's formats, unless it is stored quantized.

    Args:
        config: Configuration of the draft model.
        wanted: The target's weight formats.
        dtype: Name of the compute dtype; empty for the best.
        hardware: Device of both models.

    Raises:
        RequestError: The formats don't go together.
    """
    own = draft_formats(config, wanted)
    return DraftModel(config, resolve_formats(own, dtype, hardware, config.stored))


def draft_formats(config: ModelConfig, wanted: WeightFormats) -> WeightFormats:
    """Return the weight formats of a draft model for a target in these."""
    own = WeightFormats(embedding_in_ram=wanted.embedding_in_ram)
    return own if config.quantization or not config.has_native_family else wanted


def choices(
    config: ModelConfig,
    heads: HeadsShape,
    budget: Budget,
    context_tokens: int,
    draft_model: ModelConfig | None = None,
) -> tuple[Recommendation, ...]:
    """Plan every weight format that may be recommended, by descending precision."""
    device = budget.hardware.device
    offered = [
        spec
        for spec in quant_registry().specs
        if spec.bits <= _MAX_BITS and spec.supports(_WIDTH, _WIDTH, device)
    ]
    specs = sorted(offered, key=lambda spec: -spec.bits)
    return tuple(
        plan_choice(
            config,
            heads,
            WeightFormats(spec.name),
            budget,
            context_tokens,
            draft_model=draft_model,
        )
        for spec in specs
    )


def plan_least(config: ModelConfig, heads: HeadsShape, budget: Budget) -> Recommendation:
    """Return the recommendation that needs the least memory, whether it fits or not."""
    context = min(_SHORT_CONTEXT, config.context_tokens)
    ways = [plan_choice(config, heads, one, budget, context) for one in _candidates(config, budget)]
    return max(ways, key=lambda way: way.plan.free_bytes)


def recommend(
    config: ModelConfig,
    heads: HeadsShape,
    budget: Budget,
    draft_model: ModelConfig | None = None,
) -> Recommendation | None:
    """Return the best way to load a model on a device, or None if no way fits.

    A good fit is better than a tight one, and a shorter context than none. Of what fits, the most
    precise weights win; but large models get 4 bits even if 16 would fit, since a step takes as
    long as reading the weights.
    """
    context = min(_CONTEXT, config.context_tokens)
    for fit, tokens in ((Fit.FITS, context), (Fit.TIGHT, context), (Fit.TIGHT, _SHORT_CONTEXT)):
        for formats in _candidates(config, budget):
            choice = plan_choice(config, heads, formats, budget, tokens, draft_model=draft_model)
            if not choice.lack and choice.plan.fit in (Fit.FITS, fit):
                return _lengthened(choice, config, heads, budget, draft_model)
    return None


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
    while tokens >= _MIN_SHORTER_CONTEXT:
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


def _lengthened(
    choice: Recommendation,
    config: ModelConfig,
    heads: HeadsShape,
    budget: Budget,
    draft_model: ModelConfig | None,
) -> Recommendation:
    """Return the same formats with the default context of a load, if that fits as well."""

    def plan_for(tokens: int) -> MemoryPlan:
        """Plan the same formats with another context size."""
        wanted = choice.formats
        return plan_choice(config, heads, wanted, budget, tokens, draft_model=draft_model).plan

    plan = default_plan(plan_for, config)
    if choice.plan.fit is not Fit.FITS or plan.fit is not Fit.FITS:
        return choice
    return replace(choice, context_tokens=plan.context_tokens, plan=plan)


def _candidates(config: ModelConfig, budget: Budget) -> Iterator[WeightFormats]:
    """Yield weight formats in the order in which they are recommended if they fit."""
    dense = resolve_formats(WeightFormats(), "", budget.hardware, config.stored)
    is_small = weights_bytes(config, dense) <= _SMALL_BYTES
    if is_small or config.holds_blocks:
        yield WeightFormats()
    if budget.hardware.device == "cpu":
        yield WeightFormats("q4", lm_head="int8")
        yield WeightFormats("q4", lm_head="q4")
        yield WeightFormats("int8", lm_head="int8")  # without a compiled step
    else:
        if not config.quantization:
            yield WeightFormats("nf4")
        yield WeightFormats("nf4-dq")
        yield WeightFormats("nf4-dq", embedding_in_ram=True)
        yield WeightFormats("nf4-dq", lm_head="nf4-dq", embedding_in_ram=True)
    if not is_small:
        yield WeightFormats()
