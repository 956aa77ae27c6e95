"""Kinds of heads: how they are recognised, sized and loaded.

A drafter or source uses heads of the kind that it knows; other code treats them by this interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from medusa_core.errors import ModelError
from medusa_core.heads import kinds
from medusa_core.heads.head_files import HeadFiles, open_head_files
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.system.files.safetensors_header import TensorShapes
from medusa_core.system.native.pool import Workers
from medusa_core.system.registry import Registry


class Heads(Protocol):
    """Loaded heads of any kind.

    Attributes:
        num_heads: Number of heads.
        taps: Target layers whose inputs they read besides the final state.
        caches: Memory for their KV caches after `reserve`; None if they have none.
    """

    num_heads: int
    taps: tuple[int, ...]
    caches: CachePool | None

    @property
    def nbytes(self) -> int:
        """Bytes of their weights, without shared weights and caches."""

    def reserve(self, num_rows: int) -> None:
        """Allocate KV caches, if they have any.

        Args:
            num_rows: Rows (tokens) that fit.

        Raises:
            OutOfMemoryError: The device has no room.
        """

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the heads, too."""


@dataclass(frozen=True, slots=True)
class HeadKind:
    """A registered kind of heads.

    Attributes:
        name: Name of the kind.
        owns: Whether tensors of these names are heads of this kind.
        sizes: Returns sizes, given tensor shapes and `config.json`. Raises HeadsError.
        read: Loads the heads for a target. Raises CheckpointError, HeadsError or OutOfMemoryError.
        is_ranked: A head gives one list of tokens for all paths, so that acceptance per rank can be
            measured and used to choose a tree.
        is_embedded: Whether such heads are among a target's tensors, given all names and its sizes;
            None if they never are.
    """

    name: str
    owns: Callable[[frozenset[str]], bool]
    sizes: Callable[[TensorShapes, Mapping[str, object]], HeadsShape]
    read: Callable[[HeadFiles, HeadsTarget], Heads]
    is_ranked: bool = True
    is_embedded: Callable[[frozenset[str], ModelConfig], bool] | None = None


@cache
def kind_registry() -> Registry[HeadKind]:
    """Return all kinds of heads."""
    return Registry(kinds, "kind of heads", HeadKind)


def chosen_heads(model: ModelFiles, path: Path | None, takes_own: bool) -> HeadFiles | None:
    """Open the heads that a target is loaded with.

    Args:
        path: Path of the heads; None if none were chosen.
        takes_own: Use heads among the target's own tensors if no path is given.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no heads at the path.
        ModelError: A GGUF file's architecture isn't supported.
    """
    if path is not None:
        return open_head_files(path)
    return own_heads(model) if takes_own else None


def own_heads(model: ModelFiles) -> HeadFiles | None:
    """Return the heads among a target's own tensors; None if there are none.

    Raises:
        CheckpointError: A file is damaged.
        ModelError: The architecture isn't supported.
    """
    checkpoint = model.checkpoint()
    if not _lie_within(checkpoint.names, model.config):
        return None
    return HeadFiles(model.path, checkpoint, model.settings)


def embedded_shape(
    shapes: TensorShapes, config: ModelConfig, settings: Mapping[str, object]
) -> HeadsShape:
    """Return the sizes of heads among a target's tensors; without heads all sizes are 0.

    Args:
        shapes: Shapes of all tensors by name.
        config: Sizes of the target.
        settings: `config.json`.

    Raises:
        HeadsError: The heads are incomplete.
    """
    is_there = _lie_within(frozenset(shapes), config)
    return shape_of_tensors(shapes, settings) if is_there else HeadsShape()


def _lie_within(names: frozenset[str], config: ModelConfig) -> bool:
    """Whether a target's tensors include heads of any kind."""
    ways = [spec.is_embedded for spec in kind_registry().specs]
    return any(is_embedded is not None and is_embedded(names, config) for is_embedded in ways)


def is_heads_folder(folder: Path) -> bool:
    """Whether a folder holds heads of a kind that is never among a target's tensors."""
    try:
        names = open_head_files(folder).checkpoint.names
    except ModelError:
        return False
    alone = (spec for spec in kind_registry().specs if spec.is_embedded is None)
    return any(spec.owns(names) for spec in alone)


def kind_of(names: frozenset[str]) -> HeadKind:
    """Return the kind of heads with tensors of these names.

    Unknown tensors count as Medusa heads, whose checks say what is wrong.
    """
    owning = (spec for spec in kind_registry().specs if spec.owns(names))
    return next(owning, kind_registry().get("medusa"))


def read_shape(path: Path) -> HeadsShape:
    """Return the sizes of heads in a folder or GGUF file without reading a tensor.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no heads.
        ModelError: The architecture of a GGUF file isn't supported.
    """
    return shape_of_files(open_head_files(path))


def chosen_shape(model: ModelFiles, path: Path | None, takes_own: bool) -> HeadsShape:
    """Return the sizes of the heads that a target is loaded with, without reading a tensor.

    Args:
        path: Path of the heads; None if none were chosen.
        takes_own: Use heads among the target's own tensors if no path is given.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no heads at the path.
        ModelError: A GGUF file's architecture isn't supported.
    """
    files = chosen_heads(model, path, takes_own)
    return HeadsShape() if files is None else shape_of_files(files)


def shape_of_files(files: HeadFiles) -> HeadsShape:
    """Return the sizes of opened heads.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no heads.
    """
    return shape_of_tensors(files.shapes, files.settings)


def shape_of_tensors(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of heads from their headers.

    Args:
        shapes: Shapes of the tensors by name.
        settings: `config.json`; empty if unknown.

    Raises:
        HeadsError: There are no heads.
    """
    return kind_of(frozenset(shapes)).sizes(shapes, settings)
