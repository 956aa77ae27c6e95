"""Indices of sharded checkpoints, as `model.safetensors.index.json`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.system.files.json_file import read_json


def read_weight_map(index: Path) -> dict[str, str]:
    """Map tensor names to the file names of their shards.

    Args:
        index: File whose `weight_map` is read.

    Raises:
        CheckpointError: It is damaged, or names files in other folders.
    """
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(tr("{0} has no weight_map.", index.name), "Download the file again.")
    shards = {str(name): str(shard) for name, shard in weight_map.items()}
    if outside := sorted(shard for shard in shards.values() if Path(shard).name != shard):
        raise CheckpointError(
            tr("{0} names a file outside of its folder: {1}.", index.name, outside[0]),
            "Don't use this download.",
        )
    return shards


def check_safetensors(index: Path, shards: Collection[str]) -> None:
    """Raise `CheckpointError` if an index names a file of another format."""
    if other := sorted(shard for shard in shards if not shard.endswith(".safetensors")):
        raise CheckpointError(
            tr("{0} names a file that isn't safetensors: {1}.", index.name, other[0]),
            "It may be a pickle, which can run code. Don't use this download.",
        )


def check_complete(folder: Path, shards: Collection[str]) -> None:
    """Raise `CheckpointError` if a folder lacks shards."""
    if missing := sorted(shard for shard in set(shards) if not (folder / shard).is_file()):
        raise CheckpointError(
            tr(
                "{0} of {1} weight files are missing, such as {2}.",
                len(missing),
                len(set(shards)),
                missing[0],
            ),
            "Let the download finish, or download the model again.",
        )
