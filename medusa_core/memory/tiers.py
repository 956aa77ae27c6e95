"""A plan for a device with tiers below it. Pure: what there is comes in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from medusa_core.errors import RequestError
from medusa_core.memory.budget import GIB, Budget
from medusa_core.memory.placement import layer_bytes, piece_bytes, place_layers
from medusa_core.memory.plan import DraftModel, chunk_rows, plan_memory, scratch_bytes
from medusa_core.messages import Fit, HeadsShape, LoadOptions, MemoryPlan
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats

_LEAST_CONTEXT = 512
_MOST_ROWS = 512  # of a prompt at once
_CACHE_SHARE = 3  # where nobody asks for a context, the cache takes a third of the device at most


@dataclass(frozen=True, slots=True)
class Below:
    """What lies below a device.

    Attributes:
        memory_bytes: Room for layers in the computer's memory, where the device has its own.
        disk: Folder for layers on a disk; None where none may lie there.
    """

    memory_bytes: int = 0
    disk: Path | None = None

    @property
    def has_disk(self) -> bool:
        """May layers lie on a disk?"""
        return self.disk is not None

    @classmethod
    def of(cls, memory_bytes: int, options: LoadOptions) -> Below:
        """So much memory, and the disk that a load may use."""
        return cls(memory_bytes, options.tier_disk)


def limited(budget: Budget, memory_gib: float) -> Budget:
    """The part of a device that may be taken, as a device of its own.

    What this program takes before any model is not counted in it.

    Args:
        budget: The device.
        memory_gib: How much; 0 for all that is free.

    Raises:
        RequestError: That is no number.
    """
    if not memory_gib:
        return budget
    if math.isnan(memory_gib):
        raise RequestError("A budget of nan GiB is none.", "Give a number of GiB to --memory-gib.")
    free = budget.total_bytes - budget.other_bytes - budget.runtime_bytes
    return replace(
        budget,
        name=f"{memory_gib:g} GiB of {budget.name}",
        total_bytes=round(min(memory_gib * GIB, free)),
        other_bytes=0,
        runtime_bytes=0,
    )


def plan_in_tiers(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    budget: Budget,
    below: Below,
    context_tokens: int,
    sessions: int = 1,
    draft_model: DraftModel | None = None,
    *,
    may_shorten: bool = False,
) -> MemoryPlan | None:
    """Plan a target that has no room on a device, with some layers below it.

    Args:
        config: Sizes of the target.
        heads: Sizes of the heads.
        formats: Format of every part.
        budget: What the device has.
        below: What lies below it.
        context_tokens: Longest prompt plus answer.
        sessions: Conversations that have room for as much at once.
        draft_model: A smaller model that drafts beside it, or None.
        may_shorten: Nobody asked for that context: a shorter one leaves more layers here.

    Returns:
        None if there is no room even so.
    """
    placed = None
    for context in _contexts(context_tokens) if may_shorten else (context_tokens,):
        plan = plan_memory(config, heads, formats, budget, context, sessions, draft_model)
        if plan.fit is not Fit.NO:
            return plan
        placed = _placed(plan, config, formats, below) or placed
        if placed is not None and placed.kv_bytes * _CACHE_SHARE <= budget.total_bytes:
            return placed
    return placed


def _placed(
    plan: MemoryPlan, config: ModelConfig, formats: PartFormats, below: Below
) -> MemoryPlan | None:
    """A plan with some layers below, rather with few rows of prompts at once than not at all."""
    sizes, piece = layer_bytes(config, formats), piece_bytes(config, formats)
    for rows in (prompt_rows(config, formats, plan.context_tokens), chunk_rows(formats.device)):
        scratch = scratch_bytes(config, formats, plan.context_tokens, rows)
        longer = _with_scratch(plan, scratch)
        placed = place_layers(longer, sizes, piece, below.memory_bytes, has_disk=below.has_disk)
        if placed is not None and placed.placement is not None:
            return replace(placed, placement=replace(placed.placement, prompt_rows=rows))
    return None


def _with_scratch(plan: MemoryPlan, scratch: int) -> MemoryPlan:
    """A plan with another upper estimate of what passes need."""
    free = plan.free_bytes + plan.scratch_bytes - scratch
    return replace(plan, scratch_bytes=scratch, free_bytes=free)


def prompt_rows(config: ModelConfig, formats: PartFormats, context_tokens: int) -> int:
    """Most rows of a prompt that are read at once where layers lie below the device.

    They come once for all rows. What more rows need besides may take the room of one layer.
    """
    usual, room = chunk_rows(formats.device), piece_bytes(config, formats)
    needed = scratch_bytes(config, formats, context_tokens)
    for rows in (4 * usual, 2 * usual):
        more = scratch_bytes(config, formats, context_tokens, rows) - needed
        if rows <= _MOST_ROWS and more <= room:
            return rows
    return usual


def rows_at_once(device: str) -> tuple[int, ...]:
    """How many rows of prompts may be computed at once where layers come from below: most first."""
    usual = chunk_rows(device)
    wanted = (4 * usual, 2 * usual, usual, usual // 2, usual // 4, usual // 8)
    return tuple(rows for rows in wanted if rows <= _MOST_ROWS)


def _contexts(longest: int) -> Iterator[int]:
    """The longest context, and halves of it."""
    yield longest
    while longest > _LEAST_CONTEXT:
        longest = max(_LEAST_CONTEXT, longest // 2)
        yield longest
