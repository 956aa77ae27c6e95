"""The record of a complete installation: with it a second start needs no pip."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass

from installer.layout import Layout

INSTALLER_VERSION = "1"  # raised when the steps of the installation change


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was installed, written after everything else.

    Attributes:
        fingerprint: hash of all that the installation was made from.
        with_tests: whether the tools of `installer test` are there.
        torch_requested: the build asked for by `--torch`, or "auto".
        torch_installed: the build that came.
    """

    fingerprint: str
    with_tests: bool
    torch_requested: str
    torch_installed: str


def fingerprint(layout: Layout) -> str:
    """Hash of the requirements, their pins, the environment's Python and this installer."""
    digest = hashlib.sha256(INSTALLER_VERSION.encode())
    for path in (layout.pyproject, layout.constraints, layout.venv / "pyvenv.cfg"):
        content = path.read_bytes() if path.is_file() else b""
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


def read_stamp(layout: Layout) -> Stamp | None:
    """The stamp, or None if there is none that can be read or an installation was cut short."""
    if layout.unfinished.exists() or not layout.python.exists():
        return None
    try:
        return Stamp(**json.loads(layout.stamp.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_stamp(layout: Layout, stamp: Stamp) -> None:
    """Write the stamp whole or not at all."""
    partial = layout.stamp.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(asdict(stamp), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(layout.stamp)
