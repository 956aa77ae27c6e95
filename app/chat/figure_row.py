"""The row under an answer: its figures and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from app.chat.figures import NUM_FIGURES, Figure
from app.flow_layout import FlowLayout
from app.theme.appearance import Appearance
from app.widgets.explain import explain


class FigureRow(QWidget):
    """Figures, Copy and Regenerate.

    Attributes:
        copy_button: Copies the answer.
        regenerate_button: Asks for another answer; only under the last one.

    Signals:
        copy_requested: The answer is to go to the clipboard.
        regenerate_requested: Another answer is wanted.
    """

    copy_requested = Signal()
    regenerate_requested = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self._flow = FlowLayout(appearance.scale.px(0.3), self)
        self._labels = tuple(self._label() for _ in range(NUM_FIGURES))
        self.copy_button = self._button("Copy", "Copy the answer as Markdown")
        self.copy_button.clicked.connect(self.copy_requested)
        self.regenerate_button = self._button(
            "Regenerate",
            "Answer again (Ctrl+R). The rule Sample takes a new seed; Greedy gives the same "
            "text with the drafter that is chosen now.",
        )
        self.regenerate_button.clicked.connect(self.regenerate_requested)
        for button in (self.copy_button, self.regenerate_button):
            self._flow.addWidget(button)
        self.restyle()

    def show_figures(self, figures: tuple[Figure, ...]) -> None:
        """Show these figures, each with its definition as tooltip."""
        for index, (label, figure) in enumerate(zip(self._labels, figures, strict=False)):
            label.setText(figure.text if index == 0 else f"· {figure.text}")
            label.setAccessibleName(f"{figure.name}: {figure.text}")
            explain(label, f"{figure.name}: {figure.meaning}")
        for index, label in enumerate(self._labels):
            label.setVisible(index < len(figures))

    def figure_texts(self) -> tuple[str, ...]:
        """What is shown, without the dots between."""
        shown = (label for label in self._labels if not label.isHidden())
        return tuple(label.text().removeprefix("· ") for label in shown)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        muted = self._appearance.theme.muted
        side = self._appearance.scale.px(1.05)
        self.copy_button.setIcon(self._appearance.icon("copy", muted, 1.05))
        self.regenerate_button.setIcon(self._appearance.icon("regenerate", muted, 1.05))
        for button in (self.copy_button, self.regenerate_button):
            button.setIconSize(QSize(side, side))
        self._flow.invalidate()

    def _label(self) -> QLabel:
        label = QLabel(self)
        label.setProperty("class", "figure")
        self._flow.addWidget(label)
        return label

    def _button(self, name: str, tooltip: str) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("class", "action")
        button.setAccessibleName(name)
        button.setToolTip(tooltip)
        return button
