"""View of a batch: progress, speed, time left, answers."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QProgressBar,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.batch.policy_panel import PolicyPanel
from app.batch.results_model import ResultsModel
from app.i18n.engine_texts import engine_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.live_label import LiveLabel
from app.widgets.sizes import (
    duration,
    speed,
)
from medusa_core.api import BatchState, read_rows

_STAGES = {
    "starting": QT_TRANSLATE_NOOP("Batch", "Loading the model"),
    "answering": QT_TRANSLATE_NOOP("Batch", "The model answers"),
    "paused": QT_TRANSLATE_NOOP("Batch", "Paused; finished answers are kept"),
    "done": QT_TRANSLATE_NOOP("Batch", "All lines are done"),
    "failed": QT_TRANSLATE_NOOP("Batch", "It stopped"),
}
_DONE = QT_TRANSLATE_NOOP("Batch", "{0} of {1}")
_FAILED = QT_TRANSLATE_NOOP("Batch", "{0} with an error")
_RATE = QT_TRANSLATE_NOOP("Batch", "{0} tokens/s")
_LEFT = QT_TRANSLATE_NOOP("Batch", "{0} left")
_FULL = 1000


class BatchView(QWidget):
    """Progress and answers of one batch.

    Attributes:
        stage_label: Stage, progress and time left.
        bar: Progress of the stage.
        problem_label: Error and hint.
        panel: Offload policy, with forecast and measured rates.
        results: Model of the answers.
        table: Table of the answers.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._out = Path()
        self._end = 0
        self.stage_label = QLabel()
        self.stage_label.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setRange(0, _FULL)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the batch"))
        self.problem_label = LiveLabel()
        self.panel = PolicyPanel(appearance)
        self.results = ResultsModel()
        self.table = QTableView()
        self._build()

    def show_file(self, out: Path) -> None:
        """Show the answers of a file."""
        if out != self._out:
            self._out, self._end = out, 0
            self.results.clear()

    def show_state(self, state: BatchState) -> None:
        """Show the state of the batch, and new answers."""
        progress, share = state.progress, share_of(state)
        self.stage_label.setText(_describe(state))
        self.bar.setValue(round(_FULL * share))
        problem = f"{engine_text(state.problem)} {engine_text(state.hint)}".strip()
        self.problem_label.setText(problem)
        self.problem_label.setVisible(state.stage == "failed")
        self.panel.show_progress(progress)
        rows, self._end = read_rows(self._out, self._end)
        if rows:
            bar = self.table.verticalScrollBar()
            follows = bar.value() == bar.maximum()
            self.results.add(rows)
            if follows:
                self.table.scrollToBottom()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self.panel.restyle()

    def _build(self) -> None:
        table, modes = self.table, QHeaderView.ResizeMode
        table.setModel(self.results)
        table.setAccessibleName(self.tr("Answers"))
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setTabKeyNavigation(False)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(modes.ResizeToContents)
        header.setResizeContentsPrecision(0)  # of what is seen
        header.setStretchLastSection(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (self.stage_label, self.bar, self.problem_label):
            column.addWidget(widget)
        column.addWidget(self.panel, 3)  # it takes no more than it needs
        column.addWidget(table, 1)


def share_of(state: BatchState) -> float:
    """Return the share of finished lines."""
    progress = state.progress
    return progress.num_done / progress.num_lines if progress.num_lines else 0.0


def _describe(state: BatchState) -> str:
    progress, texts = state.progress, [_tr(_STAGES[state.stage])]
    if progress.num_lines:
        texts.append(_tr(_DONE).format(progress.num_done, progress.num_lines))
    if progress.num_failed:
        texts.append(_tr(_FAILED).format(progress.num_failed))
    if state.stage == "answering":
        texts.append(_tr(_RATE).format(speed(progress.tokens_per_s)))
        if progress.seconds_left is not None:
            texts.append(_tr(_LEFT).format(duration(progress.seconds_left)))
    return " · ".join(texts)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Batch", text)
