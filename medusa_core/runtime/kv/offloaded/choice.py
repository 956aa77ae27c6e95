"""Which store a target's cached rows below the device get."""

from __future__ import annotations

from pathlib import Path

from medusa_core.errors import TierError
from medusa_core.messages import Placement, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.offloaded.disk import DiskStore
from medusa_core.runtime.kv.offloaded.store import RowStore
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
    """
    layers = () if placement is None else placement.cached_layers(Tier.DISK)
    if placement is None or not layers:
        return None
    if folder is None:
        raise TierError("Cached rows lie on a disk, but no folder is named.", "Name a folder.")
    return DiskStore(
        config,
        layers,
        sessions,
        whole_rows(config.context_tokens),
        folder,
        placement.tree_rows,
        precision.cache_format,
    )
