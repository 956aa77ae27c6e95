"""What a name on the command line means: a folder, a GGUF file, or a downloaded repository."""

from __future__ import annotations

import os
from pathlib import Path

from medusa_core.errors import RequestError
from medusa_core.hub.cache_folder import find_snapshot
from medusa_core.hub.settings import settings_from
from medusa_core.models.model_files import ModelFiles


def installed(name: str) -> Path:
    """The folder that a name on the command line means.

    Raises:
        RequestError: It is neither a folder nor a repository that was downloaded.
    """
    if ModelFiles.find(Path(name)) is not None:
        return Path(name)
    snapshot = find_snapshot(settings_from(os.environ).cache_dir, name)
    if snapshot is None:
        raise RequestError(
            f"{name} is neither a folder nor a downloaded repository.",
            f"Fetch it with: medusa pull {name}" if "/" in name else "Check the path.",
        )
    return snapshot
