"""Asks before something that can't be taken back."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


def confirms(parent: QWidget, question: str, more: str = "") -> bool:
    """Ask; No is what Enter says, and what closing says.

    Args:
        parent: Over which it is asked.
        question: In a sentence.
        more: What to know before.

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
