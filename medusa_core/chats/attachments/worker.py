"""The sandboxed process that reads an attachment: receives a path, sends text or an error."""

from __future__ import annotations

import faulthandler
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medusa_core.chats.attachments.bounds import (
    MOST_FILE_BYTES,
    check_length,
)
from medusa_core.chats.attachments.decoding import decoded
from medusa_core.chats.attachments.docx import text_of_docx
from medusa_core.chats.attachments.kinds import (
    DOCX,
    PDF,
    suffix_of,
    text_type_of,
)
from medusa_core.chats.attachments.pdf import text_of_pdf
from medusa_core.errors import AttachmentError
from medusa_core.i18n import text_to_json, tr
from medusa_core.system.sandbox.channel import (
    limit_process,
    open_channel,
)

MEMORY_BYTES = 500 << 20
_ORPHAN_S = 30.0  # the parent's timeout is shorter


def main() -> int:
    """Read one file."""
    with open_channel() as channel:
        limit_process(MEMORY_BYTES, 0)
        faulthandler.dump_traceback_later(_ORPHAN_S, exit=True)
        channel.send(ready=True)
        path = Path(channel.receive()["path"])
        channel.send(**answer(lambda: read(path)))
    return 0


def answer(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call a function that reads a file; its error becomes the answer, see `check_answer`."""
    try:
        return read()
    except AttachmentError as error:
        refusal = error
    except OSError as error:
        reason = tr("This file can't be read: {0}.", error.strerror or str(error))
        refusal = AttachmentError(reason, is_transient=True)
    except (MemoryError, RecursionError):
        refusal = AttachmentError("This file takes too much memory to read.")
    except Exception as error:  # noqa: BLE001 - parsers of untrusted files raise anything
        refusal = AttachmentError(
            tr("This file is damaged: {0}.", type(error).__name__),
            "Open it in the program that made it, and save it anew.",
        )
    message, hint = text_to_json(refusal.message), text_to_json(refusal.hint)
    return {"error": message, "hint": hint, "data": refusal.data}


def read(path: Path) -> dict[str, Any]:
    """Return text, media type and size of a file.

    Raises:
        AttachmentError: The file has no text, or too much.
        OSError: The file can't be read.
    """
    num_bytes = path.stat().st_size
    if num_bytes > MOST_FILE_BYTES:
        raise AttachmentError(
            tr("This file is larger than {0} MB.", MOST_FILE_BYTES >> 20),
            "Attach the part that matters.",
        )
    with path.open("rb") as file:
        begin = file.read(8)
    if begin.startswith(b"%PDF") or suffix_of(path.name) == "pdf":
        text, media_type = text_of_pdf(path), PDF
    elif begin.startswith(b"PK") and suffix_of(path.name) == "docx":
        text, media_type = text_of_docx(path), DOCX
    else:
        text, media_type = decoded(path.read_bytes()), text_type_of(path.name)
    # A PDF's character map may have lone surrogates.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    check_length(len(text))
    if not text.strip():
        raise AttachmentError("This file holds no text.")
    return {"text": text, "media_type": media_type, "num_bytes": num_bytes}
