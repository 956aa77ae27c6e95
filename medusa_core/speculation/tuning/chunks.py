"""Prefill chunk sizes: large for speed, small enough that `Cancel` is heard soon.

A card unpacks 4-bit weights once for each chunk, so that larger ones are read in less time. Layers
that lie below the device come once for each: while they are waited for, more rows cost nothing, and
`Cancel` is heard when they have come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.memory.plan import FIRST_CHUNK_ROWS
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.system import cuda

LIMIT_S = 0.3  # in which a Cancel is to be heard
_LEAST_ROWS = 16  # fewer would take a CPU hardly less time
_GROWS_BELOW = 1 / 3  # twice the rows then stay well under the limit
_FREE_ABOVE = 1 / 5  # of a chunk's time is waited: twice the rows then take less for each


class Chunks:
    """Reads texts chunk by chunk, and learns from each how large the next may be.

    Attributes:
        rows: Rows of the next chunk.
    """

    def __init__(self, target: Target, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begin with chunks that are quick on most devices.

        Args:
            target: Reads them.
            clock: Seconds; tests bring their own.
        """
        self._target = target
        self._clock = clock
        self._most = target.chunk_rows
        self.rows = min(FIRST_CHUNK_ROWS, self._most)

    def read(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Read the next chunk of a text, and wait until the device has done so.

        Args:
            token_ids: The text.
            kv: Holds the rows of the text's first tokens; takes those of the chunk.
            only_last: Only the last token's state is wanted.

        Returns:
            States of the chunk's tokens. [n, hidden], or [1, hidden]
        """
        chunk = token_ids[kv.length : kv.length + self.rows]
        started, before = self._clock(), self._target.runner.waited
        hidden = self._target.runner.extend(chunk, kv, only_last=only_last)
        cuda.wait(self._target.precision.device)
        waited = self._target.runner.waited.since(before)
        self.learn(len(chunk), self._clock() - started, waited.transfer_s)
        return hidden

    def learn(self, num_rows: int, seconds: float, transfer_s: float) -> None:
        """Learn how large a chunk may be; nothing from one that was meant to be larger.

        Args:
            num_rows: Rows of a chunk.
            seconds: What the pass that read it took.
            transfer_s: How much of it layers were waited for.
        """
        if num_rows > self.rows:
            return
        if self._target.plan.placement is not None:  # no chunk is quicker than the layers' coming
            if num_rows == self.rows and transfer_s >= seconds * _FREE_ABOVE:
                self.rows = min(self._most, self.rows * 2)
        elif seconds > LIMIT_S:
            self.rows = max(_LEAST_ROWS, self.rows // 2)
        elif num_rows == self.rows and seconds <= LIMIT_S * _GROWS_BELOW:
            self.rows = min(self._most, self.rows * 2)
