"""The bottom strip: tokens per step, acceptance by draft source, and the device."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.chat.messages.figures import (
    LEAST_STEP_S,
    TOKENS_PER_STEP,
)
from app.chat.strip.acceptance import AcceptanceRate
from app.chat.strip.strip_painting import (
    HeadBars,
    StepBars,
)
from app.chat.strip.tally import StepTally
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.theme.legend import Mark
from app.theme.text_style import Marking
from app.widgets.elided import ElidedBox, ElidedLabel
from app.widgets.explain import explain
from app.widgets.naming import name_box
from medusa_core.messages import Calibrated, ModelLoaded, StepDone

MARKING_NAMES = {
    Marking.OFF: QT_TRANSLATE_NOOP("StepsStrip", "No marks"),
    Marking.ACCEPTED: QT_TRANSLATE_NOOP("StepsStrip", "Mark accepted"),
    Marking.HEADS: QT_TRANSLATE_NOOP("StepsStrip", "Mark by source"),
}
MARK_CHARS = 11
BARS_EM = 32  # in less room the words say it alone
TOO_SMALL = QT_TRANSLATE_NOOP("StepsStrip", "Fast even without drafts")
TOO_SMALL_MEANING = QT_TRANSLATE_NOOP(
    "StepsStrip",
    "A step of this model takes less than 2 ms, so what drafts save is hard to notice. Tokens "
    "per step show what they save with a large model.",
)
SPEED = QT_TRANSLATE_NOOP(
    "StepsStrip", "Tokens of the answer so far ÷ seconds of its decoding steps."
)


class StepsStrip(QFrame):
    """Live figures of the answer being written, else of the last one.

    Attributes:
        marks_box: How accepted tokens are marked in the text.
        speed_label: Tokens per second.
        mean_label: Tokens per step.
        gain_label: Why no speed-up is shown, if the model is too small for one.
        memory_label: The device and its memory.
        is_short: Whether only the line of figures is shown.

    Signals:
        marking_chosen: The user selected how tokens are marked (a `Marking`).
    """

    marking_chosen = Signal(object)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("strip")
        self.setAccessibleName(self.tr("Steps"))
        self._appearance = appearance
        self._tally = StepTally(appearance.legend)
        self._marks: list[Mark] = []  # of the model's heads
        self._is_small = self._has_answers = False
        self.is_short = False
        self._bars = StepBars(appearance)
        self._heads = HeadBars(appearance)
        self.speed_label = _label(self.tr(SPEED))
        self.mean_label = _label(QCoreApplication.translate("Figures", TOKENS_PER_STEP))
        self.gain_label = _label(self.tr(TOO_SMALL_MEANING))
        self.memory_label = _label("")
        self.gain_label.setText(f"· {self.tr(TOO_SMALL)}")
        self.gain_label.hide()
        self.marks_box = ElidedBox(MARK_CHARS)
        name_box(self.marks_box, self.tr("Marks in the text"))
        for marking, name in MARKING_NAMES.items():
            self.marks_box.addItem(self.tr(name), marking)
        explain(
            self.marks_box,
            self.tr(
                "Accepted tokens have a tint and an underline: one for all, or that of the "
                "source that drafted them. The model chose all others itself. The text is the "
                "same either way."
            ),
        )
        self.marks_box.activated.connect(
            lambda index: self.marking_chosen.emit(Marking(self.marks_box.itemData(index)))
        )
        appearance.marking_changed.connect(self._show_marking)
        self._show_marking()
        self._column = QVBoxLayout(self)
        self._row = QHBoxLayout()
        self._build()
        self.restyle()
        self._show()

    @property
    def tally(self) -> StepTally:
        """The shown sums."""
        return self._tally

    def show_model(self, loaded: ModelLoaded, calibrated: Calibrated | None) -> None:
        """Show a model's heads before they draft, and whether speed-up is possible."""
        self.set_heads(loaded.head_source, loaded.num_heads)
        self._is_small = calibrated is not None and calibrated.plain_step_s < LEAST_STEP_S
        self.gain_label.setVisible(self._is_small)

    def show_memory(self, text: str, meaning: str) -> None:
        """Show the device and its free memory."""
        self.memory_label.setText(text)
        self.memory_label.setAccessibleName(text)
        explain(self.memory_label, meaning)

    def set_heads(self, source: str, num_heads: int) -> None:
        """Set source and number of heads, which are shown before they draft."""
        self._marks = [Mark(source, head + 1) for head in range(num_heads)]
        self._show()

    def _show_marking(self) -> None:
        self.marks_box.setCurrentIndex(self.marks_box.findData(self._appearance.marking))

    def begin(self, *, has_answers: bool = False) -> None:
        """Reset for a new answer.

        Args:
            has_answers: Whether the conversation has answers whose steps weren't recorded.
        """
        self._has_answers = has_answers
        self._tally = StepTally(self._appearance.legend)
        self._show()

    def add(self, steps: tuple[StepDone, ...]) -> None:
        """Count and draw these steps."""
        for step in steps:
            self._tally.add(step)
        self._show()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._column.setContentsMargins(scale.px(1.4), scale.px(0.5), scale.px(1.4), scale.px(0.6))
        self._column.setSpacing(scale.px(0.2))
        self._row.setSpacing(scale.px(1.2))
        self._figures.setSpacing(scale.px(0.3))
        self._bars.setFixedHeight(scale.px(2.6))
        self._heads.setFixedHeight(scale.px(2.6))
        self._heads.updateGeometry()
        self._bars.update()
        self._heads.update()

    @property
    def short_height(self) -> int:
        """Height of the line of figures alone."""
        margins = self._column.contentsMargins()
        line = max(self.marks_box.sizeHint().height(), self.memory_label.sizeHint().height())
        return line + margins.top() + margins.bottom()

    @property
    def sources_height(self) -> int:
        """Height of the parts that a short strip hides."""
        heading = self.marks_box.sizeHint().height() + self._column.spacing()
        return self._heads.minimumHeight() + heading

    def show_short(self, is_short: bool) -> None:
        """Show the line of figures alone, or bars and sources, too."""
        if is_short == self.is_short:
            return
        self.is_short = is_short
        self._sources.setVisible(not is_short)
        if is_short:
            self._figures.addWidget(self.marks_box)
        else:
            self._heading.addWidget(self.marks_box)
        self._fit_width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_width()

    def _fit_width(self) -> None:
        """Hide or shorten parts that have no room at the current width."""
        is_wide = self.width() >= self._appearance.scale.px(BARS_EM)
        self._bars.setVisible(is_wide and not self.is_short)
        self.gain_label.setVisible(self._is_small and is_wide)
        self.memory_label.setContentsMargins(0, 0, self._heading.spacing() * self.is_short, 0)
        self.marks_box.setMinimumContentsLength(MARK_CHARS if is_wide else MARK_CHARS // 2)

    def _build(self) -> None:
        self._figures = QHBoxLayout()
        for label in (self.speed_label, self.mean_label, self.gain_label):
            self._figures.addWidget(label)
        # The rest of the line, whatever that is.
        self.memory_label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.memory_label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._figures.addWidget(self.memory_label, 1)
        title = ElidedLabel(self.tr("Draft tokens accepted, by source"))
        title.setObjectName("stripTitle")
        self._sources = QWidget()
        sources = QVBoxLayout(self._sources)
        sources.setContentsMargins(0, 0, 0, 0)
        sources.setSpacing(2)
        self._heading = QHBoxLayout()
        self._heading.setSpacing(8)
        self._heading.addWidget(title)
        self._heading.addStretch(1)
        self._heading.addWidget(self.marks_box)
        sources.addLayout(self._heading)
        sources.addWidget(self._heads)
        self._row.addWidget(self._bars, 1, Qt.AlignmentFlag.AlignBottom)
        self._row.addWidget(self._sources)
        self._column.addLayout(self._figures)
        self._column.addLayout(self._row)

    def _show(self) -> None:
        tally = self._tally
        speed = self.tr("{speed} tokens/s ·").format(speed=f"{Number(tally.tokens_per_s):,.0f}")
        mean = self.tr("{mean} tokens/step").format(
            mean=f"{Number(tally.mean_acceptance_length):.2f}"
        )
        self.speed_label.setText(speed if tally.num_steps else "")
        none = self.tr("no steps yet")
        if self._has_answers:
            none = self.tr("Steps of this answer aren't kept")
        self.mean_label.setText(mean if tally.num_steps else none)
        self._bars.setAccessibleDescription(
            self.tr("{0} {1}, {2:,} steps")
            .format(self.speed_label.text(), self.mean_label.text(), Number(tally.num_steps))
            .strip()
        )
        self._bars.show_tally(tally)
        name = self._plain_label
        shown = {mark: AcceptanceRate(mark, name(mark)) for mark in self._marks}
        shown |= {rate.mark: rate._replace(name=name(rate.mark)) for rate in tally.rates()}
        self._heads.show_rates(tuple(shown.values()))

    def _plain_label(self, mark: Mark) -> str:
        """Plain-language label of a token's draft source."""
        if mark.source in ("medusa", "hydra"):
            return self.tr("Head {0}").format(mark.depth)
        if mark.source == "suffix":
            return self.tr("From the text")
        return self._appearance.legend.name(mark)


def _label(meaning: str) -> ElidedLabel:
    label = ElidedLabel()
    label.setProperty("class", "stripText")
    explain(label, meaning)
    return label
