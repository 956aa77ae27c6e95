"""Folders of this user's files: the system's standard ones, or all under `MEDUSA_HOME`.

No other module looks up folders, so that a portable installation writes nowhere else.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from medusa_core.errors import StorageError
from medusa_core.system.files.own_folder import OWN, make_own_folder

APP_NAME = "medusa-chat"
HOME_VARIABLE = "MEDUSA_HOME"
_MARK = f"${{{HOME_VARIABLE}}}"


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of one user.

    Attributes:
        config: Settings.
        data: Data that mustn't be lost: conversations, lists of models.
        state: State for the next start: downloads, window geometry, locks.
        log: Log files.
    """

    config: Path
    data: Path
    state: Path
    log: Path

    @property
    def history(self) -> Path:
        """Database of all conversations."""
        return self.data / "history.db"

    @property
    def preferences(self) -> Path:
        """File of the window's settings."""
        return self.config / "preferences.json"

    @property
    def layers(self) -> Path:
        """Folder of offloaded layers; its files may be deleted."""
        return self.state / "layers"

    @property
    def running(self) -> Path:
        """Folder of `running_models`."""
        return self.state / "loaded"

    @property
    def learned(self) -> Path:
        """Folder of earlier answers, from which drafts are looked up."""
        return self.data / "learned"

    def make_private(self) -> None:
        """Create the folders with mode 0700.

        Errors are ignored: writing a file there reports them.
        """
        for folder in (self.config, self.data, self.state, self.log):
            with suppress(OSError):
                make_own_folder(folder)
                folder.chmod(OWN)


def places(data_dir: Path | None = None) -> Places:
    """Return the folders.

    Args:
        data_dir: Parent of all folders; None for `MEDUSA_HOME`, or the system's standard folders.
    """
    root = portable_home() if data_dir is None else data_dir.expanduser().absolute()
    if root is None:
        import platformdirs  # a portable program doesn't need it

        return Places(
            Path(platformdirs.user_config_path(APP_NAME)),
            Path(platformdirs.user_data_path(APP_NAME)),
            Path(platformdirs.user_state_path(APP_NAME)),
            Path(platformdirs.user_log_path(APP_NAME)),
        )
    return Places(root / "config", root / "data", root / "state", root / "log")


def close_folders() -> None:
    """Set mode 0700 on existing folders, which earlier versions created with 0755."""
    own = places()
    for folder in (own.config, own.data, own.state, own.log):
        with suppress(OSError):
            if folder.is_dir():
                folder.chmod(OWN)


def cache_dir() -> Path:
    """Folder of files that can be computed again."""
    home = portable_home()
    if home is not None:
        return home / "cache"
    import platformdirs

    return Path(platformdirs.user_cache_path(APP_NAME))


def portable_home(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the folder of a portable installation.

    Args:
        environment: Environment variables; None for those of this process.

    Returns:
        `MEDUSA_HOME` as an absolute path; None if it is unset or empty.
    """
    named = (os.environ if environment is None else environment).get(HOME_VARIABLE, "")
    if not named.strip():
        return None
    # Unlike `Path.expanduser`, this doesn't raise for an unknown user.
    return Path(os.path.expanduser(named)).absolute()  # noqa: PTH111


def without_home(value: Any) -> Any:
    """Replace `MEDUSA_HOME` in the paths of a JSON value by a placeholder.

    So a USB drive may have another letter, or the folder another name, at the next start.
    """
    home = portable_home()
    return value if home is None else _each_text(value, partial(_leave_home, home))


def with_home(value: Any) -> Any:
    """Replace the placeholder of `without_home` by the current `MEDUSA_HOME`."""
    home = portable_home()
    return value if home is None else _each_text(value, partial(_enter_home, home))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Apply a function to all strings of a JSON value, including keys."""
    if isinstance(value, dict):
        return {change(name): _each_text(one, change) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(one, change) for one in value]
    return change(value) if isinstance(value, str) else value


def _leave_home(home: Path, text: str) -> str:
    """Replace the home folder at the start of a path by a placeholder."""
    if not text.startswith(str(home)) or not Path(text).is_relative_to(home):
        return text
    return f"{_MARK}/{Path(text).relative_to(home).as_posix()}"


def _enter_home(home: Path, text: str) -> str:
    """Replace the placeholder by the home folder."""
    return str(home / text.removeprefix(f"{_MARK}/")) if text.startswith(f"{_MARK}/") else text


def prepare_home() -> None:
    """Create the folder of `MEDUSA_HOME`, and make the variable absolute for child processes.

    Raises:
        StorageError: The folder can't be written.
    """
    home = portable_home()
    if home is None:
        return
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            os.environ[HOME_VARIABLE] = str(home)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"{HOME_VARIABLE} is {home}, which can't be written: {reason}.",
            f"Set it to a folder that you may write to, or unset {HOME_VARIABLE}.",
        ) from error
