"""Storing of offloaded layers while a model is loaded.

A file on the disk holds all layers, including those on the device. So it serves the next load
whatever placement that has, and that load reads only the first layer of each kind from the
checkpoint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from medusa_core.errors import TierError
from medusa_core.i18n import tr
from medusa_core.messages import Placement, Tier
from medusa_core.models.precision import Precision
from medusa_core.models.weights import Weights
from medusa_core.runtime.offload.layer_file import (
    SUFFIX,
    LayerFile,
    LayerFileWriter,
    find_layer_file,
)
from medusa_core.runtime.offload.linear import (
    OffloadedLayers,
    OffloadedWeights,
)
from medusa_core.runtime.offload.memory import MemoryLayers
from medusa_core.system.components import version_of
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import WEIGHTS_LAYOUT

_LAYOUT = 1  # version of the file; older ones are written again


class TierFolder(NamedTuple):
    """A folder on a disk for offloaded layers.

    Attributes:
        folder: Path of the folder.
        made_from: Everything that determines the layers' content, as JSON values.
    """

    folder: Path
    made_from: Mapping[str, object]


class OffloadStore:
    """Stores the layers of one load; as a context manager, it commits a written file on success.

    Attributes:
        offloaded: Placeholders of the offloaded layers.
    """

    def __init__(self, placement: Placement, precision: Precision, tier: TierFolder | None) -> None:
        """Open the file of layers, or create it.

        Args:
            placement: Tier of each layer.
            precision: Dtypes and device of the target.
            tier: Folder of layers on a disk; None without a disk tier.

        Raises:
            TierError: The disk has too little room, or can't be written.
        """
        offloaded = (*placement.layers(Tier.MEMORY), *placement.layers(Tier.DISK))
        self.offloaded = OffloadedLayers(offloaded)
        self._precision = precision
        self._memory = MemoryLayers()
        self._in_memory = frozenset(placement.layers(Tier.MEMORY))
        self._file: LayerFile | None = None
        self._writer: LayerFileWriter | None = None
        if Tier.DISK not in placement.tiers:
            return
        if tier is None:
            raise TierError("Layers lie on a disk, but no folder is named.", "Name a folder.")
        key = _key(tier.made_from)
        self._path, self._made_of = tier.folder / f"{key[:32]}{SUFFIX}", key
        self._file = find_layer_file(self._path, key)
        if self._file is None:
            self._writer = LayerFileWriter(self._path, key, sum(placement.layer_bytes))

    @property
    def is_stored(self) -> bool:
        """Whether the file exists already."""
        return self._file is not None

    def wrap(self, weights: Weights) -> Weights:
        """Wrap the weights of a checkpoint so that offloaded layers are stored."""
        return OffloadedWeights(
            weights,
            self.offloaded,
            memory=self._memory,
            in_memory=self._in_memory,
            writer=self._writer,
            stored=self._file,
            device=self._precision.device,
        )

    def __enter__(self) -> OffloadStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._memory.finish()
        if self._writer is not None:
            self._writer.__exit__(kind, *rest)
        if kind is not None:
            return
        if self._writer is not None:
            self._file = find_layer_file(self._path, self._made_of)
            if self._file is None:
                raise TierError(tr("{0} isn't what was written.", self._path), "Check the disk.")
        self.offloaded.sources = [self._memory, *([] if self._file is None else [self._file])]


def _key(made_from: Mapping[str, object]) -> str:
    """Hash what layers are made from, and the versions of the kernels that their layout serves."""
    compiled = None if native_library() is None else WEIGHTS_LAYOUT
    versions = {"layout": _LAYOUT, "compiled": compiled, "bitsandbytes": version_of("bitsandbytes")}
    text = json.dumps([dict(made_from), versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
