"""Proposal of an installed smaller model as draft model for a model without heads."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.widgets.explain import explain
from medusa_core.api import Installed

# On a processor a token of the draft model costs its share of the large model's, and about every
# second one is right: what is a third of the size was slower in all our measurements.
_PAYS_ON_CPU = 10.0


class DraftProposal(QWidget):
    """A line of text with a button that accepts the proposal.

    Signals:
        accepted: The user accepts the proposed draft model, an `Installed`.
    """

    accepted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._proposed: Installed | None = None
        self.label = QLabel()
        self.label.setWordWrap(True)
        self.button = QPushButton(self.tr("Use as draft model"))
        self.button.clicked.connect(lambda: self.accepted.emit(self._proposed))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.label)
        column.addWidget(self.button)
        self.hide()

    def show_proposal(self, item: Installed, proposed: Installed | None, has_card: bool) -> None:
        """Propose a draft model, and say what speed-up to expect.

        Args:
            item: The target model.
            proposed: The draft model; None hides the proposal.
            has_card: Whether models run on a GPU.
        """
        self._proposed = proposed
        self.setVisible(proposed is not None)
        if proposed is None:
            return
        ratio = item.nbytes / max(1, proposed.nbytes)
        words = (
            self.tr("{0} has the same tokens: as draft model it may make this model faster.")
            if has_card or ratio >= _PAYS_ON_CPU
            else self.tr(
                "{0} has the same tokens and could draft, but without a graphics card that is "
                "probably no faster: it is too large for it."
            )
        )
        self.label.setText(words.format(proposed.name))
        explain(self.button, self.tr("Load this model with {0}.").format(proposed.name))
