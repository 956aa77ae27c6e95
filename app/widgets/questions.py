"""Short dialogs: a confirmation, and a question for a text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog, QMessageBox, QWidget

_LINE_CHARS = 60  # that a field for a line shows


def confirms(parent: QWidget, question: str, more: str = "") -> bool:
    """Ask for a confirmation; Enter and closing mean No.

    Args:
        parent: Window above which the dialog opens.
        question: The question.
        more: Further explanation.

    Returns:
        Whether the user said Yes.
    """
    no, yes = QMessageBox.StandardButton.No, QMessageBox.StandardButton.Yes
    box = QMessageBox(parent)  # without an icon: the standard ones are of no theme
    box.setWindowTitle(question)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(question)
    box.setInformativeText(more)
    box.setStandardButtons(yes | no)
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    return box.exec() == yes


def ask_for_text(parent: QWidget, title: str, label: str, text: str = "") -> str:
    """Ask for a line of text.

    Args:
        parent: Window above which the dialog opens.
        title: Title of the dialog.
        label: Label of the field.
        text: Initial text.

    Returns:
        The stripped text; empty if the user cancels.
    """
    dialog = QInputDialog(parent)
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setTextValue(text)
    dialog.resize(dialog.fontMetrics().averageCharWidth() * _LINE_CHARS, dialog.height())
    agreed = dialog.exec() == QInputDialog.DialogCode.Accepted
    return dialog.textValue().strip() if agreed else ""
