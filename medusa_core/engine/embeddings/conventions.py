"""Conventions of published embedding models that their files don't contain.

Sources: the model cards of Qwen3-Embedding, E5, BGE, GTE, Nomic Embed, Arctic Embed and
mxbai-embed.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from medusa_core.messages import Purpose


class Pooling(str, Enum):
    """How the hidden states of a text become one vector."""

    LAST = "last"
    MEAN = "mean"
    CLS = "cls"


class Conventions(NamedTuple):
    """How the texts of a family are prefixed, pooled and truncated.

    Attributes:
        query: Prefix of a query.
        document: Prefix of a document.
        min_dimensions: Fewest dimensions of a truncated vector (Matryoshka); 0 if the model wasn't
            trained for it.
        pooling: Pooling, where files may lack it; None if unknown.
    """

    query: str = ""
    document: str = ""
    min_dimensions: int = 0
    pooling: Pooling | None = None

    def prefix(self, purpose: Purpose) -> str:
        """Return the prefix of texts of a purpose."""
        if purpose is Purpose.QUERY:
            return self.query
        return self.document if purpose is Purpose.DOCUMENT else ""


_SEARCH = "Given a web search query, retrieve relevant passages that answer the query"
_PASSAGES = "Represent this sentence for searching relevant passages: "
# By a pattern in the model's name, in lower case with hyphens between words.
_FAMILIES = (
    (
        "qwen3-embedding",
        Conventions(f"Instruct: {_SEARCH}\nQuery:", "", 32, Pooling.LAST),
    ),
    (
        "e5-(mistral|.*-instruct)",
        Conventions(f"Instruct: {_SEARCH}\nQuery: ", ""),
    ),
    (r"\be5-", Conventions("query: ", "passage: ")),
    (r"\bbge-.*-en\b", Conventions(_PASSAGES, "")),
    (r"\bbge-.*-zh\b", Conventions("为这个句子生成表示以用于检索相关文章：", "")),
    (r"mxbai-embed", Conventions(_PASSAGES, "", 64)),
    (r"arctic-embed-.*-v2", Conventions("query: ", "", 256)),
    (r"arctic-embed", Conventions(_PASSAGES, "")),
    (r"nomic-embed-text-v1\.5", Conventions("search_query: ", "search_document: ", 64)),
    (r"nomic-embed-text", Conventions("search_query: ", "search_document: ")),
)


def conventions_of(name: str) -> Conventions:
    """Return the conventions of a model by its name; empty ones if it is unknown."""
    folded = re.sub(r"[\s_]+", "-", name.casefold())
    return next((found for pattern, found in _FAMILIES if re.search(pattern, folded)), _UNKNOWN)


_UNKNOWN = Conventions()
