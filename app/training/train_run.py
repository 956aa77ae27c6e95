"""View of a training run: progress, time left, accuracy of the heads."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QProgressBar, QVBoxLayout, QWidget

from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.plots import Plot
from app.theme.appearance import Appearance
from app.training.gain_words import gain_text
from app.widgets.live_label import LiveLabel
from app.widgets.sizes import (
    duration,
    speed,
)
from medusa_core.api import HeadsProgress

_COLOURS = 5  # that can be told apart; then lines are dashed
_STAGES = {
    "pausing": QT_TRANSLATE_NOOP("Train", "Pausing after this step…"),
    "starting": QT_TRANSLATE_NOOP("Train", "Loading the model"),
    "prompts": QT_TRANSLATE_NOOP("Train", "The model writes prompts"),
    "answers": QT_TRANSLATE_NOOP("Train", "The model writes answers"),
    "states": QT_TRANSLATE_NOOP("Train", "Computing the model's states"),
    "training": QT_TRANSLATE_NOOP("Train", "Heads learn"),
    "joint": QT_TRANSLATE_NOOP("Train", "Heads and model learn together"),
    "judging": QT_TRANSLATE_NOOP("Train", "Measuring what the heads bring"),
    "paused": QT_TRANSLATE_NOOP("Train", "Paused; nothing is lost"),
    "failed": QT_TRANSLATE_NOOP("Train", "It stopped"),
}
_FULL = 1000


class TrainRun(QWidget):
    """Progress of one run.

    Attributes:
        stage_label: Stage and time left.
        bar: Progress of the stage.
        problem_label: Error and hint.
        plot: Top-1 accuracy of each head by training steps.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._progress = HeadsProgress("paused")
        self.stage_label = QLabel()
        self.stage_label.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setRange(0, _FULL)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of this stage"))
        self.problem_label = LiveLabel()
        self.plot = Plot(
            self.tr("Best draft token right, %"),
            self.tr(
                "Of answers that heads don't learn from: how often the best draft token of head "
                "1, 2, … is the token that followed, over the steps of training."
            ),
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (self.stage_label, self.bar, self.problem_label):
            column.addWidget(widget)
        column.addWidget(self.plot, 1)
        self.restyle()

    def show_progress(self, progress: HeadsProgress, *, is_pausing: bool = False) -> None:
        """Show the progress, or that the run is pausing."""
        curve_grew = progress.curve != self._progress.curve
        self._progress = progress
        pausing = is_pausing and not progress.is_over
        self.stage_label.setText(_tr(_STAGES["pausing"]) if pausing else _describe(progress))
        self.bar.setValue(round(_FULL * progress.share))
        self.bar.setVisible(not progress.is_over)
        self.problem_label.setText(
            f"{engine_text(progress.problem)} {engine_text(progress.hint)}".strip()
        )
        self.problem_label.setVisible(progress.stage == "failed")
        if curve_grew:
            self._draw()

    def restyle(self) -> None:
        """Apply the theme's colours."""
        self.plot.restyle(self._appearance)
        self._draw()

    def _draw(self) -> None:
        self.plot.clear()
        curve = self._progress.curve
        self.plot.setVisible(bool(curve))
        if not curve:
            return
        steps = [step for step, _ in curve]
        for head in range(len(curve[-1][1])):
            shares = [100 * shares[head] for _, shares in curve]
            colour = QColor(self._appearance.theme.series(head % _COLOURS + 1).line)
            style = Qt.PenStyle.SolidLine if head < _COLOURS else Qt.PenStyle.DashLine
            pen = pg.mkPen(colour, width=2, style=style)
            self.plot.plot(steps, shares, pen=pen, symbol="o", symbolSize=4, symbolBrush=colour)
        last = ", ".join(
            f"{head}: {Number(share):.0%}" for head, share in enumerate(curve[-1][1], start=1)
        )
        self.plot.setAccessibleDescription(self.tr("Now, by head – {0}").format(last))
        self.plot.setToolTip(f"{self.plot.accessibleName()} – {last}")


def _describe(progress: HeadsProgress) -> str:
    """Describe the stage."""
    words = [_tr(_STAGES.get(progress.stage, progress.stage))]
    if progress.stage == "done":
        words = [gain_text(progress.gain)]
    if progress.stage == "answers" and progress.tokens_per_s is not None:
        words.append(_tr("{0} tokens/s").format(speed(progress.tokens_per_s)))
    if progress.seconds_left is not None:
        shown_text = QCoreApplication.translate("Train", "{0} left")
        words.append(shown_text.format(duration(progress.seconds_left)))
    if progress.curve:
        shares = " · ".join(f"{Number(share):.0%}" for share in progress.curve[-1][1])
        shown_text = QCoreApplication.translate("Train", "best draft token right: {0}")
        words.append(shown_text.format(shares))
    return " · ".join(words)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Train", text)
