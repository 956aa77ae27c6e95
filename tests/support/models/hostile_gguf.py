"""GGUF files with wrong bytes, and what their readers must do."""

import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import torch

from medusa_core.errors import MedusaError
from medusa_core.models.checkpoints.header import check_header
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import read_gguf

EXTREMES = (0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
_MOST_BYTES = 16 << 20
_MOST_S = 2.0


def load(path: Path) -> None:
    """Everything that a load reads of a file."""
    files = ModelFiles.open(path)
    config, _ = files.config, files.tokenizer
    checkpoint = files.checkpoint()
    check_header(checkpoint, config)
    for name in sorted(checkpoint.names):
        checkpoint.floats(name, torch.float32)


def mutated(data: bytes, dice: random.Random, header: int) -> bytes:
    """Return the file with one random fault: bytes, numbers, a truncation, an insertion or a
    deletion.
    """
    at = dice.randrange(4, header)
    kind = dice.randrange(6)
    if kind == 0:
        return data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + struct.pack("<Q", dice.choice(EXTREMES)) + data[at + 8 :]
    if kind == 2:
        return data[:at] + struct.pack("<I", dice.choice(EXTREMES) % 2**32) + data[at + 4 :]
    if kind == 3:
        return data[: dice.randrange(len(data))]
    if kind == 4:
        return data[:at] + dice.randbytes(dice.randrange(1, 64)) + data[at:]
    return data[:at] + data[at + dice.randrange(1, 64) :]


def check_mutations(
    whole: bytes, folder: Path, seeds: range, load: Callable[[Path], None] = load
) -> int:
    """Return how many mutations were refused; the others load, as their fault is harmless."""
    path, refused = folder / "x.gguf", 0
    path.write_bytes(whole)
    header = min(tensor.start for tensor in read_gguf(path, is_model=False).tensors.values())
    for seed in seeds:
        path.write_bytes(mutated(whole, random.Random(seed), header))
        tracemalloc.start()
        started = time.process_time()
        try:
            load(path)
        except MedusaError:
            refused += 1
        finally:
            took = time.process_time() - started
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak <= _MOST_BYTES, seed
        assert took <= _MOST_S, seed
    return refused


def patched(whole: bytes, find: bytes, put: bytes, behind: int = 0) -> bytes:
    """Return the file with some bytes after a text replaced."""
    at = whole.index(find) + len(find) + behind
    return whole[:at] + put + whole[at + len(put) :]
