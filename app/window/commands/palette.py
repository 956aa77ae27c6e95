"""The command palette: searches commands, models and conversations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QDialog,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from app.state.library import LibraryState
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.matching import Entry, Provider, matching
from app.widgets.table import RowTable
from app.window.commands.table import CommandTable

NAME = "palette"  # of the command that opens it
_MOST_SHOWN = 60
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class Palette(QDialog):
    """Searches the entries of all providers.

    Attributes:
        edit: Search field.
        list: Search results.
        entries: The rows, in order.
    """

    def __init__(
        self, appearance: Appearance, parent: QWidget, providers: Sequence[Provider]
    ) -> None:
        """Create the palette.

        Args:
            appearance: Theme and sizes.
            parent: Parent window.
            providers: Functions that return entries, in display order.
        """
        # Not a popup, which screen readers are never told of.
        super().__init__(parent, Qt.WindowType.Dialog | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("palette")
        self._appearance = appearance
        self._providers = providers
        self.entries: tuple[Entry, ...] = ()
        self.edit = QLineEdit()
        self.edit.setAccessibleName(self.tr("Find a command"))
        self.edit.setPlaceholderText(self.tr("Type a command or a name"))
        self.list = RowTable(self.tr("What was found"), (self.tr("Command"), self.tr("Keys")))
        self.list.horizontalHeader().hide()
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._nothing = QLabel(self.tr("No match."))
        self._nothing.setObjectName("notice")
        column = QVBoxLayout(self)
        column.addWidget(self.edit)
        column.addWidget(self.list, 1)
        column.addWidget(self._nothing)
        self.edit.installEventFilter(self)
        self.edit.textChanged.connect(self._search)
        self.edit.returnPressed.connect(self._run)
        self.list.cellClicked.connect(lambda *_: self._run())
        self.list.itemSelectionChanged.connect(self._announce_row)

    def open_over(self, window: QWidget) -> None:
        """Show the palette at the top centre of a window."""
        scale = self._appearance.scale
        width = min(scale.px(40), window.width() - scale.px(4))
        self.resize(width, min(scale.px(28), window.height() - scale.px(6)))
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - width) // 2, corner.y() + scale.px(4))
        self.edit.clear()
        self._search("")
        self.show()
        self.activateWindow()
        self.edit.setFocus()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowDeactivate:
            self.hide()  # whoever clicks beside it wants something else
        return super().event(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        moves = isinstance(event, QKeyEvent) and event.key() in _MOVES
        if moves and event.type() == QEvent.Type.KeyPress:
            self.list.event(event)
            return True
        return super().eventFilter(watched, event)

    def _search(self, words: str) -> None:
        found = [entry for provider in self._providers for entry in provider(words.strip())]
        self.entries = tuple(found[:_MOST_SHOWN])
        self.list.blockSignals(True)
        self.list.show_rows([(one.label, _behind(one)) for one in self.entries])
        self.list.selectRow(0)
        self.list.blockSignals(False)
        self._nothing.setVisible(not self.entries)
        if not self.entries:
            announce(self.edit, self._nothing.text())
        elif words:
            self._announce_row()

    def _announce_row(self) -> None:
        """Announce the current row to screen readers, as the list never has the focus."""
        row = self.list.currentRow()
        if self.isVisible() and 0 <= row < len(self.entries):
            entry = self.entries[row]
            place = self.tr("{0} of {1}").format(row + 1, len(self.entries))
            announce(self.edit, ", ".join(filter(None, (entry.label, _behind(entry), place))))

    def _run(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self.entries):
            self.hide()
            self.entries[row].run()


def command_entries(table: CommandTable, words: str) -> Sequence[Entry]:
    """Return entries for all commands except the palette's own."""
    entries = [
        Entry(one.label, table.action(one.name).trigger, table.shown_keys(one.name))
        for one in table.commands
        if one.name != NAME
    ]
    return matching(words, entries)


def model_entries(models: LibraryState, words: str) -> Sequence[Entry]:
    """Return entries for the models that can be loaded."""
    kind = QCoreApplication.translate("Palette", "Model")
    entries = [
        Entry(
            choice.name if choice.remote is None else f"{choice.name} · {choice.note}",
            partial(models.loaded_model.load, choice),
            kind=kind,
        )
        for choice in models.choices
    ]
    return matching(words, entries)


def _behind(entry: Entry) -> str:
    return "   ".join(part for part in (entry.kind, entry.detail) if part)
