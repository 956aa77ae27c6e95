"""Where this user's files lie: where the system wants them, or all under `MEDUSA_HOME`.

Nothing else asks the system for folders, so that a portable program leaves nothing behind.
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
        config: The choices.
        data: What mustn't be lost: conversations, folders of models.
        state: What the next start goes on from: downloads, the window's place, the lock.
        log: What happened.
    """

    config: Path
    data: Path
    state: Path
    log: Path

    @property
    def history(self) -> Path:
        """The file of all conversations."""
        return self.data / "history.db"

    @property
    def preferences(self) -> Path:
        """The file of the window's choices."""
        return self.config / "preferences.json"

    @property
    def layers(self) -> Path:
        """The folder of layers that have no room in memory; its files may be deleted."""
        return self.state / "layers"

    @property
    def running(self) -> Path:
        """The folder in which programs say what they have loaded."""
        return self.state / "loaded"

    @property
    def learned(self) -> Path:
        """The folder of what models said, for drafts."""
        return self.data / "learned"

    def make_private(self) -> None:
        """Make the folders, which hold what is said, readable by this user only.

        Where that can't be done, whoever writes there finds out and tells it.
        """
        for folder in (self.config, self.data, self.state, self.log):
            with suppress(OSError):
                make_own_folder(folder)
                folder.chmod(OWN)


def places(data_dir: Path | None = None) -> Places:
    """The folders.

    Args:
        data_dir: Puts all of them under this folder; None for `MEDUSA_HOME`, and where that isn't
            set for where the system wants them.
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
    """Take others' rights to the folders away, which earlier versions left them."""
    own = places()
    for folder in (own.config, own.data, own.state, own.log):
        with suppress(OSError):
            if folder.is_dir():
                folder.chmod(OWN)


def cache_dir() -> Path:
    """The folder of what can be computed again; its files may be deleted."""
    home = portable_home()
    if home is not None:
        return home / "cache"
    import platformdirs

    return Path(platformdirs.user_cache_path(APP_NAME))


def portable_home(environment: Mapping[str, str] | None = None) -> Path | None:
    """The one folder that a portable program keeps everything in.

    Args:
        environment: Its variables; None for those of this process.

    Returns:
        What `MEDUSA_HOME` names, as an absolute path; None where it is unset or empty.
    """
    named = (os.environ if environment is None else environment).get(HOME_VARIABLE, "")
    if not named.strip():
        return None
    # An unknown user's name stays as it is here; `Path.expanduser` would raise.
    return Path(os.path.expanduser(named)).absolute()  # noqa: PTH111


def without_home(value: Any) -> Any:
    """JSON as a portable program keeps it: paths in its folder don't say where that lies.

    So a stick may have another letter, or the folder another name, at the next start.
    """
    home = portable_home()
    return value if home is None else _each_text(value, partial(_leave_home, home))


def with_home(value: Any) -> Any:
    """What `without_home` was given, from where the folder lies now."""
    home = portable_home()
    return value if home is None else _each_text(value, partial(_enter_home, home))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """JSON with other texts, also as the names of values."""
    if isinstance(value, dict):
        return {change(name): _each_text(one, change) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(one, change) for one in value]
    return change(value) if isinstance(value, str) else value


def _leave_home(home: Path, text: str) -> str:
    if not text.startswith(str(home)) or not Path(text).is_relative_to(home):
        return text
    return f"{_MARK}/{Path(text).relative_to(home).as_posix()}"


def _enter_home(home: Path, text: str) -> str:
    return str(home / text.removeprefix(f"{_MARK}/")) if text.startswith(f"{_MARK}/") else text


def prepare_home() -> None:
    """Make the folder of `MEDUSA_HOME`, if that is set, before anything is kept there.

    From then on the variable is an absolute path: processes that are started elsewhere find it.

    Raises:
        StorageError: It can't be written.
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
