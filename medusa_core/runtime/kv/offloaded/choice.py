"""Which home a target's cached rows below the device get, and how passes visit it."""

from __future__ import annotations

from pathlib import Path

import torch

from medusa_core.errors import EngineError, TierError
from medusa_core.messages import Placement, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.offloaded.block_store import BlockStore
from medusa_core.runtime.kv.offloaded.card_visits import CardVisits
from medusa_core.runtime.kv.offloaded.disk import DiskStore
from medusa_core.runtime.kv.offloaded.disk_visits import DiskVisits
from medusa_core.runtime.kv.offloaded.memory import MemoryStore
from medusa_core.runtime.kv.offloaded.memory_visits import MemoryVisits
from medusa_core.runtime.kv.offloaded.several import SeveralStores
from medusa_core.runtime.kv.offloaded.several_visits import SeveralVisits
from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.kv.offloaded.visits import HostVisits, RowVisits
from medusa_core.runtime.kv.size import whole_rows


def row_store(
    placement: Placement | None,
    config: ModelConfig,
    precision: Precision,
    sessions: int,
    folder: Path | None,
) -> RowStore | None:
    """Home for the cached rows of a target that lie below the device; None where none do.

    Args:
        placement: Says of which layers; None where all lies on the device.
        config: Sizes of the target; the context is what was planned for.
        precision: What it is computed in.
        sessions: Whole contexts at once.
        folder: On the disk.

    Raises:
        TierError: Rows lie on a disk, but no folder is named.
        EngineError: Rows lie in memory below a processor, whose memory that is.
    """
    if placement is None:
        return None
    rows, form = whole_rows(config.context_tokens), precision.cache_format
    stores: list[RowStore] = []
    if layers := placement.cached_layers(Tier.MEMORY):
        if precision.device.type == "cpu":
            raise EngineError("A processor has no memory below its own.", "Place no rows there.")
        stores.append(MemoryStore(config, layers, sessions, rows, form))
    if layers := placement.cached_layers(Tier.DISK):
        if folder is None:
            raise TierError("Cached rows lie on a disk, but no folder is named.", "Name a folder.")
        tree = placement.tree_rows
        stores.append(DiskStore(config, layers, sessions, rows, folder, tree, form))
    if len(stores) > 1:
        return SeveralStores(stores)
    return stores[0] if stores else None


def row_visits(store: RowStore, attention: Tier, device: torch.device) -> RowVisits:
    """What brings passes to the rows of a home, or the rows to them.

    Args:
        store: Where rows lie.
        attention: Where attention to them is computed.
        device: Where all else is.
    """
    if isinstance(store, SeveralStores):
        return SeveralVisits(
            {each.layers: row_visits(each, attention, device) for each in store.stores}
        )
    host: HostVisits
    host = DiskVisits(store, device) if isinstance(store, BlockStore) else MemoryVisits()
    if attention is Tier.MEMORY or device.type == "cpu":
        return host
    return CardVisits(host, store, device)
