"""How the Hub is dealt with: the user's choices over those of the environment."""

from __future__ import annotations

from pathlib import Path

from app.settings.preferences import Preferences
from medusa_core.api import HubSettings, user_hub_settings, with_cache, with_offline


def hub_settings(
    chosen: Preferences, now: HubSettings | None = None, cache_dir: Path | None = None
) -> HubSettings:
    """How to deal with the Hub.

    Args:
        chosen: The user's choices.
        now: What holds already, token and limits included; None for the environment's.
        cache_dir: Where downloads go if the user chose no folder; None for where they go now.
    """
    default = user_hub_settings()
    known = now or default
    cache = Path(chosen.models_dir) if chosen.models_dir else cache_dir or known.cache_dir
    return with_cache(with_offline(known, chosen.is_offline or default.is_offline), cache)
