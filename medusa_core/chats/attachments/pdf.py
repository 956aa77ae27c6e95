"""Extract the text of PDF files, with pypdf."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import BinaryIO

from medusa_core.chats.attachments.bounds import MOST_CHARS, check_length
from medusa_core.errors import AttachmentError


def text_of_pdf(path: Path) -> str:
    """Extract the text of a file.

    Raises:
        AttachmentError: The file is protected or damaged, or has no text.
    """
    return "\n\n".join(page for page in pages_of_pdf(path) if page)


def pages_of_pdf(file: Path | BinaryIO, most_chars: int = MOST_CHARS) -> list[str]:
    """Extract the text of each page.

    Args:
        file: The file, or its path.
        most_chars: Most characters.

    Raises:
        AttachmentError: The file is protected or damaged, or has no text or too much.
    """
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import DependencyError, LimitReachedError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(file)
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise _protected()
        pages: list[str] = []
        num_chars = 0
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            num_chars += len(pages[-1])
            check_length(num_chars, most_chars)
    except DependencyError as error:  # the cipher needs a library that isn't installed
        raise _protected() from error
    except LimitReachedError as error:
        raise AttachmentError(
            "This PDF unpacks to far more than a page holds.",
            "The file may be malicious. Copy the text that you need out of it.",
        ) from error
    except (PyPdfError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise AttachmentError(
            "This PDF is damaged.", "Open it in a reader and save or print it to a new PDF."
        ) from error
    if not num_chars:
        raise AttachmentError(
            "This PDF holds no text; it may be scanned.",
            "Run text recognition (OCR) over it and attach the result.",
        )
    return pages


def _protected() -> AttachmentError:
    """Make the error for a file with a password."""
    return AttachmentError(
        "This PDF is protected by a password.", "Save a copy without a password and attach that."
    )
