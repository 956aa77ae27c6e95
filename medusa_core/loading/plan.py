"""Plan a target's memory on a device as it is now."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from medusa_core.errors import PlanError, RequestError
from medusa_core.i18n import tr
from medusa_core.loading.cpu_parts import place_parts
from medusa_core.loading.memory.budget import GIB, Budget, limit_budget
from medusa_core.loading.memory.placement import Planner
from medusa_core.loading.memory.plan import NO_ADAPTER, DraftModel, default_plan, with_small_cache
from medusa_core.loading.memory.probe import live_budget, offload_room
from medusa_core.loading.policy.rules import MAX_SEQUENCES, check_policy, rules_of
from medusa_core.messages import Fit, HeadsShape, LoadOptions, MemoryPlan, Policy
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import AdapterShape
from medusa_core.models.quant.choice import PartFormats

if TYPE_CHECKING:
    from medusa_core.loading.measure.machine import MeasuredRates
    from medusa_core.loading.policy.policy_search import PolicySearch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Sizes of a batch that a policy is searched for.

    Attributes:
        num_prompts: Number of prompts.
        prompt_tokens: Tokens of each prompt.
        new_tokens: Tokens of each answer.
        lengths: Tokens of each prompt with its answer; empty if all are equally long.
        max_sequences: Upper limit of conversations at once; 0 for none.
    """

    num_prompts: int
    prompt_tokens: int
    new_tokens: int
    lengths: Sequence[int] = ()
    max_sequences: int = 0


def policy_search(
    config: ModelConfig,
    options: LoadOptions,
    batch: BatchShape,
    rates: MeasuredRates,
    *,
    num_threads: int = 0,
    has_adapter: bool = False,
    must_offload: bool = False,
) -> PolicySearch:
    """Prepare the search of a policy for a batch on this computer.

    Args:
        config: Configuration of the model, which mustn't run through transformers.
        options: How the model is loaded.
        batch: Sizes of the batch.
        rates: Kept measurements.
        num_threads: Threads of the CPU; 0 for the default.
        has_adapter: A LoRA adapter is applied.
        must_offload: Everything together didn't fit the device.
    """
    from medusa_core.loading.policy.policy_search import PolicySearch
    from medusa_core.loading.policy.request import PolicyRequest
    from medusa_core.models.precision import choose_device, hardware_of, precision_of
    from medusa_core.models.quant.choice import resolve_formats
    from medusa_core.system import compute_threads

    device = choose_device(options.device)
    formats = resolve_formats(options.formats, options.dtype, hardware_of(device), config.stored)
    precision = precision_of(formats.compute, device, formats.cache_format, formats.attended)
    request = PolicyRequest(
        config,
        formats,
        precision,
        batch.num_prompts,
        batch.prompt_tokens,
        batch.new_tokens,
        num_threads or compute_threads.count(),
        tuple(batch.lengths),
    )
    rules = replace(
        rules_of(config, device.type, has_adapter=has_adapter),
        max_sequences=batch.max_sequences or MAX_SEQUENCES,
        must_offload=must_offload,
    )
    budget = limit_budget(live_budget(options.device), options.memory_gib)
    return PolicySearch(request, budget, offload_room(options), rules, rates)


def plan_target(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    options: LoadOptions,
    draft_model: DraftModel | None = None,
    adapter: AdapterShape = NO_ADAPTER,
    host: PartFormats | None = None,
) -> MemoryPlan:
    """Return the plan for this device as it is now.

    Args:
        config: Configuration of the target.
        heads: Sizes of its heads.
        formats: Formats of all parts.
        options: How the target is loaded.
        draft_model: A model that drafts; None for none.
        adapter: LoRA adapter of the target.
        host: Formats of parts that the processor computes beside a card; None if it may not.

    Raises:
        PlanError: The model doesn't fit, and `ignores_plan` isn't set.
        RequestError: The options can't be carried out.
    """
    if options.memory_gib < 0:
        raise RequestError(tr("{0:g} GiB of memory is less than nothing.", options.memory_gib))
    budget = limit_budget(live_budget(options.device), options.memory_gib)
    budget = replace(budget, reserved_bytes=options.reserved_bytes)
    planner = Planner(config, heads, formats, budget, options.sessions, draft_model, adapter, host)
    plan = _plan_resident(planner, options)
    if options.policy is not None:
        return _plan_policy(planner, options, options.policy, plan.context_tokens)
    if host is not None:
        placed = place_parts(planner, plan, offload_room(options), options)
        if placed is not None:
            return placed
    if plan.fit is not Fit.NO:
        return plan
    may_divide = config.has_native_family and not options.cluster
    if may_divide and (options.memory_gib or options.has_disk):
        if adapter.pairs:
            raise RequestError(
                "With an adapter all layers must fit the device.",
                "Merge it into the model first, or leave out --memory-gib and --tier-disk.",
            )
        placed = planner.offload(
            plan.context_tokens, offload_room(options), may_shorten=not options.context_tokens
        )
        if placed is not None:
            return placed
    if not options.context_tokens and plan.max_context:
        return planner.resident(plan.max_context)
    if options.ignores_plan:
        log.warning("%d bytes are missing by the plan, which is ignored", -plan.free_bytes)
        return plan
    raise PlanError(
        _lack(-plan.free_bytes, budget),
        _way_out(options, plan.max_context),
        missing_bytes=-plan.free_bytes,
        max_context=plan.max_context,
    )


