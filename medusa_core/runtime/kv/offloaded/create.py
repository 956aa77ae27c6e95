"""Chooses the store of a target's offloaded KV rows, and the prefetcher of its passes."""

from __future__ import annotations

from pathlib import Path

import torch

from medusa_core.errors import EngineError, TierError
from medusa_core.messages import Placement, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.offloaded.disk_prefetcher import DiskPrefetcher
from medusa_core.runtime.kv.offloaded.disk_store import DiskStore
from medusa_core.runtime.kv.offloaded.gpu_prefetcher import GpuPrefetcher
from medusa_core.runtime.kv.offloaded.memory_store import MemoryPrefetcher, MemoryStore
from medusa_core.runtime.kv.offloaded.prefetcher import HostPrefetcher, KvPrefetcher
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import whole_rows


def create_kv_store(
    placement: Placement | None,
    config: ModelConfig,
    precision: Precision,
    sessions: int,
    folder: Path | None,
) -> KvStore | None:
    """Create the store of a target's offloaded KV rows.

    Args:
        placement: Names the offloaded layers; None if there are none.
        config: Sizes of the target; its context is the planned one.
        precision: Dtypes and device of the target.
        sessions: Whole contexts at once.
        folder: Folder on the disk; None without a disk tier.

    Returns:
        The store, not yet allocated; None if no rows are offloaded.

    Raises:
        TierError: Rows are placed on a disk without a folder.
        EngineError: Rows are placed in memory below a processor, or in memory and on a disk.
    """
    if placement is None:
        return None
    rows, form = whole_rows(config.context_tokens), precision.cache_format
    in_memory = placement.cached_layers(Tier.MEMORY)
    on_disk = placement.cached_layers(Tier.DISK)
    if in_memory and precision.device.type == "cpu":
        raise EngineError("A processor has no memory below its own.", "Place no rows there.")
    if in_memory and on_disk:  # a target has one store and one prefetcher
        raise EngineError(
            "Cached rows can't be both in memory and on a disk.", "Place all of them on one tier."
        )
    if in_memory:
        return MemoryStore(config, in_memory, sessions, rows, form)
    if not on_disk:
        return None
    if folder is None:
        raise TierError("Cached rows lie on a disk, but no folder is named.", "Name a folder.")
    return DiskStore(config, on_disk, sessions, rows, folder, placement.tree_rows, form)


def create_kv_prefetcher(store: KvStore, attention: Tier, device: torch.device) -> KvPrefetcher:
    """Create the prefetcher of a store's rows.

    Args:
        store: Store of the rows.
        attention: Tier that computes attention to them.
        device: Device that computes everything else.
    """
    host: HostPrefetcher
    host = DiskPrefetcher(store, device) if isinstance(store, DiskStore) else MemoryPrefetcher()
    if attention is Tier.MEMORY or device.type == "cpu":
        return host
    return GpuPrefetcher(host, store, device)
