"""How much of a file is read."""

from __future__ import annotations

from medusa_core.errors import AttachmentError

MOST_FILE_BYTES = 100 << 20
MOST_CHARS = 2_000_000  # four times what the longest contexts hold
MOST_XML_BYTES = 64 << 20


def check_length(num_chars: int) -> None:
    """Check a length of text.

    Raises:
        AttachmentError: No model could read so much.
    """
    if num_chars > MOST_CHARS:
        raise AttachmentError(
            f"This file holds more than {MOST_CHARS:,} characters; no model here reads so much.",
            "Attach the part that matters.",
        )
