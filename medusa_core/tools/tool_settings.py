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
from medusa_core.tools.web.settings import WebSettings

_BUILTIN = "builtin"
_SEARCH_URL, _ALLOWED_HOSTS = "search_url", "allowed_hosts"


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
        self._read()

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
        self._read()
        names = self.builtin_on | {name} if on else self.builtin_on - {name}
        self._write({_BUILTIN: sorted(names)})

    @property
    def web(self) -> WebSettings:
        """Settings for requests to the web."""
        url, hosts = self._values.get(_SEARCH_URL), self._values.get(_ALLOWED_HOSTS)
        return WebSettings(
            url if isinstance(url, str) else "",
            tuple(map(str, hosts)) if isinstance(hosts, list) else (),
        )

    def set_web(self, web: WebSettings) -> None:
        """Store settings for requests to the web.

        Raises:
            ToolError: The file can't be written.
        """
        self._read()
        self._write({_SEARCH_URL: web.search_url, _ALLOWED_HOSTS: list(web.allowed_hosts)})

    def _read(self) -> None:
        """Read the file, which another program may have changed."""
        self.problem = ""
        if self._path.exists():
            try:
                self._values = read_json(self._path)
            except CheckpointError as error:
                self.problem = error.message

    def _write(self, changed: dict[str, Any]) -> None:
        """Write the file with other values."""
        values = {**self._values, **changed}
        with disk_errors(ToolError, self._path, tr("Make space, or check who may write there.")):
            replace_text(self._path, json.dumps(values, indent=1))
        self._values = values
        self.problem = ""
