"""Activations between two layers, of the batches of a pass that aren't computed now.

They wait on the device, in the computer's memory, or on a disk: a pass that reads the prompts of a
whole block has more of them than a device has room for.

Source: Sheng et al., "FlexGen" (2023), section 4.1.
"""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from medusa_core.errors import TierError
from medusa_core.messages import Tier
from medusa_core.system.files.own_folder import make_own_folder


class BatchStates:
    """Takes and gives the states of a pass' batches, one pass after the other.

    Attributes:
        moved_bytes: What went below or came back so far.
        moved_s: Seconds that this took.
    """

    def __init__(self, tier: Tier, folder: Path | None = None) -> None:
        """Nothing is taken yet.

        Args:
            tier: Where they lie.
            folder: On a disk; needed for that tier.
        """
        self._tier = tier
        self._folder = folder
        self._file: BinaryIO | None = None
        self._held: list[Tensor] = []
        self._starts: list[int] = []
        self.moved_bytes = 0
        self.moved_s = 0.0

    def begin(self, counts: Sequence[int], width: int, dtype: torch.dtype) -> None:
        """A pass begins.

        Args:
            counts: Rows of each batch.
            width: Numbers of a row.
            dtype: Of these.
        """
        is_alone = len(counts) == 1  # it goes from layer to layer as it is
        self._shapes = [(count, width) for count in counts]
        self._dtype = dtype
        self._is_here = is_alone or self._tier is Tier.DEVICE
        self._held = [torch.empty(0)] * len(counts)
        sizes = [count * width * dtype.itemsize for count in counts]
        self._starts = [sum(sizes[:place]) for place in range(len(sizes))]

    def put(self, batch: int, states: Tensor) -> None:
        """Take the states of a batch, until the next ones. [n, width]

        Raises:
            TierError: The disk is full or fails.
        """
        if self._is_here:
            self._held[batch] = states
            return
        started = time.perf_counter()
        here = states.detach().cpu().contiguous()
        if self._tier is Tier.MEMORY:
            self._held[batch] = here
        else:
            self._write(self._starts[batch], here.view(torch.uint8).numpy().data)
        self._moved(here, started)

    def take(self, batch: int, device: torch.device) -> Tensor:
        """The states of a batch. [n, width]

        Raises:
            TierError: The disk fails.
        """
        if self._is_here:
            return self._held[batch]
        started = time.perf_counter()
        here = self._held[batch]
        if self._tier is Tier.DISK:
            here = torch.empty(self._shapes[batch], dtype=self._dtype)
            self._read(self._starts[batch], here.view(torch.uint8).numpy().data)
        self._moved(here, started)
        return here.to(device)

    def end(self) -> None:
        """The pass is over."""
        self._held = []

    def _moved(self, states: Tensor, started: float) -> None:
        self.moved_bytes += states.nbytes
        self.moved_s += time.perf_counter() - started

    def _open(self) -> BinaryIO:
        """The file, which nobody else sees."""
        if self._file is None:
            assert self._folder is not None  # of that tier
            make_own_folder(self._folder)
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        return self._file

    def _write(self, start: int, content: memoryview) -> None:
        content = content.cast("B")
        try:
            file = self._open()
            file.seek(start)
            while content:
                content = content[file.write(content) :]
        except OSError as error:
            raise TierError(
                f"Activations can't be written to {self._folder}: {error.strerror or error}.",
                "Make room there or name another folder; the same command goes on.",
            ) from error

    def _read(self, start: int, into: memoryview) -> None:
        into = into.cast("B")
        try:
            file = self._open()
            file.seek(start)
            while into:
                count = file.readinto(into)  # type: ignore[attr-defined]
                if not count:
                    raise OSError("the file was cut")
                into = into[count:]
        except OSError as error:
            raise TierError(
                f"Activations can't be read from {self._folder}: {error.strerror or error}.",
                "Check the disk; the same command goes on.",
            ) from error
