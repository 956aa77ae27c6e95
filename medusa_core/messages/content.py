"""Content of messages: an ordered tuple of text and images."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image of a message.

    Attributes:
        media_type: Media type, such as `image/png`.
        data: The encoded image file.
    """

    media_type: str
    data: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the data, by which the history stores it once."""
        return hashlib.sha256(self.data).hexdigest()


Content = tuple[TextPart | ImagePart, ...]


def as_content(text: str) -> Content:
    """Return the content of a message of text alone; empty for an empty text."""
    return (TextPart(text),) if text else ()


def content_text(content: Content) -> str:
    """Return the joined text parts."""
    return "".join(part.text for part in content if isinstance(part, TextPart))


def content_images(content: Content) -> tuple[ImagePart, ...]:
    """Return the image parts."""
    return tuple(part for part in content if isinstance(part, ImagePart))


def with_text(content: Content, text: str) -> Content:
    """Return content with another text: before it are the images, if there are any."""
    return (*content_images(content), *as_content(text))
