"""The table of commands, each a window action with customizable shortcuts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.window.commands.command import (
    AppCommand,
)

_PORTABLE = QKeySequence.SequenceFormat.PortableText


class CommandTable(QObject):
    """Commands by name.

    Changed shortcuts are a setting. `choose_keys` and the resets emit its new value by
    `keys_chosen`, and `use_keys` applies it.

    Signals:
        keys_chosen: The user changed shortcuts (a mapping by command name).
        keys_changed: Shortcuts have changed.
    """

    keys_chosen = Signal(object)
    keys_changed = Signal()

    def __init__(self, window: QWidget) -> None:
        """Create an empty table with default shortcuts.

        Args:
            window: Window that receives the shortcuts.
        """
        super().__init__(window)
        self._window = window
        self._chosen: dict[str, str] = {}
        self._commands: dict[str, AppCommand] = {}
        self._actions: dict[str, QAction] = {}

    @property
    def commands(self) -> tuple[AppCommand, ...]:
        """All commands, in the order they were added."""
        return tuple(self._commands.values())

    def add(self, commands: Iterable[AppCommand]) -> None:
        """Add commands; names must be unique."""
        for command in commands:
            assert command.name not in self._commands, command.name
            self._commands[command.name] = command
            action = QAction(command.label, self._window)
            action.triggered.connect(lambda _checked=False, run=command.run: run())
            self._actions[command.name] = action
            self._window.addAction(action)
            self._give_keys(command)

    def action(self, name: str) -> QAction:
        """Return the action of a command, for menus and buttons."""
        return self._actions[name]

    def menu(self) -> list[QAction | None]:
        """Return the actions of the window's menu; None is a separator."""
        found = sorted((one.menu, one.name) for one in self._commands.values() if one.menu)
        groups = groupby(found, key=lambda place: place[0] // 100)
        parts = [[self._actions[name] for _, name in group] for _, group in groups]
        return [action for part in parts for action in (None, *part)][1:]

    def keys(self, name: str) -> str:
        """Return the shortcuts of a command, such as `Ctrl+N; F2`; empty if none."""
        default = "; ".join(self._commands[name].keys)
        return self._chosen.get(name, default)

    def shown_keys(self, name: str) -> str:
        """Return the first shortcut in the platform's notation."""
        sequences = self._actions[name].shortcuts()
        return sequences[0].toString(QKeySequence.SequenceFormat.NativeText) if sequences else ""

    def choose_keys(self, name: str, keys: str) -> None:
        """Set the shortcuts of a command; remove them from other commands."""
        wanted, chosen = set(_sequences(keys)), {name: keys}
        for other in self.holders(name, keys):
            left = [one for one in _sequences(self.keys(other.name)) if one not in wanted]
            chosen[other.name] = QKeySequence.listToString(left, _PORTABLE)
        others = {one: kept for one, kept in self._chosen.items() if one not in chosen}
        self.keys_chosen.emit(
            others | {one: k for one, k in chosen.items() if self._differs(one, k)}
        )

    def holders(self, name: str, keys: str) -> tuple[AppCommand, ...]:
        """Return the other commands that have one of these shortcuts."""
        wanted = set(_sequences(keys))
        return tuple(
            one
            for one in self._commands.values()
            if one.name != name and wanted & set(_sequences(self.keys(one.name)))
        )

    def reset(self, name: str) -> None:
        """Reset the shortcuts of a command."""
        self.choose_keys(name, "; ".join(self._commands[name].keys))

    def use_keys(self, chosen: Mapping[str, str]) -> None:
        """Apply shortcuts by command name; other commands get their defaults.

        Shortcuts of unknown commands are kept.
        """
        self._chosen = dict(chosen)
        for command in self._commands.values():
            self._give_keys(command)
        self.keys_changed.emit()

    def reset_all(self) -> None:
        """Reset all shortcuts."""
        unknown = {name: keys for name, keys in self._chosen.items() if name not in self._commands}
        self.keys_chosen.emit(unknown)

    def _differs(self, name: str, keys: str) -> bool:
        return _sequences(keys) != _sequences("; ".join(self._commands[name].keys))

    def _give_keys(self, command: AppCommand) -> None:
        self._actions[command.name].setShortcuts(_sequences(self.keys(command.name)))


def _sequences(keys: str) -> list[QKeySequence]:
    found = QKeySequence.listFromString(keys, _PORTABLE)
    return [one for one in found if not one.isEmpty()]
