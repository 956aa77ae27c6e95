"""Activations between two layers, of the batches of a pass that aren't being computed.

They are on the device, in main memory or on a disk: a pass that reads the prompts of a whole block
of batches has more of them than fit on a device.

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
from medusa_core.i18n import tr
from medusa_core.messages import Tier
from medusa_core.system.files.own_folder import make_own_folder


class ActivationStore:
    """Keeps the activations of each batch of a pass.

    Attributes:
        moved_bytes: Bytes that were moved to or from the tier so far.
        moved_s: Seconds of moving.
    """

    def __init__(self, tier: Tier, folder: Path | None = None) -> None:
        """Create an empty store.

        Args:
            tier: Tier of the activations.
            folder: Folder on a disk; needed for that tier only.
        """
        self._tier = tier
        self._folder = folder
        self._file: BinaryIO | None = None
        self._held: list[Tensor] = []
        self._starts: list[int] = []
        self.moved_bytes = 0
        self.moved_s = 0.0

    def begin(self, counts: Sequence[int], width: int, dtype: torch.dtype) -> None:
        """Begin a pass.

        Args:
            counts: Number of rows of each batch.
            width: Elements of a row.
            dtype: Their dtype.
        """
        is_single = len(counts) == 1  # a single batch goes straight from layer to layer
        self._shapes = [(count, width) for count in counts]
        self._dtype = dtype
        self._on_device = is_single or self._tier is Tier.DEVICE
        self._held = [torch.empty(0)] * len(counts)
        sizes = [count * width * dtype.itemsize for count in counts]
        self._starts = [sum(sizes[:index]) for index in range(len(sizes))]

    def put(self, batch: int, activations: Tensor) -> None:
        """Replace the activations of a batch. [n, width]

        Raises:
            TierError: The disk is full or fails.
        """
        if self._on_device:
            self._held[batch] = activations
            return
        started = time.perf_counter()
        on_host = activations.detach().cpu().contiguous()
        if self._tier is Tier.MEMORY:
            self._held[batch] = on_host
        else:
            self._write(self._starts[batch], on_host.view(torch.uint8).numpy().data)
        self._count(on_host, started)

    def get(self, batch: int, device: torch.device) -> Tensor:
        """Return the activations of a batch. [n, width]

        Raises:
            TierError: The disk fails.
        """
        if self._on_device:
            return self._held[batch]
        started = time.perf_counter()
        on_host = self._held[batch]
        if self._tier is Tier.DISK:
            on_host = torch.empty(self._shapes[batch], dtype=self._dtype)
            self._read(self._starts[batch], on_host.view(torch.uint8).numpy().data)
        self._count(on_host, started)
        return on_host.to(device)

    def end(self) -> None:
        """Drop all activations at the end of a pass."""
        self._held = []

    def _count(self, activations: Tensor, started: float) -> None:
        """Count moved bytes and their seconds."""
        self.moved_bytes += activations.nbytes
        self.moved_s += time.perf_counter() - started

    def _open(self) -> BinaryIO:
        """Open the file at its first use; it has no name, so a killed program leaves nothing."""
        if self._file is None:
            assert self._folder is not None  # of that tier
            make_own_folder(self._folder)
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        return self._file

    def _write(self, start: int, content: memoryview) -> None:
        """Write bytes to the file; raises `TierError` if the disk is full or fails."""
        content = content.cast("B")
        try:
            file = self._open()
            file.seek(start)
            while content:
                content = content[file.write(content) :]
        except OSError as error:
            raise TierError(
                tr(
                    "Activations can't be written to {0}: {1}.",
                    self._folder,
                    error.strerror or error,
                ),
                "Make room there or name another folder; the same command goes on.",
            ) from error

    def _read(self, start: int, into: memoryview) -> None:
        """Read bytes from the file; raises `TierError` if the disk fails."""
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
                tr(
                    "Activations can't be read from {0}: {1}.",
                    self._folder,
                    error.strerror or error,
                ),
                "Check the disk; the same command goes on.",
            ) from error
