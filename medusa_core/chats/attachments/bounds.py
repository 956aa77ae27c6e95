"""Size limits of attachments."""

from __future__ import annotations

from medusa_core.errors import AttachmentError

MOST_FILE_BYTES = 100 << 20
MOST_CHARS = 2_000_000  # four times the longest contexts
MOST_XML_BYTES = 64 << 20


def check_length(num_chars: int) -> None:
    """Check the length of a text.

    Raises:
        AttachmentError: The text exceeds the context of any model.
    """
    if num_chars > MOST_CHARS:
        raise AttachmentError(
            f"This file holds more than {MOST_CHARS:,} characters; no model here reads so much.",
            "Attach the part that matters.",
        )
