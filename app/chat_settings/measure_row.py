"""Row with the button *Measure again*, and a note if measurements are missing."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.widgets.explain import explain


class MeasureRow(QWidget):
    """Button that requests new measurements, after a note if some are missing.

    Signals:
        requested: The user wants the model to be measured again.
    """

    requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.lack_label = QLabel(self.tr("Not measured fully."))
        self.lack_label.setObjectName("note")
        self.button = QPushButton(self.tr("Measure again"))
        explain(
            self.button,
            self.tr(
                "Forgets what was measured of this model on this computer, and measures it while "
                "nobody asks. Do it when the computer isn't busy."
            ),
        )
        self.button.clicked.connect(self.requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.lack_label)
        row.addWidget(self.button)
        row.addStretch(1)

    def show_speeds(self, are_known: bool) -> None:
        """Show the note unless the drafters' speeds are known."""
        self.lack_label.setVisible(not are_known)
