"""What this application is, and whose work is in it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QVBoxLayout, QWidget

from app.theme.appearance import Appearance

WHAT = (
    "Medusa Chat answers on this computer alone; nothing is sent anywhere. Extra heads on the "
    "model draft a tree of next tokens, one pass of the model verifies them all, and in exact mode "
    "the text is what the model alone would have written."
)
NOTICE_TITLE = "Built with Llama"
NOTICE = (
    "The small demo model is called Llama-Pebble because part of the text that it learned from was "
    "written by Llama 3.1. It holds no weights of Meta's and is not made by Meta."
)


class AboutDialog(QDialog):
    """Says what the application is, with the notices that its parts ask for.

    Attributes:
        labels: Its paragraphs, top to bottom.
    """

    def __init__(
        self, resources: Path, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("About Medusa Chat")
        self.labels = (
            _label("Medusa Chat", "heroTitle"),
            _label(WHAT),
            _label(NOTICE_TITLE, "modelName"),
            _label(NOTICE),
            _label(f"Sources and licences lie beside the files, in {resources}.", "notice"),
        )
        scale = appearance.scale
        column = QVBoxLayout(self)
        column.setContentsMargins(scale.px(2), scale.px(1.6), scale.px(2), scale.px(1.4))
        column.setSpacing(scale.px(0.8))
        for label in self.labels:
            column.addWidget(label)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
        self.setFixedWidth(scale.px(34))


def _label(text: str, name: str = "") -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return label
