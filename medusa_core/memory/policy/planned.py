"""The plan of a target whose policy says where everything lies; to the byte, but for scratch."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from medusa_core.memory.budget import Budget
from medusa_core.memory.placement import NUM_BUFFERS, evenly, layer_bytes, piece_bytes
from medusa_core.memory.plan import (
    DraftModel,
    cache_itemsize,
    fit_of,
    plan_memory,
    scratch_bytes,
)
from medusa_core.memory.policy.layouts import layers_below, tier_of
from medusa_core.memory.policy.work import JUDGED_ROWS, MANY, TREE_ROWS
from medusa_core.memory.tiers import rows_at_once
from medusa_core.messages import Fit, HeadsShape, MemoryPlan, Placement, Policy, Shares, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.kv.size import (
    brought_bytes,
    offloaded_row_bytes,
    ring_bytes,
    tail_bytes,
    whole_rows,
)


def plan_policy(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    budget: Budget,
    policy: Policy,
    context_tokens: int,
    sessions: int = 1,
    draft_model: DraftModel | None = None,
) -> MemoryPlan:
    """Plan a target as a policy wants it.

    Args:
        config: Sizes of the target.
        heads: Sizes of the heads.
        formats: Format of every part.
        budget: What the device has.
        policy: Where everything is to lie.
        context_tokens: Longest prompt plus answer.
        sessions: Conversations that have room for as much at once, in layers whose keys and values
            lie on the device.
        draft_model: A smaller model that drafts beside it, or None.

    Returns:
        The plan, which says by its `fit` where there is no room even with few rows at once.
    """
    plan = plan_memory(config, heads, formats, budget, context_tokens, sessions, draft_model)
    if not (policy.weights.below or policy.cache.below):
        return plan
    placed = plan
    trees = (1,) if policy.num_sequences >= MANY else (TREE_ROWS, 1)
    for tree_rows, rows in product(trees, rows_at_once(formats.device)):
        placed = _placed(plan, config, formats, policy, sessions, rows, tree_rows)
        if placed.fit is not Fit.NO:
            break
    return placed


def _placed(
    plan: MemoryPlan,
    config: ModelConfig,
    formats: PartFormats,
    policy: Policy,
    sessions: int,
    rows: int,
    tree_rows: int,
) -> MemoryPlan:
    """A plan for all layers on the device, with those below that the policy wants there.

    Args:
        plan: It.
        config: Sizes of the target.
        formats: Format of every part.
        policy: Where everything is to lie.
        sessions: As it was planned for.
        rows: Of a prompt, that are computed at once at most.
        tree_rows: Of a step of one sequence at most.
    """
    placement = Placement(
        tiers=tiers_of(policy.weights, config.num_layers),
        layer_bytes=layer_bytes(config, formats),
        buffer_bytes=0,
        prompt_rows=rows,
        pass_rows=policy.prompt_rows,
        cache_tiers=tiers_of(policy.cache, config.num_layers) if policy.cache.below else (),
        attention=Tier(policy.attention),
        states=tier_of(policy.activations),
        batch=policy.batch,
        tree_rows=tree_rows,
    )
    ring = NUM_BUFFERS * piece_bytes(config, formats) * (placement.offloaded_bytes > 0)
    rows_ring, kept = _rows_bytes(plan.context_tokens, config, formats, policy, placement)
    item, below = cache_itemsize(config, formats), _cached_below(placement)
    gone = offloaded_row_bytes(config, item, formats.cache_format, below)
    gone *= sessions * whole_rows(plan.context_tokens)
    scratch = _scratch_bytes(plan.context_tokens, config, formats, policy, placement)
    weights = plan.weights_bytes - placement.offloaded_bytes + ring
    kv = plan.kv_bytes - gone + kept + rows_ring
    more = weights - plan.weights_bytes + kv - plan.kv_bytes + scratch - plan.scratch_bytes
    free = plan.free_bytes - more
    return replace(
        plan,
        weights_bytes=weights,
        kv_bytes=kv,
        scratch_bytes=scratch,
        free_bytes=free,
        max_context=plan.context_tokens if free >= 0 else 0,
        fit=fit_of(free),
        placement=replace(placement, buffer_bytes=ring + rows_ring),
    )


def tiers_of(shares: Shares, count: int) -> tuple[Tier, ...]:
    """Where each layer lies: those of a tier are spread evenly among the others."""
    in_memory, on_disk = layers_below(shares, count)
    here = evenly(count - in_memory - on_disk, count)
    left = [layer for layer in range(count) if layer not in here]
    held = {left[place] for place in evenly(in_memory, len(left))}
    return tuple(
        Tier.DEVICE if layer in here else Tier.MEMORY if layer in held else Tier.DISK
        for layer in range(count)
    )


def _rows_bytes(
    context_tokens: int,
    config: ModelConfig,
    formats: PartFormats,
    policy: Policy,
    placement: Placement,
) -> tuple[int, int]:
    """Of cached rows below the device what they pass through on it, and what stays on it."""
    if formats.device == "cpu":
        return _disk_rows_bytes(context_tokens, config, formats, policy, placement)
    if placement.attention is Tier.MEMORY:
        return 0, 0
    kinds = (cache_itemsize(config, formats), formats.cache_format)
    room = (policy.batch, whole_rows(context_tokens))
    homes = (placement.cached_layers(tier) for tier in (Tier.MEMORY, Tier.DISK))
    return sum(brought_bytes(config, *kinds, layers, *room) for layers in homes), 0


def _disk_rows_bytes(
    context_tokens: int,
    config: ModelConfig,
    formats: PartFormats,
    policy: Policy,
    placement: Placement,
) -> tuple[int, int]:
    """Of cached rows on a disk what they pass through in memory, and what stays there."""
    given = (config, cache_itemsize(config, formats), formats.cache_format)
    on_disk = placement.cached_layers(Tier.DISK)
    ring = ring_bytes(*given, on_disk, policy.batch, whole_rows(context_tokens))
    return ring, tail_bytes(*given, on_disk, policy.num_sequences, placement.tree_rows)


def memory_bytes(
    context_tokens: int, config: ModelConfig, formats: PartFormats, policy: Policy, plan: MemoryPlan
) -> int:
    """Bytes of the computer's memory below a card that a plan's layers and cached rows take."""
    placement = plan.placement
    if formats.device == "cpu" or placement is None:
        return 0
    item = cache_itemsize(config, formats)
    layers = placement.cached_layers(Tier.MEMORY)
    rows = policy.num_sequences * whole_rows(context_tokens)
    held = rows * offloaded_row_bytes(config, item, formats.cache_format, layers)
    passing = sum(_disk_rows_bytes(context_tokens, config, formats, policy, placement))
    if placement.layers(Tier.DISK):
        passing += NUM_BUFFERS * piece_bytes(config, formats)
    return placement.nbytes(Tier.MEMORY) + held + passing


def _cached_below(placement: Placement) -> tuple[int, ...]:
    return placement.cached_layers(Tier.MEMORY) + placement.cached_layers(Tier.DISK)


def _scratch_bytes(
    context_tokens: int,
    config: ModelConfig,
    formats: PartFormats,
    policy: Policy,
    placement: Placement,
) -> int:
    """What passes need besides: for rows that are computed and scored at once, and all states."""
    rows = max(placement.prompt_rows, policy.batch * placement.tree_rows)
    scored = policy.num_sequences * placement.tree_rows
    judged = JUDGED_ROWS * placement.tree_rows
    needed = scratch_bytes(config, formats, context_tokens, rows, scored, judged)
    if placement.states is not Tier.DEVICE:
        return needed
    return needed + 4 * config.hidden_size * max(policy.prompt_rows, policy.num_sequences)
