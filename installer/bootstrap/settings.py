"""What the user chose for installations: a mirror, and a build of torch."""

import json
from dataclasses import asdict, dataclass

from installer.bootstrap.files import write_whole
from installer.bootstrap.folders import ProgramData
from installer.torch_choice import AUTO, TorchBuild

TORCH_CHOICES = (AUTO, *(build.value for build in TorchBuild))


@dataclass(frozen=True, slots=True)
class Settings:
    """The record `settings.json`.

    Attributes:
        mirror: a folder of wheels or the address of a package index; empty for what uv's
            variables or pip's configuration say.
        torch: a build of torch, or "auto".
    """

    mirror: str = ""
    torch: str = AUTO


def read_settings(data: ProgramData) -> Settings:
    """The record; what can't be read is as if nothing had been chosen."""
    try:
        fields = json.loads(data.settings.read_text(encoding="utf-8"))
        mirror, torch = fields["mirror"], fields["torch"]
    except (OSError, ValueError, TypeError, KeyError):
        return Settings()
    is_known = isinstance(mirror, str) and torch in TORCH_CHOICES
    return Settings(mirror, torch) if is_known else Settings()


def write_settings(data: ProgramData, settings: Settings) -> None:
    """Write the record whole or not at all.

    Raises:
        OSError: it can't be written.
    """
    write_whole(data.settings, json.dumps(asdict(settings), indent=1) + "\n")
