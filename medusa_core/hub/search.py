"""Looking for models on the Hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from medusa_core.hub.listing import call_hub
from medusa_core.hub.settings import HubSettings

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Sort = Literal["downloads", "likes", "last_modified"]


@dataclass(frozen=True, slots=True)
class Found:
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
) -> tuple[Found, ...]:
    """Look for text generation models in safetensors; blocks.

    Args:
        settings: How to deal with the Hub.
        words: Part of their names.
        sort: What comes first.
        limit: Most to find.

    Raises:
        HubError: The Hub can't be reached.
    """

    def ask(api: HfApi) -> list[Any]:
        return list(api.list_models(search=words, sort=sort, limit=limit))

    return tuple(_found(info) for info in call_hub(settings, words, ask))


def _found(info: Any) -> Found:
    changed = info.last_modified
    return Found(
        repo=info.id,
        downloads=int(info.downloads or 0),
        likes=int(info.likes or 0),
        is_gated=bool(info.gated),
        changed="" if changed is None else f"{changed:%Y-%m-%d}",
    )
