"""The strip at the bottom: what each step gave, and which heads were right."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from app.chat.acceptance import Rate
from app.chat.strip_painting import HeadBars, StepBars
from app.chat.tally import StepTally
from app.markdown.formats import Marking
from app.markdown.legend import Mark
from app.theme.appearance import Appearance
from medusa_core.messages import StepDone

MARKING_NAMES = {
    Marking.OFF: "No marks",
    Marking.ACCEPTED: "Mark accepted",
    Marking.HEADS: "Mark by source",
}
GREY_NOTE = "grey: the model's own tokens"


class StepsStrip(QFrame):
    """Live figures of the answer being written, else of the last one.

    Attributes:
        marks_box: How accepted tokens are marked in the text.

    Signals:
        marking_changed: They are to be marked like this (a `Marking`).
    """

    marking_changed = Signal(object)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("strip")
        self.setAccessibleName("Steps")
        self._appearance = appearance
        self._tally = StepTally(appearance.legend)
        self._num_heads = 0
        self._bars = StepBars(appearance)
        self._heads = HeadBars(appearance)
        self._mean = QLabel()
        self.marks_box = QComboBox()
        self.marks_box.setAccessibleName("Marks in the text")
        for marking, name in MARKING_NAMES.items():
            self.marks_box.addItem(name, marking)
        self.marks_box.setCurrentIndex(self.marks_box.count() - 1)
        self.marks_box.setToolTip(
            "Accepted tokens have a tint and an underline: one for all, or that of the source that "
            "guessed them. The model chose all others itself. The text is the same either way."
        )
        self.marks_box.currentIndexChanged.connect(
            lambda index: self.marking_changed.emit(Marking(self.marks_box.itemData(index)))
        )
        self._row = QHBoxLayout(self)
        self._build()
        self.restyle()
        self._show()

    @property
    def tally(self) -> StepTally:
        """The sums that are shown."""
        return self._tally

    def set_num_heads(self, num_heads: int) -> None:
        """Show this many heads, even while none has been tried."""
        self._num_heads = num_heads
        self._show()

    def choose_marking(self, marking: Marking) -> None:
        """Show and tell that tokens are marked like this."""
        self.marks_box.setCurrentIndex(self.marks_box.findData(marking))

    def begin(self) -> None:
        """Forget the last answer."""
        self._tally = StepTally(self._appearance.legend)
        self._show()

    def add(self, steps: tuple[StepDone, ...]) -> None:
        """Count and draw these steps."""
        for step in steps:
            self._tally.add(step)
        self._show()

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale = self._appearance.scale
        self._row.setContentsMargins(scale.px(1.4), scale.px(0.6), scale.px(1.4), scale.px(0.7))
        self._row.setSpacing(scale.px(1.8))
        self._bars.setFixedHeight(scale.px(2.6))
        self._heads.setFixedHeight(scale.px(2.6))
        self._heads.updateGeometry()
        self._bars.update()
        self._heads.update()

    def _build(self) -> None:
        row = self._row
        title = _label("Tokens per step", "stripTitle")
        self._mean.setProperty("class", "stripText")
        self._mean.setToolTip(
            "Mean acceptance length τ: tokens from decode steps ÷ decode steps, the token that "
            "the model adds itself in each step included. Plain decoding has 1."
        )
        row.addLayout(_titled(title, self._mean, self._bars), 1)
        title = _label("Guesses accepted, by source", "stripTitle")
        row.addLayout(_titled(title, self.marks_box, self._heads))

    def _heads_of_model(self) -> list[Mark]:
        numbered = [info.name for info in self._appearance.legend.sources if info.is_numbered]
        return [Mark(name, head + 1) for name in numbered[:1] for head in range(self._num_heads)]

    def _show(self) -> None:
        tally = self._tally
        self._mean.setText(
            f"{tally.mean_acceptance_length:.2f} mean · {tally.num_steps:,} steps · {GREY_NOTE}"
            if tally.num_steps
            else "nothing decoded yet"
        )
        self._bars.setAccessibleDescription(self._mean.text())
        self._bars.show_tally(tally)
        name = self._appearance.legend.name
        shown = {mark: Rate(mark, name(mark)) for mark in self._heads_of_model()}
        shown |= {rate.mark: rate for rate in tally.rates()}
        self._heads.show_rates(tuple(shown.values()))


def _label(text: str, name: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    return label


def _titled(title: QLabel, note: QWidget, content: QWidget) -> QVBoxLayout:
    """A heading with a note at its right, over the drawing that it names."""
    heading = QHBoxLayout()
    heading.addWidget(title)
    heading.addSpacing(8)
    heading.addWidget(note)
    heading.addStretch(1)
    block = QVBoxLayout()
    block.setSpacing(4)
    block.addLayout(heading)
    block.addWidget(content, 0, Qt.AlignmentFlag.AlignBottom)
    return block
