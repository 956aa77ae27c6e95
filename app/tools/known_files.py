"""Files in which other programs list their tool servers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple


class KnownFile(NamedTuple):
    """A file of another program.

    Attributes:
        program: Name of the program.
        path: The file.
    """

    program: str
    path: Path


def known_files(home: Path | None = None, platform: str = sys.platform) -> tuple[KnownFile, ...]:
    """Return the files that exist.

    Args:
        home: The user's home folder.
        platform: As `sys.platform`.
    """
    home = home or Path.home()
    if platform == "darwin":
        config = home / "Library" / "Application Support"
    elif platform == "win32":
        config = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = (
        KnownFile("Claude Desktop", config / "Claude" / "claude_desktop_config.json"),
        KnownFile("LM Studio", home / ".lmstudio" / "mcp.json"),
        KnownFile("LM Studio", home / ".cache" / "lm-studio" / "mcp.json"),
        KnownFile("Cursor", home / ".cursor" / "mcp.json"),
    )
    return tuple(place for place in places if place.path.is_file())
