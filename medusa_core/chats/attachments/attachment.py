"""An attached file, and its text in the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from medusa_core.chats.attachments.kinds import language_of

_FENCES = re.compile("`{3,}")


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attached file.

    Attributes:
        name: Name of the file, without its folder.
        media_type: Media type, such as `text/plain`.
        text: Text of the file.
        num_bytes: Size of the file.
    """

    name: str
    media_type: str
    text: str
    num_bytes: int


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """Return a prompt with its files, each in a fenced block under its name."""
    blocks = [_block(attachment) for attachment in attachments]
    return "\n\n".join([*blocks, text] if text else blocks)


def _block(attachment: Attachment) -> str:
    """Return a file as a fenced code block under its name."""
    name = " ".join(attachment.name.split())
    return f"File: {name}\n{fenced(attachment.text, language_of(attachment.name))}"


def fenced(text: str, language: str = "") -> str:
    """Return a text as a fenced code block, which it can't end."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)  # longer than any in the text
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
