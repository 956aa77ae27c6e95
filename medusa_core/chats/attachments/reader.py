"""Read untrusted files in a sandboxed process, with limits of time and memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.attachments.bounds import MOST_CHARS
from medusa_core.chats.attachments.worker import MEMORY_BYTES
from medusa_core.errors import AttachmentError
from medusa_core.i18n import text_from_json, tr
from medusa_core.system.sandbox.worker import WorkerErrors, WorkerProcess

MOST_S = 10.0
_MODULE = "medusa_core.chats.attachments.worker"
_MOST_LINE_CHARS = 12 * MOST_CHARS + 1000  # JSON escapes a character outside the BMP as 12
_HINT = tr("Copy the text that you need and paste it instead.")
ERRORS = WorkerErrors(
    start=lambda error: AttachmentError(
        tr("No process can be started to read it: {0}.", error),
        "Close other programs and try again.",
        is_transient=True,
    ),
    memory=lambda: AttachmentError("This file takes too much memory to read.", _HINT),
    time=lambda _: AttachmentError("This file takes too long to read.", _HINT),
    end=lambda: AttachmentError("This file broke the process that reads it.", _HINT),
)


def read_attachment(path: Path, most_s: float = MOST_S) -> Attachment:
    """Read a file, which may take seconds.

    Args:
        path: Text, code, PDF or DOCX.
        most_s: Timeout in seconds.

    Raises:
        AttachmentError: The file has no text or too much, or takes too long.
    """
    if not path.is_file():
        raise AttachmentError(
            tr("{0} isn't a file.", path.name or path), "Attach files one by one."
        )
    with closing(WorkerProcess(_MODULE, ERRORS, MEMORY_BYTES, _MOST_LINE_CHARS)) as worker:
        worker.start()
        answer = worker.request({"path": str(path)}, most_s)
    check_answer(answer)
    return Attachment(
        path.name, str(answer["media_type"]), str(answer["text"]), int(str(answer["num_bytes"]))
    )


def check_answer(answer: Mapping[str, Any]) -> None:
    """Raise the error that a process has answered with.

    Raises:
        AttachmentError: The file couldn't be read. Its data may have `is_skipped`, for a file of
            another kind, and `is_transient`.
    """
    if "error" in answer:
        message, hint = text_from_json(answer["error"]), text_from_json(answer["hint"])
        raise AttachmentError(message, hint, **answer["data"])
