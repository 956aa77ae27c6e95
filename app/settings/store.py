"""The owner of the user's preferences: saves changes and runs their effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.settings.preferences import (
    DECLARATIONS,
    EFFECTS,
    Preferences,
    save_preferences,
)

Act = Callable[[Preferences], object]


class SettingsStore(QObject):
    """Store of the user's preferences.

    Settings flow one way: `set` stores a value and runs its effect, effects and views render from
    `values`, and views report what the user chose to `set`. Setting the stored value again does
    nothing, so a view that reports what it was told to render changes nothing.

    Attributes:
        values: All preferences.
        folder: Folder of the preferences file; None saves nothing.

    Signals:
        changed: A preference (its name) has a new value, which is in effect.
    """

    changed = Signal(str)

    def __init__(
        self, values: Preferences, folder: Path | None, overrides: Mapping[str, Any] | None = None
    ) -> None:
        """Create the store.

        Args:
            values: Loaded preferences.
            folder: Folder of the preferences file; None saves nothing.
            overrides: Values for this run by name, such as those of the command line. They are
                saved only once the user chooses another value.
        """
        super().__init__()
        self._saved = {name: getattr(values, name) for name in overrides or {}}
        self.values = replace(values, **overrides or {})
        self.folder = folder
        self._acts: dict[str, list[Act]] = {}

    def set(self, **values: Any) -> None:
        """Set and save preferences, run the effects of changed ones, emit `changed`."""
        changed = [name for name, value in values.items() if getattr(self.values, name) != value]
        if not changed:
            return
        self.values = replace(self.values, **values)
        for name in changed:
            self._saved.pop(name, None)
        if self.folder is not None:
            save_preferences(replace(self.values, **self._saved), self.folder)
        for effect in dict.fromkeys(DECLARATIONS[name].effect for name in changed):
            self.apply(effect)
        for name in changed:
            self.changed.emit(name)

    def follow(self, effect: str, act: Act) -> None:
        """Run an effect now, and whenever a setting that declares it changes.

        Args:
            effect: Name of the effect in the declarations.
            act: Called with all preferences; several functions of an effect run in order.
        """
        assert effect in EFFECTS, effect
        self._acts.setdefault(effect, []).append(act)
        act(self.values)

    def apply(self, effect: str) -> None:
        """Run an effect again after its target has changed."""
        for act in self._acts.get(effect, ()):
            act(self.values)

    @property
    def followed(self) -> frozenset[str]:
        """Names of the effects with at least one function."""
        return frozenset(self._acts)
