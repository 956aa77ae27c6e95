"""The interface of runners, which compute forward passes of a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from medusa_core.messages import Machine, Move, Placement
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.system.native.pool import Workers

_MAX_DEFAULT_TREE_ROWS = 64  # larger trees only if a user sets them


class PlacedTree(NamedTuple):
    """A token tree and the cache that it extends.

    Attributes:
        tree: Its root follows the cache's committed rows.
        kv: The cache.
        decided: All nodes are a chain and will be committed: a chunk of a prompt.
        only_last: Only the last node's hidden state is needed.
    """

    tree: TokenTree
    kv: KvCache
    decided: bool = False
    only_last: bool = False


class LowerTiers(NamedTuple):
    """Tiers below the device.

    Attributes:
        placement: Tier of each layer's weights and KV rows, and sizes of batches.
        rows: Store of offloaded KV rows; None if there are none.
        folder: Folder on a disk for activations; None if none are there.
    """

    placement: Placement
    rows: KvStore | None = None
    folder: Path | None = None


class Waited(NamedTuple):
    """Seconds that passes have waited since the runner was made.

    Attributes:
        transfer_s: Seconds in which nothing was computed, waiting for layers or KV rows.
        remote_s: Seconds in which other machines computed.
    """

    transfer_s: float = 0.0
    remote_s: float = 0.0

    def since(self, before: Waited) -> Waited:
        """Return the difference to an earlier value."""
        return Waited(self.transfer_s - before.transfer_s, self.remote_s - before.remote_s)


class Runner(Protocol):
    """Runs forward passes, which append rows to caches.

    `waited`, `tap` and the members after `logits` have defaults for a model on one local device.

    Attributes:
        hidden_dtype: Dtype of hidden states.
        cache_dtype: Dtype of keys and values.
        taps: Layers whose input is returned with each hidden state, ascending; the number of
            layers means the output of the last. A state is the normalized output of the last layer
            followed by the tapped ones: [(1 + taps) · hidden].
        waited: How long passes have waited; on a GPU, in the work that it has completed.
        workers: Threads of the compiled step, which may also compute heads; None without one.
        store: Store of offloaded KV rows; None if there are none.
        plain_why: Why this runner can't verify trees, for people; empty if it can.
    """

    hidden_dtype: torch.dtype
    cache_dtype: torch.dtype
    taps: tuple[int, ...] = ()
    workers: Workers | None = None
    store: KvStore | None = None
    plain_why: str = ""

    @property
    def waited(self) -> Waited:
        """How long passes have waited so far: not at all if everything is on the device."""
        return Waited()

    @property
    def traffic(self) -> Traffic:
        """Counters of data moved between tiers."""
        return Traffic()

    def tap(self, layers: Sequence[int]) -> None:
        """Return the inputs of some layers with all hidden states from now on."""
        self.taps = tuple(layers)

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Set the numbers of CPU threads for decoding and for prefill."""

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """Return an empty cache.

        Args:
            capacity: Number of slots.
            memory: Memory from a `CachePool`; None allocates it.

        Raises:
            OutOfMemoryError: The device has too little memory.
        """

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute all nodes of some trees in one pass; their rows aren't committed.

        Weights are read once for all rows; a tree doesn't influence the result of another.

        Args:
            placed: Trees with different caches.

        Returns:
            Hidden states of all nodes, tree by tree; of the last node alone for `only_last`.
            [n, (1 + taps) · hidden]
        """

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Compute consecutive tokens (a chunk of prefill) and commit them.

        Args:
            token_ids: Token ids.
            kv: Cache to extend.
            only_last: Return only the last token's hidden state.

        Returns:
            Hidden states. [n, (1 + taps) · hidden], or [1, (1 + taps) · hidden]
        """

    def embed_from(self, vectors: Tensor) -> None:
        """Replace the embedding table from the next pass on; a token id is a row's index.

        Args:
            vectors: Inputs of the first layer, on the CPU. [any, hidden]
        """

    def logits(self, states: Tensor) -> Tensor:
        """Compute logits from hidden states. [n, (1 + taps) · hidden] → [n, vocabulary]"""

    def reserve(self, config: ModelConfig, precision: Precision, num_rows: int) -> CachePool:
        """Allocate the pool of all caches.

        Raises:
            OutOfMemoryError: The device has too little memory.
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
        """Bytes of device memory for prefetching."""
        return 0

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Other machines that compute layers, in layer order."""
        return ()

    def take_moves(self) -> tuple[Move, ...]:
        """Return and clear the list of layers that went to another machine."""
        return ()

    def leave(self) -> None:
        """Release the other machines that compute layers."""
        return  # there are none


def wanted_rows(placed: Sequence[PlacedTree]) -> list[int]:
    """Return the indices of nodes whose hidden states are needed."""
    wanted, start = list[int](), 0
    for each in placed:
        end = start + each.tree.shape.num_nodes
        wanted += [end - 1] if each.only_last else range(start, end)
        start = end
    return wanted


def only_wanted(states: Tensor, placed: Sequence[PlacedTree]) -> Tensor:
    """Select the hidden states that are needed. [n, any] → [k, any]"""
    if not any(each.only_last for each in placed):
        return states
    return states[torch.tensor(wanted_rows(placed), device=states.device)]


def reads_prompts(placed: Sequence[PlacedTree]) -> bool:
    """Whether a pass is large enough for the number of threads of prefill."""
    return sum(each.tree.shape.num_nodes for each in placed) > _MAX_DEFAULT_TREE_ROWS


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A registered runner.

    Attributes:
        name: Name of the runner.
        preference: The runner with the lowest one that can compute a model is used.
        build: Makes a runner; returns None if it can't compute the model or wouldn't be faster.
    """

    name: str
    preference: int
    build: Callable[[Decoder, Precision, LowerTiers | None], Runner | None]
