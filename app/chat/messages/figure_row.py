"""Row under an answer: figures and action buttons."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from app.chat.messages.copy_button import CopyButton
from app.chat.messages.figures import (
    NUM_FIGURES,
    Figure,
)
from app.chat.messages.version_row import VersionRow
from app.theme.appearance import Appearance
from app.widgets.explain import explain
from app.widgets.flow_layout import FlowLayout


class FigureRow(QWidget):
    """Figures, versions, Copy, Regenerate, Continue and Branch.

    Attributes:
        copy_button: Copies the answer.
        regenerate_button: Regenerates the answer.
        continue_button: Continues a cut answer; only under the last one.
        branch_button: Continues the conversation from this answer; not under the last one.
        versions: Selects among the answers to a prompt.

    Signals:
        copy_requested: The user wants to copy the answer.
        regenerate_requested: The user wants to regenerate the answer.
        continue_requested: The user wants to continue the answer.
        branch_requested: The user wants to continue the conversation from here.
    """

    copy_requested = Signal()
    regenerate_requested = Signal()
    continue_requested = Signal()
    branch_requested = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self._flow = FlowLayout(appearance.scale.px(0.3), self)
        self._labels = tuple(self._label() for _ in range(NUM_FIGURES))
        self.copy_button = CopyButton(self.tr("Copy the answer as Markdown"), appearance)
        self.copy_button.clicked.connect(self.copy_requested)
        self.regenerate_button = self._button(
            self.tr("Regenerate"),
            self.tr(
                "Answer again (Ctrl+R). A rule that draws takes a new seed; others give the same "
                "text with the drafter that is chosen now."
            ),
        )
        self.regenerate_button.clicked.connect(self.regenerate_requested)
        self.continue_button = self._button(self.tr("Continue"), self.tr("Go on with this answer"))
        self.continue_button.clicked.connect(self.continue_requested)
        self.branch_button = self._button(
            self.tr("Branch"),
            self.tr("Go on from here; what followed stays, and ‹ › leads back to it"),
        )
        self.branch_button.clicked.connect(self.branch_requested)
        self.versions = VersionRow(self.tr("answer"), appearance)
        for widget in (self.versions, self.copy_button, *self._buttons.values()):
            self._flow.addWidget(widget)
        self.offer(regenerates=False, continues=False, branches=False)
        self.restyle()

    def offer(self, *, regenerates: bool, continues: bool, branches: bool) -> None:
        """Show the buttons of available actions."""
        self.regenerate_button.setVisible(regenerates)
        self.continue_button.setVisible(continues)
        self.branch_button.setVisible(branches)

    @property
    def _buttons(self) -> dict[str, QToolButton]:
        """Buttons by their icons."""
        return {
            "regenerate": self.regenerate_button,
            "continue": self.continue_button,
            "branch": self.branch_button,
        }

    def show_figures(self, figures: tuple[Figure, ...]) -> None:
        """Show these figures, each with its definition as tooltip."""
        for index, (label, figure) in enumerate(zip(self._labels, figures, strict=False)):
            label.setText(figure.text if index == 0 else f"· {figure.text}")
            label.setAccessibleName(f"{figure.name}: {figure.text}")
            explain(label, f"{figure.name}: {figure.meaning}")
        for index, label in enumerate(self._labels):
            label.setVisible(index < len(figures))

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        muted = self._appearance.theme.muted
        side = self._appearance.scale.px(1.05)
        for icon, button in self._buttons.items():
            button.setIcon(self._appearance.icon(icon, muted, 1.05))
            button.setIconSize(QSize(side, side))
        self.copy_button.restyle()
        self.versions.restyle()
        self._flow.invalidate()

    def _label(self) -> QLabel:
        """Add a label for one figure to the row."""
        label = QLabel(self)
        label.setProperty("class", "figure")
        self._flow.addWidget(label)
        return label

    def _button(self, name: str, tooltip: str) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("class", "action")
        button.setAccessibleName(name)
        explain(button, tooltip)
        return button
