"""Where this user's files lie."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

APP_NAME = "medusa-chat"
_OWN = 0o700


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
    def bandwidths(self) -> Path:
        """The file of how fast disks and cards bring layers, each measured once."""
        return self.state / "bandwidths.json"

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
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(_OWN)


def places(data_dir: Path | None = None) -> Places:
    """The folders.

    Args:
        data_dir: Puts all of them under this folder; None for where the system wants them.
    """
    if data_dir is None:
        return Places(
            Path(platformdirs.user_config_path(APP_NAME)),
            Path(platformdirs.user_data_path(APP_NAME)),
            Path(platformdirs.user_state_path(APP_NAME)),
            Path(platformdirs.user_log_path(APP_NAME)),
        )
    root = data_dir.expanduser().absolute()
    return Places(root / "config", root / "data", root / "state", root / "log")
