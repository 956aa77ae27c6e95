"""The sandboxed process that reads documents: receives paths, sends chunks or errors."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from medusa_core.chats.attachments.worker import MEMORY_BYTES, answer
from medusa_core.documents.chunks import divide
from medusa_core.documents.sections import sections_of
from medusa_core.errors import AttachmentError
from medusa_core.i18n import text_to_json
from medusa_core.system.sandbox.channel import limit_process, open_channel


def main() -> int:
    """Read files until the parent closes the pipe."""
    with open_channel() as channel:
        limit_process(MEMORY_BYTES, 0)
        channel.send(ready=True)
        while True:
            request = channel.receive()
            channel.send(**answer(partial(read, Path(request["path"]), request["digest"])))


def read(path: Path, digest: str) -> dict[str, Any]:
    """Return the hash and the chunks of a file.

    Args:
        path: Absolute path without links.
        digest: Hash of the file when it was read last; its chunks aren't sent again.

    Raises:
        AttachmentError: It has no text, or a link leads elsewhere.
        OSError: It can't be read.
    """
    with path.open("rb") as file:
        _check_place(path, file)
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found == digest:
            return {"digest": found}
        file.seek(0)
        chunks = list(divide(sections_of(path.name, file)))
    if not chunks:
        raise AttachmentError("This file holds no text.")
    return {
        "digest": found,
        "chunks": [(text_to_json(place), heading, text) for place, heading, text in chunks],
    }


def _check_place(path: Path, file: BinaryIO) -> None:
    """Check that an open file is at its path, and that no part of the path is a link.

    It may have been replaced since the folder was searched.
    """
    is_there = os.path.samestat(os.fstat(file.fileno()), path.lstat())
    if not is_there or os.path.realpath(path) != str(path):
        raise AttachmentError("Links aren't followed.")
