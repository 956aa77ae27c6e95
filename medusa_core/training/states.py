"""What heads learn from, in shards: kept on disk up to a bound, computed again beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.training.packing import EncodedDocument

Shard = dict[str, Tensor]
SHARD_BYTES = 64 << 20
Collect = Callable[[Sequence[EncodedDocument]], Shard]


class States:
    """Shards of some documents, in their order.

    Attributes:
        lengths: How many places each shard has to learn from.
    """

    def __init__(
        self,
        folder: Path,
        groups: Sequence[Sequence[EncodedDocument]],
        collect: Collect,
        length_of: Callable[[Shard], int],
        most_bytes: int,
    ) -> None:
        """Take the documents; `prepare` computes.

        Args:
            folder: Where shards are kept.
            groups: The documents of each shard.
            collect: Computes a shard.
            length_of: How many places a shard has.
            most_bytes: Of all files together.
        """
        self._folder, self._groups, self._collect = folder, groups, collect
        self._length_of = length_of
        self._most_bytes = most_bytes
        self._used = 0
        self._held: tuple[int, Shard] | None = None
        self.lengths: list[int] = []

    def prepare(self) -> Iterator[int]:
        """Compute what isn't there; yields how many shards are ready."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for index in range(len(self._groups)):
            self.lengths.append(self._length_of(self._shard(index)))
            yield index + 1

    @property
    def is_whole(self) -> bool:
        """Every shard lies on the disk: the model isn't needed any more."""
        return all(self._path(index).is_file() for index in range(len(self._groups)))

    def documents(self, index: int) -> Sequence[EncodedDocument]:
        """What a shard is computed of."""
        return self._groups[index]

    def shard(self, index: int) -> Shard:
        """One shard; the last one that was asked for stays at hand."""
        if self._held is None or self._held[0] != index:
            self._held = None  # before the next takes its room
            self._held = (index, self._shard(index))
        return self._held[1]

    def _shard(self, index: int) -> Shard:
        path = self._path(index)
        if path.is_file():
            shard = load_file(path)
            self._used = max(self._used, _bytes_in(self._folder))
            return shard
        shard = self._collect(self._groups[index])
        size = sum(tensor.nbytes for tensor in shard.values())
        if self._used + size <= self._most_bytes:
            part = path.with_suffix(".part")
            save_file({name: tensor.contiguous() for name, tensor in shard.items()}, part)
            part.replace(path)
            self._used += size
        return shard

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:05}.safetensors"


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def grouped(
    documents: Sequence[EncodedDocument], most_tokens: int
) -> list[Sequence[EncodedDocument]]:
    """Documents in groups of about so many tokens, in their order."""
    groups: list[list[EncodedDocument]] = [[]]
    count = 0
    for document in documents:
        if groups[-1] and count + len(document.ids) > most_tokens:
            groups.append([])
            count = 0
        groups[-1].append(document)
        count += len(document.ids)
    return [group for group in groups if group]
