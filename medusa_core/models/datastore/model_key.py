"""Names a model by what it is, wherever its files lie."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

_SAMPLES, _SAMPLE_BYTES = 8, 8192


def model_key(files: Iterable[Path], pieces: Mapping[int, bytes]) -> str:
    """A name that a model has in every folder, and that no model of other weights or tokens has.

    Weights are sampled: reading all of them would take as long as loading them.

    Args:
        files: Its weights.
        pieces: The bytes of its tokens.

    Raises:
        OSError: A file can't be read.
    """
    numbers = struct.Struct("<II").pack
    sorted_pieces = sorted(pieces.items())
    digest = hashlib.sha256(
        b"".join([numbers(token_id, len(piece)) + piece for token_id, piece in sorted_pieces])
    )
    for file in sorted(files, key=lambda path: path.name):
        size = file.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with file.open("rb") as opened:
            for sample in range(_SAMPLES):
                opened.seek((2 * sample + 1) * size // (2 * _SAMPLES))
                digest.update(opened.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:32]
