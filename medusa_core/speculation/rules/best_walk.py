"""Compiled greedy walk through a token tree."""

from __future__ import annotations

import ctypes
from array import array
from ctypes import addressof, c_float

import torch
from torch import Tensor

from medusa_core.messages import NUM_ALTERNATIVES
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import Acceptance
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import LANES

_BYTES = 4


class BestWalk:
    """Follows the largest logit of each row, the first of equal ones; not thread-safe."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._walk_greedy = library.walk_greedy
        self._make_room(16)

    def __call__(self, tree: TokenTree, scores: Tensor, traces: bool) -> Acceptance | None:
        """Walk down a tree.

        Args:
            tree: The tree.
            scores: Logits of all its nodes. float32, [n, columns]
            traces: Also read the logits that a trace keeps.

        Returns:
            The acceptance; None if a row on the path has a NaN, or its largest logit is infinite.
        """
        scores = scores.contiguous()  # the library expects contiguous rows
        token_ids = array("i", tree.token_ids)
        num_nodes = len(token_ids)
        if num_nodes > self._num_nodes:
            self._make_room(num_nodes)
        walked = self._walked
        count = self._walk_greedy(
            scores.data_ptr(),
            scores.shape[1],
            token_ids.buffer_info()[0],
            tree.shape.parent_array.buffer_info()[0],
            num_nodes,
            walked.buffer_info()[0],
            self._address if traces else None,
        )
        if not count:
            return None
        size = _BYTES * (1 + 2 * NUM_ALTERNATIVES) * count
        judged = self._view[:size].tobytes() if traces else b""
        return Acceptance(tuple(walked[1:count]), walked[2 * count - 1], judged)

    def _make_room(self, num_nodes: int) -> None:
        """Allocate the library's outputs for trees of at most `num_nodes` nodes."""
        self._num_nodes = num_nodes
        self._walked = array("i", bytes(_BYTES * 2 * num_nodes))
        self._room = (c_float * (num_nodes * (1 + 2 * NUM_ALTERNATIVES)))()
        self._address = addressof(self._room)
        self._view = memoryview(self._room).cast("B")


def best_walk(scores: Tensor) -> BestWalk | None:
    """A compiled walk for logits like these; None if there is none."""
    library = native_library()
    fits = scores.dtype == torch.float32 and scores.is_cpu and scores.shape[1] >= LANES
    return None if library is None or not fits else BestWalk(library)
