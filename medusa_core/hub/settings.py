"""Where the Hub is, where its files go, and what may leave this computer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from medusa_core.errors import OfflineError
from medusa_core.hub.bounds import LEAST_BYTES_PER_S, LEAST_RATE_OVER_S
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.user_folders import portable_home

HUB_ENDPOINT = "https://huggingface.co"
_FLOOR_BYTES = 2 << 30  # a full disk keeps other programs, and ours, from starting
_TRUE = {"1", "ON", "YES", "TRUE"}


@dataclass(frozen=True, slots=True)
class HubTimeouts:
    """When a silent, slow or failing server is given up.

    Attributes:
        stall_s: Without a byte for so long, the connection is given up.
        backoff_s: First pause before another try; doubles up to `longest_s`.
        longest_s: Longest pause.
        most_tries: Tries in a row that may bring nothing worth it.
        least_bytes_per_s: A server that sends less counts as silent.
        least_rate_over_s: Time over which that is seen.
    """

    stall_s: float = 30.0
    backoff_s: float = 1.0
    longest_s: float = 30.0
    most_tries: int = 8
    least_bytes_per_s: float = LEAST_BYTES_PER_S
    least_rate_over_s: float = LEAST_RATE_OVER_S


@dataclass(frozen=True, slots=True)
class HubSettings:
    """How to deal with the Hub.

    Attributes:
        endpoint: Its address; a mirror works too.
        cache_dir: Cache in huggingface_hub's layout.
        token: What proves who the user is; empty for nobody. Not shown when printed.
        is_offline: No request may leave.
        bytes_per_s: Most bytes a second over all connections; 0 for no limit.
        num_connections: Files that are fetched at a time.
        floor_bytes: Left free on the disk.
        patience: When the server is given up.
    """

    endpoint: str = HUB_ENDPOINT
    cache_dir: Path = Path()
    token: str = field(default="", repr=False)
    is_offline: bool = False
    bytes_per_s: int = 0
    num_connections: int = 4
    floor_bytes: int = _FLOOR_BYTES
    patience: HubTimeouts = field(default_factory=HubTimeouts)

    def require_online(self) -> None:
        """Refuse what needs the Hub in offline mode.

        Raises:
            OfflineError: It is on.
        """
        if self.is_offline:
            raise OfflineError(
                "Offline mode is on: nothing is asked of the Hub.",
                "Switch it off in the model manager, or unset HF_HUB_OFFLINE.",
            )

    def terms_url(self, repo: str) -> str:
        """Where the terms of a repository are accepted."""
        return f"{self.endpoint}/{repo}"


def settings_from(environment: Mapping[str, str], cache_dir: Path | None = None) -> HubSettings:
    """The settings that the environment asks for, as huggingface_hub reads it.

    A portable program has a cache and a token of its own in `MEDUSA_HOME`: elsewhere it would be
    without its models, and would leave gigabytes and a token behind. What names another place for
    the Hub's files still holds.

    Args:
        environment: Its variables.
        cache_dir: Another folder than the shared cache.
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
    """Keep a token where huggingface_hub looks for it, readable by the user alone."""
    path = _token_file(environment)
    replace_text(path, token.strip())
    return path


def has_token_file(environment: Mapping[str, str]) -> bool:
    """Whether a token is kept in a file, which `remove_token` removes."""
    return bool(_read_token(_token_file(environment)))


def remove_token(environment: Mapping[str, str]) -> None:
    """Remove the kept token; one in the environment stays.

    Raises:
        OSError: It can't be removed.
    """
    _token_file(environment).unlink(missing_ok=True)


def _home(environment: Mapping[str, str]) -> Path:
    value = environment.get("HF_HOME")
    if value:
        return Path(value).expanduser()
    if (portable := portable_home(environment)) is not None:
        return portable / "huggingface"
    base = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface"


def _token_file(environment: Mapping[str, str]) -> Path:
    value = environment.get("HF_TOKEN_PATH")
    return Path(value).expanduser() if value else _home(environment) / "token"


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""  # nobody logged in here
