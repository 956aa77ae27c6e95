"""Whose token this is."""

from __future__ import annotations

from dataclasses import replace

from medusa_core.errors import NotFoundError
from medusa_core.hub.hub_api import query_hub
from medusa_core.hub.refusals import unknown_token, unreadable
from medusa_core.hub.settings import HubSettings

_MOST_CHARS = 100


def whoami(settings: HubSettings, token: str) -> str:
    """Ask the Hub once whose token this is; blocks.

    Args:
        settings: How to deal with the Hub.
        token: The token.

    Returns:
        The name of its account.

    Raises:
        AccessError: The Hub doesn't know it.
        HubError: The Hub can't be asked.
    """
    try:
        answer = query_hub(replace(settings, token=token), "whoami-v2", "this token")
    except NotFoundError as error:  # what a mirror may say
        raise unknown_token() from error
    if not isinstance(answer, dict) or not isinstance(answer.get("name"), str):
        raise unreadable("this token", "it names nobody")
    return str(answer["name"])[:_MOST_CHARS]
