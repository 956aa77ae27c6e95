"""What a runner is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from medusa_core.messages import Machine, Move, Placement
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.system.native.pool import Workers

_USUAL_TREE_ROWS = 64  # that no tree goes beyond unless somebody wants it to


class PlacedTree(NamedTuple):
    """A token tree, and the cache that its root stands behind.

    Attributes:
        tree: The tree.
        kv: The cache.
        decided: All nodes will be committed, a chain as they are: a chunk of a prompt.
        only_last: Only the last node's state is wanted.
    """

    tree: TokenTree
    kv: KvCache
    decided: bool = False
    only_last: bool = False


class LowerTiers(NamedTuple):
    """What lies below the device.

    Attributes:
        placement: Which of it lies where, and in which batches a pass is computed.
        rows: Has cached rows; None where all lie on the device.
        folder: On a disk, for activations; None where none lie there.
    """

    placement: Placement
    rows: KvStore | None = None
    folder: Path | None = None


class Waited(NamedTuple):
    """How long passes have waited for what isn't on the device, since the runner was made.

    Attributes:
        transfer_s: Seconds in which layers or rows were on their way, and nothing was computed.
        remote_s: Seconds in which other machines computed.
    """

    transfer_s: float = 0.0
    remote_s: float = 0.0

    def since(self, before: Waited) -> Waited:
        """What has come on top."""
        return Waited(self.transfer_s - before.transfer_s, self.remote_s - before.remote_s)


class Runner(Protocol):
    """Runs forward passes; rows of a pass are written behind the committed rows of a cache.

    What stands below `logits` is as usual for a target of which all lies on this machine's device.

    Attributes:
        hidden_dtype: Dtype of the states.
        cache_dtype: Dtype of keys and values.
        taps: Layers, rising, of which a state also tells what enters them; the number of layers
            stands for what leaves the last. A state has 1 + taps parts of the hidden size, the one
            behind the final norm first.
        waited: How long passes have waited so far; of a card, as far as it has come with its work.
        workers: The threads of a compiled step, which may compute heads, too; None without one.
        store: Has cached rows that lie below the device; None where all lie on it.
        plain_why: Why trees must be nothing but a root, for people; empty where they needn't.
    """

    hidden_dtype: torch.dtype
    cache_dtype: torch.dtype
    taps: tuple[int, ...]
    workers: Workers | None = None
    store: KvStore | None = None
    plain_why: str = ""

    @property
    def waited(self) -> Waited: ...

    @property
    def traffic(self) -> Traffic:
        """What passes have moved and computed so far, where not all lies on the device."""
        return Traffic()

    def tap(self, layers: Sequence[int]) -> None:
        """Tell in all states from now on what enters some layers."""

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Compute with so many CPU threads."""

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """An empty cache.

        Args:
            capacity: Slots.
            memory: Where it lies, as a `CachePool` lends it; None takes memory of its own.

        Raises:
            OutOfMemoryError: The device has no room for it.
        """

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute all nodes of some trees at once, each behind its own cache.

        The layers read their weights once for all rows; what one tree is doesn't change another.

        Args:
            placed: Trees with different caches, which take the nodes' rows, uncommitted.

        Returns:
            States of the first tree's nodes, then of the next one's, where only the last is wanted
            that alone. [n, (1 + taps) · hidden]
        """

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Compute consecutive tokens (a chunk of prefill) and commit them.

        Args:
            token_ids: The tokens.
            kv: Takes their rows.
            only_last: Only the last token's state is wanted.

        Returns:
            Their states. [n, (1 + taps) · hidden], or [1, (1 + taps) · hidden]
        """

    def embed_from(self, vectors: Tensor) -> None:
        """Take rows from these vectors, of which a token is the number, from the next pass on.

        Args:
            vectors: On the CPU, as they enter the first layer. [any, hidden]
        """

    def logits(self, states: Tensor) -> Tensor:
        """The target's scores. [n, (1 + taps) · hidden] → [n, vocabulary]"""

    def reserve(self, config: ModelConfig, precision: Precision, num_rows: int) -> CachePool:
        """Memory for the rows of all caches.

        Raises:
            OutOfMemoryError: The device has no room for it.
        """
        return CachePool(
            config,
            self.cache_dtype,
            precision.device,
            num_rows,
            precision.cache_format,
            precision.compute.itemsize,
            self.store,
        )

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the device's memory that layers from below pass through."""
        return 0

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The other machines that have layers, in the order of these."""
        return ()

    def take_moves(self) -> tuple[Move, ...]:
        """Where layers went, of those that other machines have, since this was asked last."""
        return ()

    def leave(self) -> None:
        """Tell the other machines that have layers that they aren't needed."""
        return  # there are none


def wanted_rows(placed: Sequence[PlacedTree]) -> list[int]:
    """Of all nodes those whose states are wanted."""
    wanted, start = list[int](), 0
    for each in placed:
        end = start + each.tree.shape.num_nodes
        wanted += [end - 1] if each.only_last else range(start, end)
        start = end
    return wanted


def only_wanted(states: Tensor, placed: Sequence[PlacedTree]) -> Tensor:
    """Of the states of all nodes those that are wanted. [n, any] → [k, any]"""
    if not any(each.only_last for each in placed):
        return states
    return states[torch.tensor(wanted_rows(placed), device=states.device)]


def reads_prompts(placed: Sequence[PlacedTree]) -> bool:
    """Whether a pass has so many rows that prompts are among them: more threads serve it."""
    return sum(each.tree.shape.num_nodes for each in placed) > _USUAL_TREE_ROWS


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A registered runner.

    Attributes:
        name: Its name.
        preference: The one with the lowest that doesn't decline runs a model.
        build: A runner for a model of which so much lies below the device, or None where it can't
            compute it or wouldn't be faster.
    """

    name: str
    preference: int
    build: Callable[[Decoder, Precision, LowerTiers | None], Runner | None]
