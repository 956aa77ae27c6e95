"""Welcome dialog for new users; shown once, and from the palette."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance


class WelcomeDialog(QDialog):
    """Dialog with pages that can be skipped.

    Attributes:
        steps: The pages.
        next_button: Goes to the next page, or closes the last one.
        back_button: Goes to the previous page.
        skip_button: Closes the dialog.
    """

    def __init__(
        self, steps: Sequence[QWidget], appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("welcome")
        scale = appearance.scale
        self.steps = QStackedWidget()
        for step in steps:
            self.steps.addWidget(step)
        self.next_button = QPushButton()
        self.next_button.setObjectName("primaryButton")
        self.next_button.setDefault(True)
        self.back_button = QPushButton(self.tr("Back"))
        self.skip_button = QPushButton(self.tr("Skip"))
        self._place = QLabel()
        self._place.setObjectName("notice")
        buttons = QHBoxLayout()
        buttons.addWidget(self.skip_button)
        buttons.addStretch(1)
        buttons.addWidget(self._place)
        buttons.addStretch(1)
        buttons.addWidget(self.back_button)
        buttons.addWidget(self.next_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(scale.px(2), scale.px(1.6), scale.px(2), scale.px(1.2))
        column.addWidget(self.steps, 1)
        column.addLayout(buttons)
        self.next_button.clicked.connect(lambda: self._go(1))
        self.back_button.clicked.connect(lambda: self._go(-1))
        self.skip_button.clicked.connect(self.reject)
        self.resize(scale.px(46), scale.px(32))
        for button in (self.skip_button, self.back_button):
            button.setAutoDefault(False)  # else Enter takes whichever has the focus
        self._show()

    def _go(self, steps: int) -> None:
        place = self.steps.currentIndex() + steps
        if place >= self.steps.count():
            self.accept()
            return
        self.steps.setCurrentIndex(place)
        self._show()

    def _show(self) -> None:
        place, number = self.steps.currentIndex() + 1, self.steps.count()
        is_last = place == number
        self.back_button.setEnabled(place > 1)
        self.skip_button.setVisible(not is_last)
        self.next_button.setText(self.tr("Start chatting") if is_last else self.tr("Next"))
        self.next_button.setFocus()
        self._place.setText(self.tr("Step {0} of {1}").format(place, number))
