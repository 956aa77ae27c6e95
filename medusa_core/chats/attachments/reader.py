"""Read untrusted files in a sandboxed process, with limits of time and memory."""

from __future__ import annotations

import logging
from pathlib import Path

from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.attachments.bounds import MOST_CHARS
from medusa_core.chats.attachments.worker import MEMORY_BYTES
from medusa_core.errors import AttachmentError
from medusa_core.system.sandbox.process import Sandbox

log = logging.getLogger(__name__)

_START_S = 30.0  # on a busy machine, from a cold disk
MOST_S = 10.0
_MOST_RESIDENT_BYTES = MEMORY_BYTES + (64 << 20)
_MOST_LINE_CHARS = 12 * MOST_CHARS + 1000  # JSON escapes a character outside the BMP as 12
_HINT = "Copy the text that you need and paste it instead."


def read_attachment(path: Path, most_s: float = MOST_S) -> Attachment:
    """Read a file, which may take seconds.

    Args:
        path: Text, code, PDF or DOCX.
        most_s: Timeout in seconds.

    Raises:
        AttachmentError: The file has no text or too much, or takes too long.
    """
    if not path.is_file():
        raise AttachmentError(f"{path.name or path} isn't a file.", "Attach files one by one.")
    try:
        sandbox = Sandbox("medusa_core.chats.attachments.worker", _MOST_LINE_CHARS)
    except OSError as error:
        raise AttachmentError(
            f"No process can be started to read it: {error}.", "Close other programs and try again."
        ) from error
    try:
        answer = _request(sandbox, path, most_s)
    finally:
        sandbox.close()
    if "error" in answer:
        raise AttachmentError(str(answer["error"]), str(answer["hint"]))
    return Attachment(
        path.name, str(answer["media_type"]), str(answer["text"]), int(str(answer["num_bytes"]))
    )


def _request(sandbox: Sandbox, path: Path, most_s: float) -> dict[str, object]:
    """Send the path to the sandboxed process and wait for the text."""

    def check_memory() -> None:
        """Raise if the process uses too much memory."""
        if sandbox.resident_bytes() > _MOST_RESIDENT_BYTES:
            raise AttachmentError("This file takes too much memory to read.", _HINT)

    try:
        if sandbox.receive(_START_S) is not None:
            sandbox.send({"path": str(path)})
            answer = sandbox.receive(most_s, check_memory)
            if answer is not None:
                return answer
    except TimeoutError:
        raise AttachmentError("This file takes too long to read.", _HINT) from None
    log.debug("the reader said: %s", sandbox.last_words())
    raise AttachmentError("This file broke the process that reads it.", _HINT)
