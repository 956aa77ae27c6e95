"""Training data in shards: stored on disk up to a limit, recomputed beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.system.files.atomic_file import AtomicFile
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.training.documents import EncodedDocument

Shard = dict[str, Tensor]
Compute = Callable[[Sequence[EncodedDocument]], Shard]
SHARD_BYTES = 64 << 20


class CountsSamples(Protocol):
    """Counts the samples of a shard; see `Trainee`."""

    def num_samples(self, shard: Shard) -> int: ...


class States:
    """Shards of documents, in order.

    Attributes:
        lengths: Number of samples of each shard.
    """

    def __init__(
        self, folder: Path, trainee: CountsSamples, compute: Compute, most_bytes: int
    ) -> None:
        """Start without shards.

        Args:
            folder: Folder of the shards.
            trainee: Counts the samples of a shard.
            compute: Computes a shard.
            most_bytes: Maximum size of all files together.
        """
        self._folder, self._trainee, self._compute = folder, trainee, compute
        self._most_bytes = most_bytes
        self._groups: list[Sequence[EncodedDocument]] = []
        self._used = 0
        self._held: tuple[int, Shard] | None = None
        self.lengths: list[int] = []

    def add(self, documents: Sequence[EncodedDocument], shard: Shard | None = None) -> None:
        """Add a group of documents as the next shard.

        Args:
            documents: Documents that it is computed from.
            shard: The shard; None if it is on the disk, or has to be computed.
        """
        make_own_folder(self._folder)
        self._groups.append(documents)
        index = len(self._groups) - 1
        shard = self._shard(index) if shard is None else self._keep(index, shard)
        self.lengths.append(self._trainee.num_samples(shard))

    @property
    def is_whole(self) -> bool:
        """Whether every shard is on the disk, so that the model isn't needed any more."""
        return all(self._path(index).is_file() for index in range(len(self._groups)))

    def documents(self, index: int) -> Sequence[EncodedDocument]:
        """Return the documents of a shard."""
        return self._groups[index]

    @property
    def all_documents(self) -> list[EncodedDocument]:
        """Return the documents of all shards, in order."""
        return [document for group in self._groups for document in group]

    def joined(self) -> Shard:
        """Return all shards as one."""
        shards = [self._shard(index) for index in range(len(self._groups))]
        return {name: torch.cat([shard[name] for shard in shards]) for name in shards[0]}

    def shard(self, index: int) -> Shard:
        """Return a shard; the last one is cached."""
        if self._held is None or self._held[0] != index:
            self._held = None  # free its memory before the next is loaded
            self._held = (index, self._shard(index))
        return self._held[1]

    def _shard(self, index: int) -> Shard:
        """Read a shard from disk, or compute and keep it."""
        path = self._path(index)
        if path.is_file():
            shard = load_file(path)
            self._used = max(self._used, _bytes_in(self._folder))
            return shard
        return self._keep(index, self._compute(self._groups[index]))

    def _keep(self, index: int, shard: Shard) -> Shard:
        """Write a shard to the disk, if there is room."""
        path = self._path(index)
        size = sum(tensor.nbytes for tensor in shard.values())
        if self._used + size <= self._most_bytes:
            with AtomicFile(path, durable=False) as part:  # a lost shard is recomputed
                save_file({name: tensor.contiguous() for name, tensor in shard.items()}, part)
            self._used += size
        return shard

    def _path(self, index: int) -> Path:
        """Return the path of a shard."""
        return self._folder / f"{index:05}.safetensors"


def _bytes_in(folder: Path) -> int:
    """Return the size of a folder's shards in bytes."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


T = TypeVar("T")


def grouped(items: Sequence[T], max_size: int, size_of: Callable[[T], int]) -> list[list[T]]:
    """Group items in order, each group of at most about this total size."""
    groups: list[list[T]] = [[]]
    count = 0
    for one in items:
        if groups[-1] and count + size_of(one) > max_size:
            groups.append([])
            count = 0
        groups[-1].append(one)
        count += size_of(one)
    return [group for group in groups if group]
