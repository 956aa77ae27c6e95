"""Base of cards that offer a model's download."""

from __future__ import annotations

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout

from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.plain_label import plain_label

_STEPS = 1000


class DownloadCard(QFrame):
    """Card with a text, the progress of a download, and buttons.

    Attributes:
        label: Offer, state of the download, or error.
        bar: Progress of the download; its accessible name is set by the card.
    """

    def __init__(self, name: str, appearance: Appearance) -> None:
        """Lay out the card, which has no buttons yet.

        Args:
            name: Accessible name of the card.
            appearance: Sizes of the theme.
        """
        super().__init__()
        self.setObjectName("hint")
        self.setAccessibleName(name)
        self.label = plain_label()
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self._buttons: list[QPushButton] = []
        self._row = QHBoxLayout()
        self._row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(*[appearance.scale.px(0.9)] * 4)
        column.setSpacing(appearance.scale.px(0.5))
        column.addWidget(self.label)
        column.addWidget(self.bar)
        column.addLayout(self._row)

    def _add_button(self, text: str, clicked: SignalInstance) -> QPushButton:
        """Add a button on the right of the others, which emits a signal."""
        button = QPushButton(text)
        button.clicked.connect(clicked)
        self._row.insertWidget(len(self._buttons), button)
        self._buttons.append(button)
        return button

    def _show(self, words: str, *buttons: QPushButton) -> None:
        """Show a text and some of the buttons, without progress."""
        self.label.setText(words)
        self.bar.hide()
        for button in self._buttons:
            button.setVisible(button in buttons)
        announce(self, words)

    def _show_progress(self, words: str, share: float, *buttons: QPushButton) -> None:
        """Show the progress of the download, and announce its start."""
        if self.bar.isHidden():
            self._show(words, *buttons)
            self.bar.show()
        else:
            self.label.setText(words)
        self.bar.setValue(round(_STEPS * share))
