"""Settings page of shortcuts."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QKeySequenceEdit,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.widgets.flow_layout import FlowLayout
from app.widgets.live_label import LiveLabel
from app.widgets.matching import rank
from app.widgets.table import RowTable
from app.window.commands.command import AppCommand
from app.window.commands.table import CommandTable


class ShortcutsPage(QWidget):
    """Table of all commands and their shortcuts.

    Attributes:
        table: One row per command.
        edit: Records a new shortcut for the selected command.
        note: Names other commands with the same shortcut.
        shown: Commands of the rows.
    """

    def __init__(self, commands: CommandTable) -> None:
        super().__init__()
        self._commands = commands
        self.shown: tuple[AppCommand, ...] = ()
        self.find_edit = QLineEdit()
        self.find_edit.setPlaceholderText(self.tr("Find a command"))
        self.find_edit.setAccessibleName(self.tr("Find a command"))
        self.table = RowTable(self.tr("Shortcuts"), (self.tr("Command"), self.tr("Keys")))
        self.edit = QKeySequenceEdit()
        self.edit.setMaximumSequenceLength(1)
        self.edit.setAccessibleName(self.tr("New keys"))
        for line in self.edit.findChildren(QLineEdit):  # what has the focus in it
            line.setAccessibleName(self.tr("New keys"))
        self.note = LiveLabel()
        self.take_button = QPushButton(self.tr("Use these keys"))
        self.none_button = QPushButton(self.tr("No keys"))
        self.reset_button = QPushButton(self.tr("Usual keys"))
        self.reset_all_button = QPushButton(self.tr("Reset all"))
        self._build()
        self._connect()
        self._show()

    @property
    def chosen(self) -> AppCommand | None:
        """The selected command."""
        row = self.table.currentRow()
        return self.shown[row] if 0 <= row < len(self.shown) else None

    def _build(self) -> None:
        row = FlowLayout(self.fontMetrics().height() // 2)
        for button in (
            self.take_button,
            self.none_button,
            self.reset_button,
            self.reset_all_button,
        ):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.addWidget(self.find_edit)
        column.addWidget(self.table, 1)
        column.addWidget(self.edit)
        column.addLayout(row)
        column.addWidget(self.note)

    def _connect(self) -> None:
        self.find_edit.textChanged.connect(lambda _words: self._show())
        self.table.currentCellChanged.connect(lambda *_: self.edit.clear())
        self.edit.keySequenceChanged.connect(lambda _keys: self._show_holders())
        self.take_button.clicked.connect(lambda: self._choose(self.edit.keySequence()))
        self.none_button.clicked.connect(lambda: self._choose(QKeySequence()))
        self.reset_button.clicked.connect(self._reset)
        self.reset_all_button.clicked.connect(self._commands.reset_all)
        self._commands.keys_changed.connect(self._show)

    def _show(self) -> None:
        words = self.find_edit.text()
        self.shown = tuple(
            one for one in self._commands.commands if rank(words, one.label) is not None
        )
        native = QKeySequence.SequenceFormat.NativeText
        self.table.show_rows(
            [
                (
                    one.label,
                    QKeySequence.listToString(self._commands.action(one.name).shortcuts(), native),
                )
                for one in self.shown
            ]
        )
        if self.shown and self.table.currentRow() < 0:
            self.table.selectRow(0)

    def _show_holders(self) -> None:
        keys, command = self.edit.keySequence(), self.chosen
        self.take_button.setEnabled(not keys.isEmpty())
        if command is None or keys.isEmpty():
            self.note.clear()
            return
        holders = self._commands.holders(command.name, keys.toString())
        names = ", ".join(one.label for one in holders)
        self.note.setText(
            self.tr("{keys} belongs to “{names}”, which would lose it.").format(
                keys=keys.toString(QKeySequence.SequenceFormat.NativeText), names=names
            )
            if holders
            else self.tr("These keys are free.")
        )

    def _choose(self, keys: QKeySequence) -> None:
        if (command := self.chosen) is not None:
            self._commands.choose_keys(command.name, keys.toString())
            self.edit.clear()

    def _reset(self) -> None:
        if (command := self.chosen) is not None:
            self._commands.reset(command.name)
