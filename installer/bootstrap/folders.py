"""Where things of this user lie: what the bootstrap makes, and what the program keeps."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.version import version_key

APP_NAME = "medusa-chat"
HOME_VARIABLE = "MEDUSA_HOME"
_NEW = ".new"
_OLD = ".old"


class ProgramData:
    """Files that the bootstrap makes for one user.

    Attributes:
        root: The folder; nothing of it is a conversation, a setting or a model that was fetched by
            the program.
        versions: Environments.
        current: Which version runs.
        settings: Where packages come from.
        cache: What uv has fetched.
        pythons: Pythons that uv has fetched.
        models: The model of the first start.
        log: What uv said, and what a start said that failed.
        wheels: The program itself in each version that is installed, for repairs.
        lock: Held by who changes anything here.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.versions = root / "versions"
        self.current = root / "current.json"
        self.settings = root / "settings.json"
        self.cache = root / "cache"
        self.pythons = root / "python"
        self.models = root / "models"
        self.log = root / "log"
        self.wheels = root / "wheels"
        self.lock = root / "lock"

    def uv_folders(self) -> dict[str, str]:
        """Return uv's variables for its cache and its Pythons."""
        return {
            "UV_CACHE_DIR": str(self.cache),
            "UV_PYTHON_INSTALL_DIR": str(self.pythons),
        }

    def environment(self, version: str) -> "EnvironmentFolder":
        """Return the environment of a version, which may not exist."""
        return EnvironmentFolder(self.versions / version)

    def half_made(self) -> list[Path]:
        """Return environments whose creation or removal is under way or was interrupted."""
        try:
            paths = list(self.versions.iterdir())
        except OSError:
            return []
        return [path for path in paths if path.name[:1] == "." and path.suffix in (_NEW, _OLD)]

    def complete_versions(self) -> list[str]:
        """Return the versions that can be started, the newest first."""
        try:
            names = [path.name for path in self.versions.iterdir()]
        except OSError:
            return []
        known = [name for name in names if version_key(name) is not None]
        complete = [name for name in known if self.environment(name).is_complete]
        return sorted(complete, key=lambda name: version_key(name) or (), reverse=True)


class EnvironmentFolder:
    """An environment.

    Attributes:
        root: Its folder.
        stamp: Written last: what was installed.
        in_use: Locked while a program of this environment runs; beside it, since it may be removed.
        python: Its Python.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stamp = root / "installed.json"
        self.in_use = root.with_name(f".{root.name}.in-use")
        self.python = self.program("python")

    @property
    def new(self) -> "EnvironmentFolder":
        """Environment under construction, which is moved into its place when it is complete."""
        return EnvironmentFolder(self.root.with_name(f".{self.root.name}{_NEW}"))

    @property
    def old(self) -> "EnvironmentFolder":
        """Environment to be removed, after it was moved out of its place."""
        return EnvironmentFolder(self.root.with_name(f".{self.root.name}{_OLD}"))

    def program(self, name: str) -> Path:
        """Return the path of a program."""
        if os.name == "nt":
            return self.root / "Scripts" / f"{name}.exe"
        return self.root / "bin" / name

    @property
    def site_packages(self) -> Path:
        """Folder of the installed packages."""
        found = self.root.glob("lib/python3.*/site-packages")
        return next(found, self.root / "Lib" / "site-packages")

    def packages(self) -> set[str]:
        """Return the names of its packages' metadata folders, such as `torch-2.13.0.dist-info`."""
        return {path.name for path in self.site_packages.glob("*.dist-info")}

    @property
    def is_complete(self) -> bool:
        """Whether the installation was completed and its Python still exists."""
        return self.stamp.is_file() and self.python.exists()


@dataclass(frozen=True, slots=True)
class UserFolders:
    """The program's own folders for this user.

    Attributes:
        config: the choices.
        data: conversations, folders of models, what drafts were learned from.
        state: downloads under way, the window's place.
        log: what happened.
        cache: what can be computed again.
    """

    config: Path
    data: Path
    state: Path
    log: Path
    cache: Path


def program_data(
    environ: Mapping[str, str] = os.environ, system: str = sys.platform
) -> ProgramData:
    """Return the folder of the bootstrap.

    Args:
        environ: environment variables.
        system: `sys.platform`.
    """
    home = portable_home(environ)
    if home is not None:
        return ProgramData(home / "program")
    return ProgramData(_data_home(environ, system) / f"{APP_NAME}-program")


def user_folders(
    environ: Mapping[str, str] = os.environ, system: str = sys.platform
) -> UserFolders:
    """Return the program's folders, equal to those of `medusa_core.system.user_folders`."""
    home = portable_home(environ)
    if home is not None:
        names = ("config", "data", "state", "log", "cache")
        return UserFolders(*(home / name for name in names))
    own = _data_home(environ, system) / APP_NAME
    if system == "win32":
        own /= APP_NAME
        return UserFolders(own, own, own, own / "Logs", own / "Cache")
    if system == "darwin":
        library = _home(environ) / "Library"
        return UserFolders(
            own, own, own, library / "Logs" / APP_NAME, library / "Caches" / APP_NAME
        )
    state = _xdg(environ, "XDG_STATE_HOME", ".local/state") / APP_NAME
    return UserFolders(
        _xdg(environ, "XDG_CONFIG_HOME", ".config") / APP_NAME,
        own,
        state,
        state / "log",
        _xdg(environ, "XDG_CACHE_HOME", ".cache") / APP_NAME,
    )


def portable_home(environ: Mapping[str, str]) -> Path | None:
    """Return the folder that `MEDUSA_HOME` names; None if it is unset or empty."""
    named = environ.get(HOME_VARIABLE, "")
    # An unknown user's name stays as it is here; `Path.expanduser` would raise.
    return Path(os.path.expanduser(named)).absolute() if named.strip() else None  # noqa: PTH111


def _data_home(environ: Mapping[str, str], system: str) -> Path:
    if system == "win32":
        local = environ.get("LOCALAPPDATA", "")
        return Path(local) if local else _home(environ) / "AppData" / "Local"
    if system == "darwin":
        return _home(environ) / "Library" / "Application Support"
    return _xdg(environ, "XDG_DATA_HOME", ".local/share")


def _xdg(environ: Mapping[str, str], name: str, usual: str) -> Path:
    named = environ.get(name, "")
    return Path(named) if named.strip() else _home(environ) / usual


def _home(environ: Mapping[str, str]) -> Path:
    home = environ.get("USERPROFILE" if os.name == "nt" else "HOME", "")
    return Path(home) if home else Path.home()
