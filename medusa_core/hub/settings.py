"""Settings of the Hub: endpoint, cache, token, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from medusa_core.errors import OfflineError
from medusa_core.hub.bounds import MIN_BYTES_PER_S, MIN_RATE_WINDOW_S
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.user_folders import portable_home

HUB_ENDPOINT = "https://huggingface.co"
_FLOOR_BYTES = 2 << 30  # a full disk keeps other programs, and ours, from starting
_TRUE = {"1", "ON", "YES", "TRUE"}


@dataclass(frozen=True, slots=True)
class HubTimeouts:
    """When a silent, slow or failing server is given up.

    Attributes:
        stall_s: Longest time without a byte.
        backoff_s: First pause before a retry; doubles up to `max_backoff_s`.
        max_backoff_s: Longest pause.
        max_tries: Attempts in a row that may bring less than `WORTHWHILE_BYTES`.
        min_bytes_per_s: Rate below which a server counts as silent.
        min_rate_window_s: Time over which the rate is measured.
    """

    stall_s: float = 30.0
    backoff_s: float = 1.0
    max_backoff_s: float = 30.0
    max_tries: int = 8
    min_bytes_per_s: float = MIN_BYTES_PER_S
    min_rate_window_s: float = MIN_RATE_WINDOW_S


@dataclass(frozen=True, slots=True)
class HubSettings:
    """Settings of the Hub.

    Attributes:
        endpoint: Address of the Hub or a mirror.
        cache_dir: Cache in huggingface_hub's layout.
        token: Access token; empty for none. Not part of `repr`.
        is_offline: Whether no request may be sent.
        bytes_per_s: Rate limit over all connections; 0 for none.
        num_connections: Files that are fetched at a time.
        floor_bytes: Bytes that stay free on the disk.
        timeouts: When a server is given up.
    """

    endpoint: str = HUB_ENDPOINT
    cache_dir: Path = Path()
    token: str = field(default="", repr=False)
    is_offline: bool = False
    bytes_per_s: int = 0
    num_connections: int = 4
    floor_bytes: int = _FLOOR_BYTES
    timeouts: HubTimeouts = field(default_factory=HubTimeouts)

    def require_online(self) -> None:
        """Check that offline mode is off.

        Raises:
            OfflineError: It is on.
        """
        if self.is_offline:
            raise OfflineError(
                "Offline mode is on: nothing is asked of the Hub.",
                "Switch it off in the model manager, or unset HF_HUB_OFFLINE.",
            )

    def terms_url(self, repo: str) -> str:
        """Return the page where the terms of a repository are accepted."""
        return f"{self.endpoint}/{repo}"


def settings_from(environment: Mapping[str, str], cache_dir: Path | None = None) -> HubSettings:
    """Read the settings from environment variables as huggingface_hub does.

    With `MEDUSA_HOME` (portable mode), cache and token are in that folder, so that they move with
    the program and nothing remains on the computer. Variables of huggingface_hub take precedence.

    Args:
        environment: Environment variables.
        cache_dir: Replaces the cache folder; None for the default.
    """
    home = _home(environment)
    cache = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE")
    return HubSettings(
        endpoint=(environment.get("HF_ENDPOINT") or HUB_ENDPOINT).rstrip("/"),
        cache_dir=cache_dir or (Path(cache).expanduser() if cache else home / "hub"),
        token=environment.get("HF_TOKEN", "").strip() or _read_token(_token_file(environment)),
        is_offline=environment.get("HF_HUB_OFFLINE", "").upper() in _TRUE,
    )


def save_token(token: str, environment: Mapping[str, str]) -> Path:
    """Save a token where huggingface_hub reads it, readable by the user alone."""
    path = _token_file(environment)
    replace_text(path, token.strip())
    return path


def has_token_file(environment: Mapping[str, str]) -> bool:
    """Return whether a token is saved in a file, which `remove_token` deletes."""
    return bool(_read_token(_token_file(environment)))


def remove_token(environment: Mapping[str, str]) -> None:
    """Delete the saved token; one in the environment stays.

    Raises:
        OSError: It can't be removed.
    """
    _token_file(environment).unlink(missing_ok=True)


def _home(environment: Mapping[str, str]) -> Path:
    """Return Hugging Face's home folder, as huggingface_hub determines it."""
    value = environment.get("HF_HOME")
    if value:
        return Path(value).expanduser()
    if (portable := portable_home(environment)) is not None:
        return portable / "huggingface"
    base = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface"


def _token_file(environment: Mapping[str, str]) -> Path:
    """Return the file in which huggingface_hub stores the token."""
    value = environment.get("HF_TOKEN_PATH")
    return Path(value).expanduser() if value else _home(environment) / "token"


def _read_token(path: Path) -> str:
    """Read the saved token; empty without."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""  # not logged in
