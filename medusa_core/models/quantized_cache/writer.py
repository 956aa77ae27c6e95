"""Write a quantized model to the cache while it is loaded: a safetensors file, tensor by tensor.

The metadata contain a checksum of every tensor.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from medusa_core.models.checkpoints.checkpoint import DTYPES, checksum
from medusa_core.system.files.atomic_file import AtomicFile
from medusa_core.system.files.safetensors_header import LENGTH_BYTES

log = logging.getLogger(__name__)

_HEADER_BYTES = 1 << 20  # reserved: the header comes first, but is known last
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class QuantizedWriter:
    """Writes a safetensors file tensor by tensor; as a context manager it commits on success."""

    def __init__(self, path: Path) -> None:
        self._target = AtomicFile(path)
        self._file: IO[bytes] = self._target.part.open("wb")
        self._file.seek(LENGTH_BYTES + _HEADER_BYTES)
        self._header: dict[str, object] = {}
        self._checksums: dict[str, str] = {}
        self._end = 0
        self._failed = False

    def keep(self, name: str, tensor: Tensor) -> None:
        """Append a tensor; after a failure nothing more is written."""
        if self._failed:
            return
        flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        self._header[name] = {
            "dtype": _DTYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [self._end, self._end + flat.numel()],
        }
        self._checksums[name] = checksum(flat)
        try:
            self._file.write(flat.numpy().data)
        except OSError:
            log.warning("can't cache the quantized model", exc_info=True)
            self._failed = True
        self._end += flat.numel()

    def __enter__(self) -> QuantizedWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and not self._failed:
                self._commit()
        except OSError:
            log.warning("can't cache the quantized model", exc_info=True)
        finally:
            self._file.close()
            self._target.discard()

    def _commit(self) -> None:
        """Write the header into its reserved space, and give the file its final name."""
        header = json.dumps({"__metadata__": self._checksums} | self._header).encode()
        if len(header) > _HEADER_BYTES:
            log.warning("the quantized model has too many tensors for the cache")
            return
        self._file.seek(0)
        self._file.write(_HEADER_BYTES.to_bytes(LENGTH_BYTES, "little"))
        self._file.write(header.ljust(_HEADER_BYTES))
        self._file.close()
        self._target.commit()
