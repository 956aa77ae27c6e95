"""Prefill chunk sizes: large for speed, small enough that a `Cancel` takes effect soon.

A GPU dequantizes 4-bit weights once per chunk, so larger chunks are faster. Offloaded layers are
transferred once per chunk: more rows cost nothing meanwhile, and a `Cancel` must wait for the
transfer anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from torch import Tensor

from medusa_core.loading.memory.plan import FIRST_CHUNK_ROWS
from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.resident import ROUND_ROWS
from medusa_core.system import cuda

LIMIT_S = 0.3  # a Cancel takes effect within this time
_MIN_ROWS = 16  # fewer take a CPU hardly less time
_TARGET_S = 0.8 * LIMIT_S  # of a chunk: rows of longer contexts take longer
_MIN_GROWTH = 1.25  # smaller changes would follow noise
_CLOCK_S = 1e-6  # shortest time that a clock tells from 0
_FREE_ABOVE = 1 / 5  # of a chunk's time spent waiting: twice the rows then cost less each


class Chunks:
    """Prefills texts in chunks, and adapts their size to the measured time.

    Attributes:
        rows: Rows of the next chunk.
    """

    def __init__(self, target: Target, clock: Callable[[], float] = time.perf_counter) -> None:
        """Start with chunks that are fast on most devices.

        Args:
            target: The target.
            clock: Returns seconds.
        """
        self._target = target
        self._clock = clock
        self._max_rows = target.chunk_rows
        self.rows = min(FIRST_CHUNK_ROWS, self._max_rows)

    def read(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Prefill the next chunk of a text, and wait for the device.

        Args:
            token_ids: The text.
            kv: The cache with the rows of the text's first tokens.
            only_last: Return the last token's state only.

        Returns:
            Hidden states of the chunk's tokens. [n, hidden], or [1, hidden]
        """
        chunk = token_ids[kv.length : kv.length + self.rows]
        started, before = self._clock(), self._target.runner.waited
        hidden = self._target.runner.extend(chunk, kv, only_last=only_last)
        cuda.wait(self._target.precision.device)
        waited = self._target.runner.waited.since(before)
        self.learn(len(chunk), self._clock() - started, waited.transfer_s)
        return hidden

    def learn(self, num_rows: int, seconds: float, transfer_s: float) -> None:
        """Adapt the chunk size; a chunk of several answers' rows teaches nothing.

        Args:
            num_rows: Rows of a chunk.
            seconds: Duration of its pass.
            transfer_s: Part of it spent waiting for offloaded layers.
        """
        if num_rows > self.rows:
            return
        if (
            self._target.plan.placement is not None
        ):  # a chunk takes at least the transfer of the layers
            if num_rows == self.rows and transfer_s >= seconds * _FREE_ABOVE:
                self.rows = min(self._max_rows, self.rows * 2)
            return
        fitting = int(num_rows * _TARGET_S / max(seconds, _CLOCK_S)) // ROUND_ROWS * ROUND_ROWS
        if seconds > LIMIT_S:
            self.rows = max(_MIN_ROWS, self.rows // 2, fitting)
        elif num_rows == self.rows and fitting >= self.rows * _MIN_GROWTH:
            self.rows = min(self._max_rows, self.rows * 2, fitting)
