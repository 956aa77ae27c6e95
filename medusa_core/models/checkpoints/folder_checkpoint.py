"""Open a checkpoint in Hugging Face layout: one safetensors file, or shards."""

from __future__ import annotations

from pathlib import Path

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.stacked import StackedCheckpoint, is_stacked
from medusa_core.models.checkpoints.weight_index import (
    check_complete,
    check_safetensors,
    read_weight_map,
)
from medusa_core.system.files.safetensors_header import read_header

_INDEX = "model.safetensors.index.json"


def open_folder(folder: Path) -> Checkpoint:
    """Open the weights in a folder: `model.safetensors`, or the shards of its index.

    Raises:
        CheckpointError: There are no weights, or a file is missing or damaged.
    """
    files = weight_files(folder)
    return StackedCheckpoint(files) if is_stacked(frozenset(files)) else Checkpoint(files)


def weight_files(folder: Path) -> dict[str, Path]:
    """Return the safetensors files in a folder by the names of their tensors.

    Raises:
        CheckpointError: There are no weights, or a file is missing or damaged.
    """
    index = folder / _INDEX
    if index.exists():
        return _read_index(folder, index)
    single = folder / "model.safetensors"
    if single.exists():
        return dict.fromkeys(read_header(single), single)
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    raise CheckpointError(
        tr("No model.safetensors in {0}.", folder),
        tr(
            "{0} is a pickle, which can run code: get the safetensors version instead, or convert "
            "it once: medusa convert {1}",
            pickles[0],
            folder,
        )
        if pickles
        else "Choose a folder in Hugging Face layout, or download the model again.",
    )


def _read_index(folder: Path, index: Path) -> dict[str, Path]:
    """Map tensor names to the shards that `model.safetensors.index.json` lists."""
    weight_map = read_weight_map(index)
    check_safetensors(index, weight_map.values())
    check_complete(folder, weight_map.values())
    return {name: folder / shard for name, shard in weight_map.items()}
