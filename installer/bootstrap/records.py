"""Which version runs, which one ran before, and how often its start failed."""

import json
from dataclasses import asdict, dataclass

from installer.bootstrap.files import write_whole
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.version import version_key
from installer.torch_choice import AUTO, TorchBuild


@dataclass(frozen=True, slots=True)
class Current:
    """The record `current.json`.

    Attributes:
        version: what runs; None before the first installation.
        before: what ran before it, and is kept.
        failed_starts: of `version`, in a row.
        failed: a version that was given up for the one before; it isn't offered again by itself.
    """

    version: str | None = None
    before: str | None = None
    failed_starts: int = 0
    failed: str | None = None


def read_current(data: ProgramData) -> Current:
    """Read the record; if it is unreadable, assume the newest complete version."""
    try:
        return _checked(json.loads(data.current.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        complete = data.complete_versions()
        return Current(version=complete[0] if complete else None)


def write_current(data: ProgramData, current: Current) -> None:
    """Write the record atomically.

    Raises:
        OSError: it can't be written.
    """
    write_whole(data.current, json.dumps(asdict(current), indent=1) + "\n")


def _checked(fields: object) -> Current:
    """Check the types of fields; raises TypeError."""
    if not isinstance(fields, dict):
        raise TypeError("not an object")
    current = Current(**fields)
    names = (current.version, current.before, current.failed)
    if any(name is not None and version_key(name) is None for name in names):
        raise TypeError("a version is none")
    if type(current.failed_starts) is not int:
        raise TypeError("failed_starts is no number")
    return current


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
    """Read the record; an unreadable one counts as empty."""
    try:
        fields = json.loads(data.settings.read_text(encoding="utf-8"))
        mirror, torch = fields["mirror"], fields["torch"]
    except (OSError, ValueError, TypeError, KeyError):
        return Settings()
    is_known = isinstance(mirror, str) and torch in TORCH_CHOICES
    return Settings(mirror, torch) if is_known else Settings()


def write_settings(data: ProgramData, settings: Settings) -> None:
    """Write the record atomically.

    Raises:
        OSError: it can't be written.
    """
    write_whole(data.settings, json.dumps(asdict(settings), indent=1) + "\n")
