"""Looking for models on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from medusa_core.hub.boundary import is_repo, printable_value
from medusa_core.hub.hub_api import query_hub
from medusa_core.hub.refusals import unreadable
from medusa_core.hub.settings import HubSettings

Sort = Literal["downloads", "likes", "last_modified"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A repository that a search found.

    Attributes:
        repo: `owner/name`.
        downloads: How often it was downloaded lately.
        likes: How many like it.
        is_gated: Its owner asks who you are.
        changed: When it was changed last, as `2026-01-31`; empty if unknown.
    """

    repo: str
    downloads: int
    likes: int
    is_gated: bool
    changed: str


def search(
    settings: HubSettings, words: str, sort: Sort = "downloads", limit: int = 40
) -> tuple[SearchResult, ...]:
    """Look for text generation models in safetensors; blocks.

    Args:
        settings: How to deal with the Hub.
        words: Part of their names.
        sort: What comes first.
        limit: Most to find.

    Raises:
        HubError: The Hub can't be reached, or its answer can't be read.
    """
    query = {
        **({"search": words} if words else {}),
        "sort": "lastModified" if sort == "last_modified" else sort,
        "limit": limit,
    }
    answer = query_hub(settings, "models", words, query)
    if not isinstance(answer, list):
        raise unreadable(words, "it is no list")
    return tuple(_found(words, raw) for raw in answer[:limit])


def _found(words: str, raw: Any) -> SearchResult:
    if not isinstance(raw, dict) or not is_repo(raw.get("id")):
        raise unreadable(words, f"it names {printable_value(raw)}")
    changed = _DATE.match(str(raw.get("lastModified")))
    return SearchResult(
        repo=raw["id"],
        downloads=_count(raw.get("downloads")),
        likes=_count(raw.get("likes")),
        is_gated=bool(raw.get("gated")),
        changed="" if changed is None else changed[0],
    )


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
