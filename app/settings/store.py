"""Holds the user's choices, writes each change down, and tells who must act on it."""

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
    """The choices of one user.

    Attributes:
        values: All of them.
        folder: Where they are kept; None forgets them.

    Signals:
        changed: The setting of this name has another value.
    """

    changed = Signal(str)

    def __init__(self, values: Preferences, folder: Path | None) -> None:
        super().__init__()
        self.values = values
        self.folder = folder

    def choose(self, name: str, value: Any) -> None:
        """Take another value and keep it; the same one changes nothing."""
        if getattr(self.values, name) == value:
            return
        self.remember(**{name: value})
        self.changed.emit(name)

    def choose_all(self, values: Mapping[str, Any]) -> None:
        """Take several values at once; whoever acts on one of them sees the others, too."""
        changed = [name for name, value in values.items() if getattr(self.values, name) != value]
        self.remember(**{name: values[name] for name in changed})
        for name in changed:
            self.changed.emit(name)

    def remember(self, **choices: Any) -> None:
        """Keep values that are in effect already; tells nobody."""
        unknown = choices.keys() - DECLARATIONS.keys()
        assert not unknown, f"not declared: {unknown}"
        self.values = replace(self.values, **choices)
        if self.folder is not None:
            save_preferences(self.values, self.folder)
