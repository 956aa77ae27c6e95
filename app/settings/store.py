"""The preferences of the user: saved on each change, with a signal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.settings.preferences import (
    DECLARATIONS,
    Preferences,
    save_preferences,
)


class SettingsStore(QObject):
    """The preferences of the user.

    Attributes:
        values: All preferences.
        folder: Folder of their file; None saves nothing.

    Signals:
        changed: The preference of this name has a new value.
    """

    changed = Signal(str)

    def __init__(self, values: Preferences, folder: Path | None) -> None:
        super().__init__()
        self.values = values
        self.folder = folder

    def set(self, name: str, value: Any) -> None:
        """Set and save a preference; emits `changed` if the value is new."""
        if getattr(self.values, name) == value:
            return
        self.set_silently(**{name: value})
        self.changed.emit(name)

    def set_all(self, values: Mapping[str, Any]) -> None:
        """Set several preferences before any `changed` is emitted."""
        changed = [name for name, value in values.items() if getattr(self.values, name) != value]
        self.set_silently(**{name: values[name] for name in changed})
        for name in changed:
            self.changed.emit(name)

    def set_silently(self, **choices: Any) -> None:
        """Set and save preferences that are in effect already, without a signal."""
        unknown = choices.keys() - DECLARATIONS.keys()
        assert not unknown, f"not declared: {unknown}"
        self.values = replace(self.values, **choices)
        if self.folder is not None:
            save_preferences(self.values, self.folder)