def _plan_resident(planner: Planner, options: LoadOptions) -> MemoryPlan:
    """Plan all layers on the device, whether that fits or not."""
    config, formats = planner.config, planner.formats
    requested = min(options.context_tokens, config.context_tokens)
    if not requested:
        return default_plan(planner.resident, config)
    plan = planner.resident(requested)
    if not may_shrink_cache(config, options):
        return plan
    return with_small_cache(
        plan,
        lambda other: replace(planner, formats=other).resident(requested),
        options.formats.cache,
        formats,
    )


def may_shrink_cache(config: ModelConfig, options: LoadOptions) -> bool:
    """Whether keys and values may become 8 bits: for a requested context, if nothing is offloaded.

    Args:
        config: Configuration of the target.
        options: How the target is loaded.
    """
    offloads = options.memory_gib or options.has_disk or options.experts == "ram"
    is_divided = offloads or options.cpu_layers or options.policy is not None or options.cluster
    return bool(options.context_tokens and config.has_native_family and not is_divided)


def _plan_policy(
    planner: Planner, options: LoadOptions, policy: Policy, context_tokens: int
) -> MemoryPlan:
    """Return the plan of a policy.

    Raises:
        PlanError: It doesn't fit.
        RequestError: The engine can't carry it out.
    """
    is_divided = planner.adapter.pairs or options.cluster
    if is_divided and (policy.weights.below or policy.cache.below):
        raise RequestError(
            "With an adapter or a cluster all layers must fit the device.",
            "Leave out --policy, --memory-gib and --tier-disk, or the adapter and the cluster.",
        )
    formats = planner.formats
    check_policy(policy, planner.config, formats.device, has_disk=options.has_disk)
    plan = planner.place(policy, context_tokens)
    if plan.fit is Fit.NO and not options.ignores_plan:
        raise PlanError(
            tr(
                "This policy needs {0:,} MiB more than {1} has free.",
                _num_mib(-plan.free_bytes),
                planner.budget.name,
            ),
            "Let more lie on the disk, or fewer sequences be computed; without --policy the best "
            "one that has room is searched.",
            missing_bytes=-plan.free_bytes,
            max_context=0,
        )
    needed = planner.host_bytes(policy, plan)
    missing = needed - offload_room(options).memory_bytes if needed else 0
    if missing > 0 and not options.ignores_plan:
        raise PlanError(
            tr(
                "This policy needs {0:,} MiB more of the computer's memory than is free.",
                _num_mib(missing),
            ),
            "Let more lie on the disk, or fewer sequences be computed.",
            missing_bytes=missing,
            max_context=0,
        )
    return plan


def _num_mib(num_bytes: int) -> int:
    """MiB for people, at least one."""
    return -(-num_bytes // (1 << 20))


def _lack(missing_bytes: int, budget: Budget) -> str:
    """Return how much memory a model lacks, and how much is kept free for another one."""
    if budget.reserved_bytes:
        return tr(
            "This model needs {0:.1f} GiB more than {1} has free: {2:.1f} GiB are kept for another "
            "model.",
            missing_bytes / GIB,
            budget.name,
            budget.reserved_bytes / GIB,
        )
    return tr(
        "This model needs {0:.1f} GiB more than {1} has free.", missing_bytes / GIB, budget.name
    )


def _way_out(options: LoadOptions, max_context: int) -> str:
    """Return what to do if a model doesn't fit."""
    hint = tr(
        "Choose a smaller weight format or a smaller model, or close other programs; or name a "
        "folder for its layers with --tier-disk."
    )
    if max_context:
        hint = tr(
            "It fits with a context of {0:,} tokens; or choose a smaller weight format.",
            max_context,
        )
    elif options.has_disk:
        hint = tr(
            "Even with its layers on the disk, what stays in memory has no room: projection, "
            "cache and two layers. Give it more memory, or choose a smaller model."
        )
    return hint
