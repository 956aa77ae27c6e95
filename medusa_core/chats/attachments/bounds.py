"""Size limits of attachments."""

from __future__ import annotations

from medusa_core.errors import AttachmentError
from medusa_core.i18n import tr

MOST_FILE_BYTES = 100 << 20
MOST_CHARS = 2_000_000  # four times the longest contexts
MOST_XML_BYTES = 64 << 20


def check_length(num_chars: int, most_chars: int = MOST_CHARS) -> None:
    """Check the length of a text.

    Raises:
        AttachmentError: The text exceeds a limit.
    """
    if num_chars > most_chars:
        raise AttachmentError(
            tr("This file holds more than {0:,} characters.", most_chars),
            "Attach the part that matters.",
        )
