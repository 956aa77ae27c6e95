"""The row under an answer: its figures and what can be done with it."""

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
        regenerate_button: Asks for another answer.
        continue_button: Goes on with an answer that was cut; only under the last one.
        branch_button: Goes back to this answer; not under the last one.
        versions: Moves between the answers to one prompt.

    Signals:
        copy_requested: The answer is to go to the clipboard.
        regenerate_requested: Another answer is wanted.
        continue_requested: The answer is to be gone on with.
        branch_requested: The conversation is to go on from here.
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
        """Show what can be done here."""
        self.regenerate_button.setVisible(regenerates)
        self.continue_button.setVisible(continues)
        self.branch_button.setVisible(branches)

    @property
    def _buttons(self) -> dict[str, QToolButton]:
        """By their icons."""
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
