"""Selection of the tree's size, by expected tokens and speed."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QSlider, QWidget

from app.i18n.numbers import Number
from medusa_core.messages import Planned


class TreeForecast(NamedTuple):
    """Forecast for a tree of some size.

    Attributes:
        tokens: Expected tokens of a step (τ).
        tokens_per_s: Expected tokens per second, by the measured time of a step.
        factor: Speed-up over plain decoding.
    """

    tokens: float
    tokens_per_s: float
    factor: float


def forecast(planned: Planned, plain_step_s: float, num_rows: int) -> TreeForecast:
    """Forecast for the best tree of `num_rows` rows, root included; 1 is plain decoding."""
    chosen = planned.best_nodes[: num_rows - 1]
    tokens = 1 + sum(node.chance for node in chosen)
    seconds = planned.tree_step_s[num_rows - 2] if chosen else plain_step_s
    speed = tokens / seconds
    return TreeForecast(tokens, speed, speed * plain_step_s)


class PlanBar(QWidget):
    """Slider for the number of rows, with its forecast.

    Attributes:
        slider: Rows of the tree, root included.
        use_box: Whether the next answers take this many rows.

    Signals:
        rows_changed: The number of rows changed.
        rows_chosen: Rows of the next answers; 0 for the engine's choice.
    """

    rows_changed = Signal(int)
    rows_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._planned: Planned | None = None
        self._plain_step_s = 0.0
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(self.tr("Rows of the tree"))
        self.slider.setToolTip(self.tr("How many tokens one step verifies, the root included"))
        self._label = QLabel()
        self._label.setObjectName("stepLabel")
        self._label.setToolTip(
            self.tr(
                "τ is 1 (the model's own token) plus the chance of every node: the product of the "
                "accuracies of the ranks on its path. The speed is τ ÷ the time of such a step, "
                "measured on this machine."
            )
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(QLabel(self.tr("Rows")))
        row.addWidget(self.slider, 1)
        row.addWidget(self._label)
        self.use_box = QCheckBox(self.tr("Use for the next answers"))
        self.use_box.setToolTip(self.tr("Else the engine chooses what is fastest on this machine"))
        row.addWidget(self.use_box)
        self.slider.valueChanged.connect(self._changed)
        self.use_box.toggled.connect(lambda _on: self._announce())

    @property
    def text(self) -> str:
        """Text of the forecast."""
        return self._label.text()

    def show_plan(self, planned: Planned | None, plain_step_s: float) -> None:
        """Show new forecasts, and the engine's choice until the user selects another size."""
        if planned is self._planned:
            return
        before, self._planned, self._plain_step_s = self._planned, planned, plain_step_s
        follows = before is None or self.slider.value() == before.tree_rows
        most = 1 + len(planned.best_nodes) if planned is not None else 1
        for settings_panel in (self.slider, self.use_box):
            settings_panel.setEnabled(most > 1)
        if planned is not None and most == 1:
            self.use_box.setChecked(False)  # a tree of one row would keep all sources from drafting
        self.slider.setRange(1, most)
        if planned is not None and follows and not self.use_box.isChecked():
            self.slider.setValue(planned.tree_rows)
        self._changed(self.slider.value())

    def _changed(self, num_rows: int) -> None:
        planned = self._planned
        if planned is None or not planned.best_nodes:
            self._label.setText(
                self.tr("not measured yet")
                if planned is None
                else self.tr("no tree is planned ahead: each step grows its own")
            )
        else:
            words = forecast(planned, self._plain_step_s, num_rows)
            mark = self.tr(" · the engine's choice") if num_rows == planned.tree_rows else ""
            self._label.setText(
                self.tr(
                    "{0} rows · expected {1:.2f} tokens/step · {2:,.0f} tokens/s · "
                    "{3:.2f}× plain{4}"
                ).format(
                    num_rows, *map(Number, (words.tokens, words.tokens_per_s, words.factor)), mark
                )
            )
        self.slider.setAccessibleDescription(self._label.text())
        self.rows_changed.emit(num_rows)
        if self.use_box.isChecked():
            self._announce()

    def _announce(self) -> None:
        self.rows_chosen.emit(self.slider.value() if self.use_box.isChecked() else 0)
