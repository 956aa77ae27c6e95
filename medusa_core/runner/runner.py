"""What a runner is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.kv.cache import KvCache
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.tree.shape import TokenTree


class Runner(Protocol):
    """Runs forward passes; rows of a pass are written behind the committed rows of a cache.

    Attributes:
        hidden_dtype: Dtype of the states.
        cache_dtype: Dtype of keys and values.
    """

    hidden_dtype: torch.dtype
    cache_dtype: torch.dtype

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

    def verify(self, tree: TokenTree, kv: KvCache) -> Tensor:
        """Compute all nodes of a tree at once.

        Args:
            tree: Root and draft nodes; row i of the result is node i.
            kv: Takes the nodes' rows, uncommitted.

        Returns:
            Hidden states after the final norm. [n, hidden]
        """

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Compute consecutive tokens (a chunk of prefill) and commit them.

        Args:
            token_ids: The tokens.
            kv: Takes their rows.
            only_last: Only the last token's state is wanted.

        Returns:
            Hidden states after the final norm. [n, hidden], or [1, hidden]
        """

    def logits(self, hidden: Tensor) -> Tensor:
        """The target's scores. [n, hidden] → [n, vocabulary]"""


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A registered runner.

    Attributes:
        name: Its name.
        preference: The one with the lowest that doesn't decline runs a model.
        build: A runner for a model, or None where it can't compute it or wouldn't be faster.
    """

    name: str
    preference: int
    build: Callable[[Decoder, Precision], Runner | None]
