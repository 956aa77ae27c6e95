"""A file whose text belongs to a prompt, and what the model reads of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from medusa_core.chats.attachments.kinds import language_of

_FENCES = re.compile("`{3,}")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file whose text belongs to a prompt.

    Attributes:
        name: Its name, without a folder.
        media_type: Such as `text/plain`.
        text: What the model reads of it.
        num_bytes: Size of the file.
    """

    name: str
    media_type: str
    text: str
    num_bytes: int


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """What the model reads of a prompt: each file in a block under its name, then the words."""
    blocks = [_block(one) for one in attachments]
    return "\n\n".join([*blocks, text] if text else blocks)


def _block(attachment: Attachment) -> str:
    longest = max((len(found) for found in _FENCES.findall(attachment.text)), default=2)
    fence = "`" * (longest + 1)  # nothing in the file may end its block
    name = " ".join(attachment.name.split())
    language = language_of(attachment.name)
    return f"File: {name}\n{fence}{language}\n{attachment.text.rstrip()}\n{fence}"
