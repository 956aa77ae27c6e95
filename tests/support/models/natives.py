"""The libraries of the compiled step that this machine can run."""

import os
from pathlib import Path

import pytest

from medusa_core.system.native import binding as native
from medusa_core.system.native.binding import library_suffix, system_name
from medusa_core.system.resources import native_dir


def libraries() -> list[Path]:
    """Return the libraries in order of preference; only the named one if there is one."""
    if os.sep in (wanted := os.environ.get("MEDUSA_NATIVE", "")):
        return [Path(wanted)]  # one that was built to look for faults
    folder = native_dir() / system_name()
    here = native.instruction_sets()
    names = [wanted] if wanted in here else here
    return [folder / f"{name}{library_suffix()}" for name in names]


each_library = pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
