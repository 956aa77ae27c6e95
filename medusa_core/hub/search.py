"""Search models on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from medusa_core.hub.boundary import is_repo, printable_value
from medusa_core.hub.hub_api import query_hub
from medusa_core.hub.refusals import unreadable
from medusa_core.hub.settings import HubSettings
from medusa_core.i18n import tr

Sort = Literal["downloads", "likes", "last_modified"]

_MOST_TAGS, _MOST_TAG_CHARS = 200, 200
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A repository of a search result.

    Attributes:
        repo: `owner/name`.
        downloads: Downloads of the last month.
        likes: Number of likes.
        is_gated: Whether its terms must be accepted first.
        changed: Date of the last change, such as `2026-01-31`; empty if unknown.
        tags: Tags of its card, such as `base_model:owner/name`.
    """

    repo: str
    downloads: int
    likes: int
    is_gated: bool
    changed: str
    tags: tuple[str, ...] = ()


def search(
    settings: HubSettings,
    words: str,
    sort: Sort = "downloads",
    limit: int = 40,
    base_model: str = "",
) -> tuple[SearchResult, ...]:
    """Search text generation models; blocks.

    Args:
        settings: Settings of the Hub.
        words: Words of the names.
        sort: Order of the results.
        limit: Upper limit of results.
        base_model: Only models whose card names this base model; empty for all.

    Raises:
        HubError: The Hub can't be reached, or its answer can't be read.
    """
    query = {
        **({"search": words} if words else {}),
        **({"filter": f"base_model:{base_model}"} if base_model else {}),
        "sort": "lastModified" if sort == "last_modified" else sort,
        "limit": limit,
    }
    answer = query_hub(settings, "models", words, query)
    if not isinstance(answer, list):
        raise unreadable(words, tr("it is no list"))
    return tuple(_found(words, raw) for raw in answer[:limit])


def _found(words: str, raw: Any) -> SearchResult:
    """Parse a search result."""
    if not isinstance(raw, dict) or not is_repo(raw.get("id")):
        raise unreadable(words, tr("it names {0}", printable_value(raw)))
    changed = _DATE.match(str(raw.get("lastModified")))
    return SearchResult(
        repo=raw["id"],
        downloads=_count(raw.get("downloads")),
        likes=_count(raw.get("likes")),
        is_gated=bool(raw.get("gated")),
        changed="" if changed is None else changed[0],
        tags=_tags(raw.get("tags")),
    )


def _tags(value: object) -> tuple[str, ...]:
    """Return the printable tags, limited in number and length."""
    if not isinstance(value, list):
        return ()
    texts = (tag for tag in value[:_MOST_TAGS] if isinstance(tag, str))
    return tuple(tag for tag in texts if len(tag) <= _MOST_TAG_CHARS and tag.isprintable())


def _count(value: object) -> int:
    """Return a count; 0 if it is invalid."""
    return value if type(value) is int and value > 0 else 0
