"""Content of messages: an ordered tuple of text, images and passages of documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True)
class PassagePart:
    """A passage of a document that was retrieved for a prompt.

    Attributes:
        number: Number by which answers cite it, from 1; unique in a path of the conversation.
        document: Name of the document, for people.
        place: Place in the document, such as a page or headings; may be empty.
        text: Text of the passage.
        score: Score of the retrieval; 0 for a passage of a whole text.
        key: Id of collection, document and chunk.
        path: Path of the document's file; empty if unknown.
        bm25_rank: Rank by BM25, from 1; None if it was not found by it.
        vector_rank: Rank by vectors, from 1; None if it was not found by them.
    """

    number: int
    document: str
    place: str
    text: str = field(repr=False)
    score: float = 0.0
    key: str = ""
    path: str = ""
    bm25_rank: int | None = None
    vector_rank: int | None = None


Content = tuple[TextPart | ImagePart | PassagePart, ...]


def as_content(text: str) -> Content:
    """Return the content of a message of text alone; empty for an empty text."""
    return (TextPart(text),) if text else ()


def content_text(content: Content) -> str:
    """Return the joined text parts."""
    return "".join(part.text for part in content if isinstance(part, TextPart))


def content_images(content: Content) -> tuple[ImagePart, ...]:
    """Return the image parts."""
    return tuple(part for part in content if isinstance(part, ImagePart))


def content_passages(content: Content) -> tuple[PassagePart, ...]:
    """Return the passages."""
    return tuple(part for part in content if isinstance(part, PassagePart))


def with_text(content: Content, text: str) -> Content:
    """Return content with another text, after passages and images."""
    return (*content_passages(content), *content_images(content), *as_content(text))


def with_passages(content: Content, passages: Iterable[PassagePart]) -> Content:
    """Return content with other passages, which come first."""
    return (*passages, *(part for part in content if not isinstance(part, PassagePart)))
