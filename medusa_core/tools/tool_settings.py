"""Settings of built-in tools: `tools.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from medusa_core.errors import CheckpointError, ToolError
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.json_file import read_json

_BUILTIN = "builtin"


class ToolSettings:
    """The file of settings; keys that this version doesn't know stay in it.

    Attributes:
        problem: Why the file can't be used; empty if it can.
    """

    def __init__(self, path: Path) -> None:
        """Read the file, if there is one; in a damaged one all tools are off."""
        self._path = path
        self._values: dict[str, Any] = {}
        self.problem = ""
        if path.exists():
            try:
                self._values = read_json(path)
            except CheckpointError as error:
                self.problem = error.message

    @property
    def builtin_on(self) -> frozenset[str]:
        """Names of the built-in tools that are switched on."""
        names = self._values.get(_BUILTIN)
        return frozenset(map(str, names)) if isinstance(names, list) else frozenset()

    def set_builtin(self, name: str, on: bool) -> None:
        """Switch a built-in tool on or off.

        Raises:
            ToolError: The file can't be written.
        """
        names = self.builtin_on | {name} if on else self.builtin_on - {name}
        self._write({_BUILTIN: sorted(names)})

    def _write(self, changed: dict[str, Any]) -> None:
        """Write the file with other values."""
        values = {**self._values, **changed}
        with disk_errors(ToolError, self._path, tr("Make space, or check who may write there.")):
            replace_text(self._path, json.dumps(values, indent=1))
        self._values = values
        self.problem = ""
