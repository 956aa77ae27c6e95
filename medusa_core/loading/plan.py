"""Where the memory of a device goes as a target is loaded on it."""

from __future__ import annotations

import logging
from dataclasses import replace

from medusa_core.errors import PlanError, RequestError
from medusa_core.memory.budget import GIB, Budget
from medusa_core.memory.plan import (
    NO_ADAPTER,
    DraftModel,
    default_plan,
    plan_memory,
)
from medusa_core.memory.policy.planned import memory_bytes, plan_policy
from medusa_core.memory.policy.rules import check_policy
from medusa_core.memory.probe import below_device, live_budget
from medusa_core.memory.tiers import limited, plan_in_tiers
from medusa_core.messages import Fit, HeadsShape, LoadOptions, MemoryPlan
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import AdapterShape
from medusa_core.models.quant.choice import (
    PartFormats,
)

log = logging.getLogger(__name__)


def as_placed(formats: PartFormats, options: LoadOptions, *, has_drafter: bool) -> PartFormats:
    """Formats of parts as a policy leaves them: with token vectors in the model's file.

    A pass reads few of them, and where layers come from a disk, they may as well.

    Args:
        formats: Of every part.
        options: How the target is to be loaded.
        has_drafter: Heads, an adapter or another model need the vectors, too.
    """
    policy = options.policy
    is_below = policy is not None and (policy.weights.below or policy.cache.below)
    may = options.has_disk and not options.cluster and not has_drafter
    is_on_disk = bool(is_below and may and formats.device == "cpu")
    return replace(formats, embedding_on_disk=is_on_disk)


def plan_target(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    options: LoadOptions,
    draft_model: DraftModel | None = None,
    adapter: AdapterShape = NO_ADAPTER,
) -> MemoryPlan:
    """The plan for this device as it is now.

    Raises:
        PlanError: There is no room, and `ignores_plan` isn't set.
    """
    if options.memory_gib < 0:
        raise RequestError(f"{options.memory_gib:g} GiB of memory is less than nothing.")
    budget = limited(live_budget(options.device), options.memory_gib)
    sessions = options.sessions

    def plan_for(tokens: int) -> MemoryPlan:
        return plan_memory(config, heads, formats, budget, tokens, sessions, draft_model, adapter)

    asked = min(options.context_tokens, config.context_tokens)
    plan = plan_for(asked) if asked else default_plan(plan_for, config)
    wanted = plan.context_tokens
    if options.policy is not None:
        return _as_policy(config, heads, formats, options, budget, wanted, draft_model, adapter)
    if plan.fit is not Fit.NO:
        return plan
    may_divide = config.is_ours and not options.cluster
    if may_divide and (options.memory_gib or options.has_disk):
        if adapter.pairs:
            raise RequestError(
                "With an adapter all layers must fit the device.",
                "Merge it into the model first, or leave out --memory-gib and --tier-disk.",
            )
        below = below_device(options)
        placed = plan_in_tiers(
            config,
            heads,
            formats,
            budget,
            below,
            wanted,
            sessions,
            draft_model,
            may_shorten=not options.context_tokens,
        )
        if placed is not None:
            return placed
    if not options.context_tokens and plan.max_context:
        return plan_for(plan.max_context)
    if options.ignores_plan:
        log.warning("%d bytes are missing by the plan, which is ignored", -plan.free_bytes)
        return plan
    raise PlanError(
        f"This model needs {-plan.free_bytes / GIB:.1f} GiB more than {budget.name} has free.",
        _way_out(options, plan.max_context),
        missing_bytes=-plan.free_bytes,
        max_context=plan.max_context,
    )


def _as_policy(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    options: LoadOptions,
    budget: Budget,
    context_tokens: int,
    draft_model: DraftModel | None,
    adapter: AdapterShape,
) -> MemoryPlan:
    """The plan that a policy wants.

    Raises:
        PlanError: It has no room.
        RequestError: The engine can't carry it out.
    """
    policy = options.policy
    assert policy is not None
    if (adapter.pairs or options.cluster) and (policy.weights.below or policy.cache.below):
        raise RequestError(
            "With an adapter or a cluster all layers must fit the device.",
            "Leave out --policy, --memory-gib and --tier-disk, or the adapter and the cluster.",
        )
    check_policy(policy, config, formats.device, has_disk=options.has_disk)
    sessions = options.sessions
    plan = plan_policy(
        config, heads, formats, budget, policy, context_tokens, sessions, draft_model
    )
    if plan.fit is Fit.NO and not options.ignores_plan:
        raise PlanError(
            f"This policy needs {_mib(-plan.free_bytes)} MiB more than {budget.name} has free.",
            "Let more lie on the disk, or fewer sequences be computed; without --policy the best "
            "one that has room is searched.",
            missing_bytes=-plan.free_bytes,
            max_context=0,
        )
    needed = memory_bytes(context_tokens, config, formats, policy, plan)
    missing = needed - below_device(options).memory_bytes if needed else 0
    if missing > 0 and not options.ignores_plan:
        raise PlanError(
            f"This policy needs {_mib(missing)} MiB more of the computer's memory than is free.",
            "Let more lie on the disk, or fewer sequences be computed.",
            missing_bytes=missing,
            max_context=0,
        )
    return plan


def _mib(num_bytes: int) -> str:
    """For people: at least one."""
    return f"{-(-num_bytes // (1 << 20)):,}"


def _way_out(options: LoadOptions, max_context: int) -> str:
    """What to do where a model doesn't fit."""
    hint = (
        "Choose a smaller weight format or a smaller model, or close other programs; or name a "
        "folder for its layers with --tier-disk."
    )
    if max_context:
        hint = (
            f"It fits with a context of {max_context:,} tokens; or choose a smaller weight format."
        )
    elif options.has_disk:
        hint = (
            "Even with its layers on the disk, what stays in memory has no room: token vectors, "
            "projection, cache and two layers. Give it more memory, or choose a smaller model."
        )
    return hint
