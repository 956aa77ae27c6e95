"""Asks before something that can't be taken back."""

from __future__ import annotations

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
    answer = QMessageBox.question(parent, question, f"{question}\n\n{more}".strip(), yes | no, no)
    return answer is yes
