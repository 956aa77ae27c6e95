"""Budgets in which some of a model's layers have no room."""

from dataclasses import replace
from pathlib import Path

from medusa_core.heads.kind import read_shape
from medusa_core.loading.memory.budget import GIB, limit_budget
from medusa_core.loading.memory.placement import layer_bytes, piece_bytes, prompt_rows
from medusa_core.loading.memory.plan import plan_memory, scratch_bytes
from medusa_core.loading.memory.probe import live_budget
from medusa_core.messages import HeadsShape, LoadOptions
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import hardware_of, resolve_device
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.offload.layer_entries import NUM_BUFFERS


def with_layers_below(
    model_dir: Path, heads_dir: Path | None, options: LoadOptions, num_here: int
) -> LoadOptions:
    """Return options with the given number of resident layers; the others are on a disk."""
    config = ModelFiles.open(model_dir).config
    device = resolve_device(options.device).device
    formats = resolve_formats(options.formats, options.dtype, hardware_of(device), config.stored)
    heads = HeadsShape() if heads_dir is None else read_shape(heads_dir)
    context = options.context_tokens or config.context_tokens
    budget = limit_budget(live_budget(str(device)), 1.0)
    plan = plan_memory(config, heads, formats, budget, context, options.sessions)
    needed = plan.total_bytes - plan.free_bytes
    sizes = layer_bytes(config, formats)
    below = sum(sorted(sizes)[: len(sizes) - num_here])
    room = needed - below + NUM_BUFFERS * piece_bytes(config, formats)
    rows = prompt_rows(config, formats, plan.context_tokens)
    room += scratch_bytes(config, formats, plan.context_tokens, rows) - plan.scratch_bytes
    return replace(
        options,
        context_tokens=context,
        memory_gib=room / GIB,
        tier_disk=model_dir.parent / "layers",
        experts="card",
        cpu_layers=0,
    )
