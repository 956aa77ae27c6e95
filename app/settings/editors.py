"""Editors of settings, created from their declarations."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFontComboBox,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)

from app.settings.declaration import Declaration
from app.settings.kinds import ChoiceKind, FolderKind, FontKind, NumberKind, ToggleKind
from app.theme.fonts import TEXT_FAMILY
from app.widgets.file_dialogs import choose_folder
from app.widgets.number_edit import NumberEdit

Choose = Callable[[Any], None]


def value_text(text: str) -> str:
    """Translate a text of a declaration."""
    return QCoreApplication.translate("Settings", text) if text else ""


class Editor:
    """Editor of a setting.

    Attributes:
        widget: The editor's widget.
        show: Shows a stored value.
    """

    def __init__(self, widget: QWidget, show: Choose) -> None:
        self.widget = widget
        self.show = show


def editor_of(declared: Declaration, choose: Choose) -> Editor:
    """Create the editor of a setting.

    Args:
        declared: The setting.
        choose: Called with each value that the user sets.
    """
    editor = _editor(declared.kind, choose)
    editor.widget.setAccessibleName(value_text(declared.label))
    editor.widget.setAccessibleDescription(value_text(declared.sentence))
    editor.widget.setToolTip(value_text(declared.sentence))
    return editor


@singledispatch
def _editor(kind: object, _choose: Choose) -> Editor:
    raise NotImplementedError(f"no widget for {kind!r}")


@_editor.register
def _toggle(_kind: ToggleKind, choose: Choose) -> Editor:
    box = QCheckBox()
    box.toggled.connect(choose)
    return Editor(box, box.setChecked)


@_editor.register
def _choice(kind: ChoiceKind, choose: Choose) -> Editor:
    box = QComboBox()
    for word, label in kind.options:
        box.addItem(value_text(label), word)
    box.activated.connect(lambda _row: choose(box.currentData()))
    return Editor(box, lambda value: box.setCurrentIndex(box.findData(value)))


@_editor.register
def _number(kind: NumberKind, choose: Choose) -> Editor:
    box = NumberEdit()
    box.setRange(kind.least * kind.scale, kind.most * kind.scale)
    box.setSingleStep(kind.step * kind.scale)
    box.setDecimals(0)
    box.setSuffix(kind.suffix)
    box.setSpecialValueText(value_text(kind.minimum_text))
    box.chosen.connect(lambda value: choose(round(value / kind.scale, 4)))
    return Editor(box, lambda value: box.show_value(value * kind.scale))


@_editor.register
def _font(_kind: FontKind, choose: Choose) -> Editor:
    box = QFontComboBox()
    box.setEditable(False)
    box.textActivated.connect(lambda family: choose("" if family == TEXT_FAMILY else family))
    return Editor(box, lambda value: box.setCurrentFont(QFont(value or TEXT_FAMILY)))


@_editor.register
def _folder(_kind: FolderKind, choose: Choose) -> Editor:
    return FolderEditor(choose).editor


class FolderEditor(QWidget):
    """Line edit for a folder with a Browse button.

    Attributes:
        line: Path of the folder.
        editor: This, as an editor.
    """

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self._choose = choose
        self.line = QLineEdit()
        self.line.setReadOnly(True)
        self.line.setAccessibleName(self.tr("Folder"))
        self.line.setPlaceholderText(self.tr("The default folder"))
        browse, default = QPushButton(self.tr("Choose…")), QPushButton(self.tr("Default"))
        browse.clicked.connect(self._browse)
        default.clicked.connect(lambda: self._set_folder(""))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.line, 1)
        row.addWidget(browse)
        row.addWidget(default)
        self.editor = Editor(self, self.line.setText)

    def _browse(self) -> None:
        if folder := choose_folder(self, self.tr("Choose a folder")):
            self._set_folder(str(folder))

    def _set_folder(self, folder: str) -> None:
        self.line.setText(folder)
        self._choose(folder)
