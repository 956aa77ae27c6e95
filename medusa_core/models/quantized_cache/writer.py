"""Writes a kept model while it is loaded: a safetensors file, tensor by tensor.

Its metadata hold a checksum of every tensor.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import TracebackType
from typing import IO

import torch
from torch import Tensor

from medusa_core.models.checkpoints.checksum import checksum
from medusa_core.system.files.atomic_file import AtomicFile
from medusa_core.system.files.safetensors_header import LENGTH_BYTES

log = logging.getLogger(__name__)

_HEADER_ROOM = 1 << 20  # the header comes first and is known last
_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int8: "I8",
    torch.uint8: "U8",
}


class QuantizedWriter:
    """Writes a safetensors file tensor by tensor; as a context, it places it when all went well."""

    def __init__(self, path: Path) -> None:
        self._target = AtomicFile(path)
        self._file: IO[bytes] = self._target.part.open("wb")
        self._file.seek(LENGTH_BYTES + _HEADER_ROOM)
        self._header: dict[str, object] = {}
        self._checksums: dict[str, str] = {}
        self._end = 0
        self._failed = False

    def keep(self, name: str, tensor: Tensor) -> None:
        """Append a tensor; once that fails, nothing is kept."""
        if self._failed:
            return
        flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        self._header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [self._end, self._end + flat.numel()],
        }
        self._checksums[name] = checksum(flat)
        try:
            self._file.write(flat.numpy().data)
        except OSError:
            log.warning("the quantized model isn't kept", exc_info=True)
            self._failed = True
        self._end += flat.numel()

    def __enter__(self) -> QuantizedWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self._failed:
                self._place()
        except OSError:
            log.warning("the quantized model isn't kept", exc_info=True)
        finally:
            self._file.close()
            self._target.discard()

    def _place(self) -> None:
        header = json.dumps({"__metadata__": self._checksums} | self._header).encode()
        if len(header) > _HEADER_ROOM:
            log.warning("the quantized model has too many tensors to be kept")
            return
        self._file.seek(0)
        self._file.write(_HEADER_ROOM.to_bytes(LENGTH_BYTES, "little"))
        self._file.write(header.ljust(_HEADER_ROOM))
        self._file.close()
        self._target.commit()
