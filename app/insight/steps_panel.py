"""The steps panel: what each step gave and what it cost, over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from app.insight.note import note
from app.insight.steps_figures import PARTS, Floats, StepFigures
from app.insight.timeline import Timeline
from app.insight.transport import Transport
from app.insight.words import micro
from app.model_keeper import ModelStatus
from app.theme.appearance import Appearance

REDRAW_MS = 400  # while steps come in: drawing slows the engine
TOKENS_MEANING = (
    "Tokens that each step gave: the accepted ones and the token that the model adds itself. "
    "Plain decoding gives 1. The mean over all steps is τ."
)
TIMES_MEANING = (
    "Where each step's time went, on top of each other: drafting, verifying all guesses in one "
    "pass of the model, accepting, and keeping the accepted rows."
)
SPEED_MEANING = (
    "Tokens per second, averaged over the neighbouring steps. The dashed line is plain decoding "
    "on this machine, measured after the model was loaded."
)
RATES_MEANING = (
    "Of the steps in which a head, or the lookup, drafted, the share in which a token of it was "
    "accepted. Head k drafts the k-th token after the one decided; it counts only where all before "
    "it was right. A token that both guessed counts for both."
)
FACTS_MEANING = (
    "τ: tokens from decode steps ÷ decode steps. × plain: τ × time of a step of plain decoding ÷ "
    "mean time of a step. Cache: keys and values of the conversation so far, and the room there is."
)
COSTS_MEANING = (
    "T(n): time of one pass that verifies n rows, measured on this machine. The dot is the number "
    "of rows of this answer's trees. Medusa gains where the curve is flat."
)


class StepsPanel(QWidget):
    """Curves of one answer on one time axis, which the tree's slider shares.

    Attributes:
        figures: What is drawn.
        facts: Figures that are no curve.
    """

    def __init__(
        self, timeline: Timeline, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("insight")
        self._timeline = timeline
        self._appearance = appearance
        self._status = ModelStatus()
        self.figures = StepFigures()
        self._transport = Transport(timeline, appearance)
        self._tokens = _plot("Tokens per step", TOKENS_MEANING)
        self._times = _plot("Step time (µs)", TIMES_MEANING)
        self._speed = _plot("Tokens per second", SPEED_MEANING)
        self._rates = _plot("Accepted, by source", RATES_MEANING)
        self._costs = _plot("T(n) (µs)", COSTS_MEANING)
        self._over_time = (self._tokens, self._times, self._speed)
        self._markers = [pg.InfiniteLine(movable=True) for _ in self._over_time]
        self.facts = note()
        self.facts.setToolTip(FACTS_MEANING)
        self._costs_drawn: object = None
        self._waiting: list[Callable[[], None]] = []
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REDRAW_MS)
        self._timer.timeout.connect(self._draw)
        self._column = QVBoxLayout(self)
        self._build()
        self._connect()
        self.restyle()

    @property
    def plots(self) -> tuple[pg.PlotWidget, ...]:
        """All drawings."""
        return (*self._over_time, self._rates, self._costs)

    def show_status(self, status: ModelStatus) -> None:
        """Take what is known of the model."""
        if status is not self._status:
            self._status = status
            self._draw_soon()

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self._column.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(1.0), scale.px(0.6))
        for plot in self.plots:
            plot.setBackground(QColor(theme.window))
            item = plot.getPlotItem()
            title = plot.accessibleName()
            if plot is self._times:
                title += ": " + " ".join(
                    f'<span style="color:{theme.head(part + 1).line}">■ {name}</span>'
                    for part, name in enumerate(PARTS)
                )
            item.setTitle(title, color=theme.text, size=f"{scale.px(0.8)}px")
            for side in ("left", "bottom"):
                axis = item.getAxis(side)
                axis.setPen(QColor(theme.border))
                axis.setTextPen(QColor(theme.muted))
                axis.setTickFont(scale.font(0.75))
        for marker in self._markers:
            marker.setPen(pg.mkPen(theme.accent, width=2))
            marker.setHoverPen(pg.mkPen(theme.accent_hover, width=4))
        self._transport.restyle()
        self._draw_soon()

    def showEvent(self, event: object) -> None:
        # What is not seen isn't drawn.
        self._draw()

    def _build(self) -> None:
        grid = QGridLayout()
        grid.setSpacing(self._appearance.scale.px(0.5))
        for column, plot in enumerate(self._over_time):
            grid.addWidget(plot, 0, column)
        grid.addWidget(self._rates, 1, 0)
        grid.addWidget(self._costs, 1, 1)
        grid.addWidget(self.facts, 1, 2, Qt.AlignmentFlag.AlignTop)
        self._column.addWidget(self._transport)
        self._column.addLayout(grid, 1)
        for plot, marker in zip(self._over_time, self._markers, strict=True):
            plot.addItem(marker, ignoreBounds=True)
            marker.hide()
        for plot in (self._times, self._speed):
            plot.setXLink(self._tokens)

    def _connect(self) -> None:
        self._timeline.track_changed.connect(self._begin)
        self._timeline.grown.connect(self._draw_soon)
        self._timeline.moved.connect(self._moved)
        for marker in self._markers:
            marker.sigDragged.connect(self._dragged)
        for plot in self._over_time:
            plot.scene().sigMouseClicked.connect(
                lambda event, plot=plot: self._clicked(event, plot)
            )

    def _begin(self) -> None:
        self.figures = StepFigures()
        self._draw_soon()

    def _moved(self) -> None:
        if self._timeline.follows:
            self._draw_soon()  # a marker that moves paints three plots anew
        else:
            self._move_markers()

    def _draw_soon(self) -> None:
        if self.isVisible() and not self._timer.isActive():
            self._timer.start()

    def _draw(self) -> None:
        """Draw everything, one drawing in each turn of the loop: together they take 10 ms."""
        if not self.isVisible():
            return
        if self._timeline.track is not None:
            self.figures.follow(self._timeline.track)
        self.facts.setText(self._say())
        self._waiting = [
            self._draw_costs,
            self._draw_rates,
            self._draw_speed,
            self._draw_times,
            self._draw_tokens,
        ]
        self._draw_next()

    def _draw_next(self) -> None:
        if not self._waiting:
            self._move_markers()
            return
        self._waiting.pop()()
        QTimer.singleShot(0, self, self._draw_next)

    def _clear(self, plot: pg.PlotWidget) -> None:
        """Take the curves away; the marker stays."""
        plot.clear()
        plot.addItem(self._markers[self._over_time.index(plot)], ignoreBounds=True)

    def _draw_tokens(self) -> None:
        self._clear(self._tokens)
        if len(self.figures):
            edges, colour = _edges(self.figures.numbers), self._appearance.theme.head(1).line
            _steps(self._tokens, edges, self.figures.tokens, colour)

    def _draw_times(self) -> None:
        self._clear(self._times)
        if not len(self.figures):
            return
        edges = _edges(self.figures.numbers)
        sums = np.cumsum(self.figures.times, axis=0) * 1e6
        for part in reversed(range(len(PARTS))):  # the whole first, the smaller in front of it
            _steps(self._times, edges, sums[part], self._appearance.theme.head(part + 1).line)
        # One step that was interrupted must not flatten all others.
        self._times.setYRange(0, 1.3 * float(np.quantile(sums[-1], 0.98)))

    def _draw_speed(self) -> None:
        theme, figures = self._appearance.theme, self.figures
        self._clear(self._speed)
        if not len(figures):
            return
        pen = pg.mkPen(theme.head(1).line, width=2)
        self._speed.plot(figures.numbers, figures.speeds(), pen=pen)
        calibrated = self._status.calibrated
        if calibrated is not None:
            dashes = pg.mkPen(theme.muted, style=Qt.PenStyle.DashLine)
            plain = pg.InfiniteLine(1 / calibrated.plain_step_s, angle=0, pen=dashes)
            self._speed.addItem(plain)

    def _draw_rates(self) -> None:
        theme, rates = self._appearance.theme, self.figures.rates()
        self._rates.clear()
        for place, rate in enumerate(rates):
            colour = theme.of_mark(rate.mark)
            bar = pg.BarGraphItem(x=[place], height=[rate.share], width=0.7, brush=colour.line)
            self._rates.addItem(bar)
        axis = self._rates.getPlotItem().getAxis("bottom")
        axis.setTicks([[(place, rate.name) for place, rate in enumerate(rates)]])
        self._rates.setYRange(0, 1)
        said = ", ".join(f"{rate.name} {rate.share:.0%}" for rate in rates)
        self._rates.setAccessibleDescription(said or "nothing yet")

    def _draw_costs(self) -> None:
        theme, calibrated = self._appearance.theme, self._status.calibrated
        planned = self._status.planned
        used = self._rows_used() or (1 if planned is None else planned.tree_rows)
        drawn = (calibrated, used, theme)
        if drawn == self._costs_drawn:
            return
        self._costs_drawn = drawn
        self._costs.clear()
        if calibrated is None:
            return
        rows, seconds = zip(*calibrated.step_s, strict=True)
        pen = pg.mkPen(theme.head(2).line, width=2)
        self._costs.plot(rows, np.array(seconds) * 1e6, pen=pen, symbol="o", symbolSize=4)
        cost = float(np.interp(used, rows, seconds)) * 1e6
        self._costs.plot([used], [cost], symbol="o", symbolSize=12, symbolBrush=theme.accent)
        self._costs.setAccessibleDescription(f"{used} rows take {cost:.0f} µs")

    def _rows_used(self) -> int:
        step = self._timeline.step
        return len(step.token_ids) if step is not None and step.step else 0

    def _say(self) -> str:
        figures, loaded = self.figures, self._status.loaded
        if not len(figures):
            return "No decoding steps yet: ask something."
        tau, seconds = float(figures.tokens.mean()), float(figures.seconds.mean())
        parts = figures.times.mean(axis=1)
        lines = [
            f"τ {tau:.2f} tokens/step over {len(figures):,} steps; a step takes {micro(seconds)}.",
            "Mean parts: "
            + ", ".join(f"{name} {micro(s)}" for name, s in zip(PARTS, parts, strict=True))
            + f", other {micro(max(0.0, seconds - float(parts.sum())))}.",
        ]
        if (calibrated := self._status.calibrated) is not None:
            factor = tau * calibrated.plain_step_s / seconds
            lines.append(
                f"{factor:.2f}× plain decoding, which takes {micro(calibrated.plain_step_s)}."
            )
        if loaded is not None:
            row_bytes = loaded.plan.kv_bytes / max(1, loaded.plan.context_tokens)
            used = int(figures.context[-1])
            lines.append(
                f"Cache: {used:,} of {loaded.context_tokens:,} tokens, "
                f"{used * row_bytes / 2**20:,.1f} of {loaded.plan.kv_bytes / 2**20:,.1f} MiB. "
                f"Weights and heads: "
                f"{(loaded.plan.weights_bytes + loaded.plan.heads_bytes) / 2**20:,.0f} MiB."
            )
        return "\n".join(lines)

    def _move_markers(self) -> None:
        step = self._timeline.step
        for marker in self._markers:
            marker.setVisible(step is not None and step.step > 0)
            if step is not None and not marker.moving:
                marker.setValue(step.step)

    def _dragged(self, marker: pg.InfiniteLine) -> None:
        self._go_to(marker.value())

    def _clicked(self, event: object, plot: pg.PlotWidget) -> None:
        place = plot.getPlotItem().vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        self._go_to(place.x())

    def _go_to(self, number: float) -> None:
        track = self._timeline.track
        if track is not None and len(track):
            self._timeline.go(round(number) - track[0].step)


def _plot(name: str, meaning: str) -> pg.PlotWidget:
    plot = pg.PlotWidget()
    plot.setAccessibleName(name)
    plot.setToolTip(meaning)
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMinimumHeight(90)
    plot.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return plot


def _edges(numbers: Floats) -> Floats:
    """Where the bars of steps begin and end."""
    return np.append(numbers - 0.5, numbers[-1] + 0.5)


def _steps(plot: pg.PlotWidget, edges: Floats, heights: Floats, colour: str) -> None:
    """Bars side by side, as one curve: thousands of bars would each be drawn on their own."""
    plot.addItem(
        pg.PlotCurveItem(
            edges, heights, stepMode="center", fillLevel=0, brush=colour, pen=pg.mkPen(colour)
        )
    )
