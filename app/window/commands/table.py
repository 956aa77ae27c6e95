"""The table of commands: each is an action of the window, under keys that the user may change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.window.commands.command import (
    AppCommand,
    Section,
)

_PORTABLE = QKeySequence.SequenceFormat.PortableText


class CommandTable(QObject):
    """Commands by their names.

    Signals:
        keys_changed: A command has other keys; `chosen` says which differ from the default ones.
    """

    keys_changed = Signal()

    def __init__(self, window: QWidget, chosen: Mapping[str, str]) -> None:
        """Begin without commands.

        Args:
            window: Hears the keys.
            chosen: Keys of commands that aren't the default ones, by name.
        """
        super().__init__(window)
        self._window = window
        self._chosen = dict(chosen)
        self._commands: dict[str, AppCommand] = {}
        self._actions: dict[str, QAction] = {}

    @property
    def commands(self) -> tuple[AppCommand, ...]:
        """All commands, in the order they were added."""
        return tuple(self._commands.values())

    @property
    def chosen(self) -> Mapping[str, str]:
        """Keys that aren't the usual ones, those of commands that aren't here included."""
        return dict(self._chosen)

    def add(self, commands: Iterable[AppCommand]) -> None:
        """Take commands into the table; a name that is there already is an error."""
        for command in commands:
            assert command.name not in self._commands, command.name
            self._commands[command.name] = command
            action = QAction(command.label, self._window)
            action.triggered.connect(lambda _checked=False, run=command.run: run())
            self._actions[command.name] = action
            self._window.addAction(action)
            self._give_keys(command)

    def action(self, name: str) -> QAction:
        """The action of a command, for menus and buttons."""
        return self._actions[name]

    def actions(self, section: Section) -> tuple[QAction, ...]:
        """The actions of a section, in order."""
        return tuple(
            self._actions[name] for name, one in self._commands.items() if one.section is section
        )

    def keys(self, name: str) -> str:
        """The keys of a command, as `Ctrl+N; F2`; empty where it has none."""
        default = "; ".join(self._commands[name].keys)
        return self._chosen.get(name, default)

    def shown_keys(self, name: str) -> str:
        """The first of its keys, as this system writes them."""
        sequences = self._actions[name].shortcuts()
        return sequences[0].toString(QKeySequence.SequenceFormat.NativeText) if sequences else ""

    def choose_keys(self, name: str, keys: str) -> None:
        """Give a command other keys; whoever had one of them loses it."""
        wanted = set(_sequences(keys))
        for other in self.holders(name, keys):
            left = [one for one in _sequences(self.keys(other.name)) if one not in wanted]
            self._set(other.name, QKeySequence.listToString(left, _PORTABLE))
        self._set(name, keys)
        self.keys_changed.emit()

    def holders(self, name: str, keys: str) -> tuple[AppCommand, ...]:
        """The other commands that have one of these keys."""
        wanted = set(_sequences(keys))
        return tuple(
            one
            for one in self._commands.values()
            if one.name != name and wanted & set(_sequences(self.keys(one.name)))
        )

    def reset(self, name: str) -> None:
        """Give a command its usual keys again."""
        self.choose_keys(name, "; ".join(self._commands[name].keys))

    def use_keys(self, chosen: Mapping[str, str]) -> None:
        """Take the keys of another computer, by the names of commands; others get usual ones."""
        if self._chosen == dict(chosen):
            return
        self._chosen = dict(chosen)
        for command in self._commands.values():
            self._give_keys(command)
        self.keys_changed.emit()

    def reset_all(self) -> None:
        """Give all commands their usual keys again."""
        for command in self._commands.values():
            self._chosen.pop(command.name, None)
            self._give_keys(command)
        self.keys_changed.emit()

    def _set(self, name: str, keys: str) -> None:
        command = self._commands[name]
        if _sequences(keys) == _sequences("; ".join(command.keys)):
            self._chosen.pop(name, None)
        else:
            self._chosen[name] = keys
        self._give_keys(command)

    def _give_keys(self, command: AppCommand) -> None:
        self._actions[command.name].setShortcuts(_sequences(self.keys(command.name)))


def _sequences(keys: str) -> list[QKeySequence]:
    found = QKeySequence.listFromString(keys, _PORTABLE)
    return [one for one in found if not one.isEmpty()]
