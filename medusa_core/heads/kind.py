"""What a kind of heads is: how such heads are told, counted and read for a target.

A source or drafter asks the heads of the kind that it knows; nobody else looks into them.
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
from medusa_core.heads.medusa import SharedWeights
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.system.files.safetensors_header import TensorShapes
from medusa_core.system.native.pool import Workers
from medusa_core.system.registry import Registry


class Heads(Protocol):
    """Loaded heads of any kind.

    Attributes:
        num_heads: How many there are.
        taps: Layers of the target whose entering states they read beside its last one.
        caches: Room for caches of their own, once it is reserved; None for those that have none.
    """

    num_heads: int
    taps: tuple[int, ...]
    caches: CachePool | None

    @property
    def nbytes(self) -> int:
        """Bytes that they hold, what the target lends them and their caches left out."""

    def reserve(self, num_rows: int) -> None:
        """Reserve caches of their own for so many rows, if they have any.

        Raises:
            OutOfMemoryError: The device has no room.
        """

    def share_workers(self, workers: Workers) -> None:
        """Let the target's threads compute the heads, too."""


@dataclass(frozen=True, slots=True)
class HeadKind:
    """A registered kind of heads.

    Attributes:
        name: Its name.
        owns: Are tensors of these names heads of this kind?
        sizes: Their sizes, by names and shapes of tensors and by what `config.json` says, if
            anything. Raises HeadsError.
        read: The heads for a target: their files, sizes of the target, where and in which dtype
            they run, what the target lends them, their weight format. Raises CheckpointError,
            HeadsError or OutOfMemoryError.
        is_ranked: What a head guesses is one list for all paths, so that its ranks are right so and
            so often: a table of trees goes with such heads.
        lies_within: Do such heads lie among the tensors of a target, by all their names and its
            sizes? None where they never do.
    """

    name: str
    owns: Callable[[frozenset[str]], bool]
    sizes: Callable[[TensorShapes, Mapping[str, object]], HeadsShape]
    read: Callable[[HeadFiles, ModelConfig, Precision, SharedWeights, PartFormats], Heads]
    is_ranked: bool = True
    lies_within: Callable[[frozenset[str], ModelConfig], bool] | None = None


@cache
def kind_registry() -> Registry[HeadKind]:
    """All kinds of heads."""
    return Registry(kinds, "kind of heads", HeadKind)


def chosen_heads(model: ModelFiles, path: Path | None, takes_own: bool) -> HeadFiles | None:
    """The heads that a target is loaded with.

    Args:
        model: The target.
        path: Of heads; None where none are named.
        takes_own: Those among its own tensors serve then.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no heads at the path.
        ModelError: A file is of an architecture that isn't supported.
    """
    if path is not None:
        return open_head_files(path)
    return own_heads(model) if takes_own else None


def own_heads(model: ModelFiles) -> HeadFiles | None:
    """The heads of any kind among a target's own tensors; None where there are none.

    Raises:
        CheckpointError: A file is damaged.
        ModelError: It isn't supported.
    """
    checkpoint = model.checkpoint()
    if not _lie_within(checkpoint.names, model.config):
        return None
    return HeadFiles(model.path, checkpoint, model.settings)


def shape_within(
    shapes: TensorShapes, config: ModelConfig, settings: Mapping[str, object]
) -> HeadsShape:
    """Sizes of the heads among a target's tensors, of which only headers are known; none is 0.

    Args:
        shapes: Of all tensors, by name.
        config: The target's sizes.
        settings: What `config.json` says.

    Raises:
        HeadsError: They aren't whole.
    """
    is_there = _lie_within(frozenset(shapes), config)
    return shape_among(shapes, settings) if is_there else HeadsShape()


def _lie_within(names: frozenset[str], config: ModelConfig) -> bool:
    ways = [spec.lies_within for spec in kind_registry().specs]
    return any(lies_within is not None and lies_within(names, config) for lies_within in ways)


def are_heads_alone(folder: Path) -> bool:
    """Does a folder hold heads that never lie among a target's tensors, so that it is no model?"""
    try:
        names = open_head_files(folder).checkpoint.names
    except ModelError:
        return False
    alone = (spec for spec in kind_registry().specs if spec.lies_within is None)
    return any(spec.owns(names) for spec in alone)


def kind_of(names: frozenset[str]) -> HeadKind:
    """The kind of heads with tensors of these names; Medusa, which says what is wrong, if none."""
    owning = (spec for spec in kind_registry().specs if spec.owns(names))
    return next(owning, kind_registry().get("medusa"))


def read_shape(path: Path) -> HeadsShape:
    """Sizes of the heads in a folder or a GGUF file, without reading a tensor.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: It holds no heads.
        ModelError: It is a GGUF file of an architecture that isn't supported.
    """
    return shape_in(open_head_files(path))


def chosen_shape(model: ModelFiles, path: Path | None, takes_own: bool) -> HeadsShape:
    """Sizes of `chosen_heads`, without reading a tensor; raises the same."""
    files = chosen_heads(model, path, takes_own)
    return HeadsShape() if files is None else shape_in(files)


def shape_in(files: HeadFiles) -> HeadsShape:
    """Sizes of heads whose files are open.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: They are no heads.
    """
    return shape_among(files.shapes, files.settings)


def shape_among(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Sizes of heads of which only headers are known.

    Args:
        shapes: Of their tensors, by name.
        settings: What `config.json` says; empty if that isn't known.

    Raises:
        HeadsError: They are no heads.
    """
    return kind_of(frozenset(shapes)).sizes(shapes, settings)
