"""Hub settings: the user's preferences override the environment."""

from __future__ import annotations

from pathlib import Path

from app.settings.preferences import Preferences
from medusa_core.api import HubSettings, user_hub_settings, with_cache, with_offline


def hub_settings(
    chosen: Preferences, now: HubSettings | None = None, cache_dir: Path | None = None
) -> HubSettings:
    """Return the Hub settings for the user's preferences.

    Args:
        chosen: The user's preferences.
        now: Current settings with token and limits; None for the environment's.
        cache_dir: Download folder unless the user set one; None for the current one.
    """
    default = user_hub_settings()
    known = now or default
    cache = Path(chosen.models_dir) if chosen.models_dir else cache_dir or known.cache_dir
    return with_cache(with_offline(known, chosen.is_offline or default.is_offline), cache)
