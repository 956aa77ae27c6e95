"""Records of collections: documents, passages, search results and progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embed(Protocol):
    """An embedding model, as documents use it.

    Attributes:
        name: Name that identifies the model; vectors of another name are recomputed.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, texts: Sequence[str], is_query: bool, /) -> NDArray[np.float32]:
        """Embed texts; those beyond the model's context are truncated.

        Returns:
            Vectors of length 1. [n, dimensions]
        """


class DocumentState(str, Enum):
    """State of a document in the index."""

    INDEXED = "indexed"
    CHANGED = "changed"  # or removed since; the next update reads it again
    SKIPPED = "skipped"  # such as a binary file
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection.

    Attributes:
        id: Id, which never changes.
        name: Display name.
        paths: Absolute paths of its files and folders.
        num_documents: Indexed documents.
        num_chunks: Chunks of their text.
        num_chars: Characters of their text.
        embedding_model: Name of the model of its vectors; empty without vectors.
        num_embedded: Chunks with a vector.
    """

    id: str
    name: str
    paths: tuple[Path, ...]
    num_documents: int
    num_chunks: int
    num_chars: int
    embedding_model: str
    num_embedded: int


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A file or skipped folder of a collection.

    Attributes:
        path: Its absolute path.
        state: Whether its text is indexed.
        reason: Why it was skipped or failed; else empty.
        num_chunks: Chunks of its text.
        num_chars: Characters of its text.
        num_bytes: Size of the file when it was read.
    """

    path: Path
    state: DocumentState
    reason: str
    num_chunks: int
    num_chars: int
    num_bytes: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a document.

    Attributes:
        document: Name of the file.
        path: Its absolute path.
        place: Location in the document, such as `p. 3`, `Heading › Sub` or `lines 10–40`.
        text: Text of the chunk.
        score: Reciprocal rank score; 0 if nothing was searched.
        bm25_rank: Rank by words, from 1; None if not found by them.
        vector_rank: Rank by vectors, from 1; None if not found by them.
        key: Collection id, document and chunk number, separated by slashes; a document that is read
            again gets new ones.
    """

    document: str
    path: str
    place: str
    text: str
    score: float = 0.0
    bm25_rank: int | None = None
    vector_rank: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Progress of an update.

    Attributes:
        num_done: Files read, or chunks embedded.
        num_total: All of them.
        name: File that was read last; empty while chunks are embedded.
        is_embedding: Whether `num_done` counts chunks that are embedded.
    """

    num_done: int
    num_total: int
    name: str
    is_embedding: bool
