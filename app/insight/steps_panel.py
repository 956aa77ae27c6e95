"""The steps panel: tokens, time and memory of each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from app.chat.strip.acceptance import MEANING as RATES_MEANING
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.plots import Plot, TimePlot
from app.insight.step_parts import PARTS
from app.insight.steps_facts import describe_answer, describe_step, memory_of
from app.insight.steps_figures import StepFigures
from app.insight.timeline import Timeline
from app.insight.transport import Transport, is_led_by_keys
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.plain_label import plain_label
from medusa_core.loading.state import ModelStatus
from medusa_core.messages import Calibrated, ModelLoaded, StepTrace

_SERIES = (1, 2, 5, 6, 3, 4)  # colours of the parts
REDRAW_MS = 400  # while steps come in: drawing slows the engine
TOKENS_MEANING = QT_TRANSLATE_NOOP(
    "Insight",
    "Tokens that each step gave: the accepted ones on the token that the model adds itself. "
    "Plain decoding gives 1. The mean over all steps is τ.",
)
TIMES_MEANING = QT_TRANSLATE_NOOP(
    "Insight",
    "Where each step's time went, on top of each other: drafting, verifying all draft tokens in "
    "one pass of the model, accepting, and keeping the accepted rows. Where layers lie below the "
    "device or on other machines: transfer, in which nothing is computed because they or their "
    "rows are on the way, and the computing of other machines. In the title: the means.",
)
SPEED_MEANING = QT_TRANSLATE_NOOP(
    "Insight",
    "Tokens per second, averaged over the neighbouring steps. The dashed line is plain decoding "
    "on this machine, measured after the model was loaded.",
)
MEMORY_MEANING = QT_TRANSLATE_NOOP(
    "Insight",
    "Keys and values of the conversation so far, which every step reads. The dashed line is the "
    "room that is set aside for them, full when the context is. The rest of the memory does not "
    "change: the weights of the model and of its heads.",
)
COSTS_MEANING = QT_TRANSLATE_NOOP(
    "Insight",
    "T(n): time of one pass that verifies n rows, measured on this machine. The dot is what this "
    "answer's trees have on average. Medusa gains where the curve is flat.",
)
FACTS_MEANING = QT_TRANSLATE_NOOP(
    "Insight",
    "τ: tokens from decode steps ÷ decode steps. × plain: τ × time of a step of plain decoding ÷ "
    "mean time of a step. Cache: keys and values of the conversation so far, and the "
    "room there is.",
)


class StepsPanel(QWidget):
    """Curves of one answer over its steps; the slider of the tree moves along with them.

    Attributes:
        figures: Plotted figures.
        facts: Label of figures that have no curve.
    """

    def __init__(
        self, timeline: Timeline, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("insight")
        self._timeline = timeline
        self._appearance = appearance
        self._status = ModelStatus()
        self._model = ""
        self.figures = StepFigures(self._appearance.legend)
        self._transport = Transport(timeline, appearance)
        self._tokens = TimePlot(
            self.tr("Tokens per step"), QCoreApplication.translate("Insight", TOKENS_MEANING)
        )
        self._times = TimePlot(
            self.tr("Step"), QCoreApplication.translate("Insight", TIMES_MEANING)
        )
        self._speed = TimePlot(
            self.tr("Tokens per second"), QCoreApplication.translate("Insight", SPEED_MEANING)
        )
        self._memory = TimePlot(
            self.tr("Memory of the cache (MiB)"),
            QCoreApplication.translate("Insight", MEMORY_MEANING),
        )
        self._rates = Plot(
            self.tr("Draft tokens accepted, by source"),
            QCoreApplication.translate("Chat", RATES_MEANING),
        )
        self._costs = Plot(
            self.tr("A pass of n rows, T(n)"),
            QCoreApplication.translate("Insight", COSTS_MEANING),
        )
        self._over_time = (self._tokens, self._times, self._speed, self._memory)
        self.facts = plain_label(name="insightNote")
        self.facts.setToolTip(QCoreApplication.translate("Insight", FACTS_MEANING))
        self._costs_drawn: object = None
        self._announced: StepTrace | None = None  # what was read aloud last
        self._waiting: list[tuple[Plot, Callable[[], None]]] = []
        # A timer of its own: calls that are posted for later come all in one turn of the loop.
        self._turn = QTimer(self)
        self._turn.setInterval(0)
        self._turn.timeout.connect(self._draw_next)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REDRAW_MS)
        self._timer.timeout.connect(self._draw)
        self._column = QVBoxLayout(self)
        self._build()
        self._connect()
        self.restyle()

    @property
    def plots(self) -> tuple[Plot, ...]:
        """All plots."""
        return (*self._over_time, self._rates, self._costs)

    def show_status(self, status: ModelStatus, model: str) -> None:
        """Show the model's state and name."""
        if status is not self._status:
            self._status, self._model = status, model
            self._draw_soon()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._column.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(1.0), scale.px(0.6))
        for plot in self.plots:
            plot.restyle(self._appearance)
        self._transport.restyle()
        self._draw()

    def showEvent(self, event: object) -> None:
        # What is not seen isn't drawn.
        self._draw()

    def _build(self) -> None:
        grid = QGridLayout()
        grid.setSpacing(self._appearance.scale.px(0.5))
        for place, plot in enumerate(self.plots):
            grid.addWidget(plot, *divmod(place, 3))
        for column in range(3):
            grid.setColumnStretch(column, 1)
        self._column.addWidget(self._transport)
        self._column.addLayout(grid, 1)
        self._column.addWidget(self.facts)
        for plot in self._over_time[1:]:
            plot.setXLink(self._tokens)

    def _connect(self) -> None:
        timeline = self._timeline
        timeline.track_changed.connect(self._track_changed)
        timeline.grown.connect(self._draw_soon)
        timeline.moved.connect(self._moved)
        for plot in self._over_time:
            plot.step_chosen.connect(self._go_to)
            plot.step_moved.connect(lambda steps: timeline.go(timeline.index + steps))

    def _track_changed(self) -> None:
        """Start new figures for another answer."""
        self.figures = StepFigures(self._appearance.legend)
        self._draw_soon()

    def _moved(self) -> None:
        if self._timeline.follows:
            self._draw_soon()  # a marker that moves paints all plots anew
        else:
            self._move_markers()
            self._say_step()

    def _say_step(self) -> None:
        """Announce the focused curve's value to screen readers, or else the whole step."""
        step = self._timeline.step
        if step is None or step is self._announced or not is_led_by_keys(self, self._timeline):
            return
        self._announced = step
        curve = next((plot for plot in self._over_time if plot.hasFocus()), None)
        announce(self, self._transport.text if curve is None else curve.accessibleDescription())

    def _draw_soon(self) -> None:
        if self.isVisible() and not self._timer.isActive():
            self._timer.start()

    def _draw(self) -> None:
        """Draw one plot in each iteration of the event loop, since each takes milliseconds."""
        if not self.isVisible():
            return
        if self._timeline.track is not None:
            self.figures.follow(self._timeline.track)
        self.facts.setText(self._description())
        self._waiting = [
            (self._costs, self._draw_costs),
            (self._rates, self._draw_rates),
            (self._memory, self._draw_memory),
            (self._speed, self._draw_speed),
            (self._times, self._draw_times),
            (self._tokens, self._draw_tokens),
        ]
        for plot in self.plots:  # or the first that has another range would paint all it is tied to
            plot.setUpdatesEnabled(False)
        self._turn.start()

    def _draw_next(self) -> None:
        if self._waiting:
            plot, draw = self._waiting.pop()
            draw()
            plot.setUpdatesEnabled(True)
        else:
            self._turn.stop()
            self._move_markers()

    def _draw_tokens(self) -> None:
        theme, figures = self._appearance.theme, self.figures
        self._tokens.clear_curves()
        colours = (theme.target_bar, theme.agreed.line)
        self._tokens.describe(
            (self.tr("the model's own"), colours[0]), (self.tr("accepted"), colours[1])
        )
        if len(figures):
            own = figures.tokens - figures.accepted
            self._tokens.stack(figures.numbers, np.stack([own, figures.accepted]), colours)

    def _draw_times(self) -> None:
        self._times.clear_curves()
        shown = list(self.figures.parts)
        names = [QCoreApplication.translate("Insight", PARTS[part]) for part in shown]
        colours = tuple(self._appearance.theme.series(_SERIES[part]).line for part in shown)
        if not len(self.figures):
            self._times.describe(*zip(names, colours, strict=True))
            return
        unit, scale = _unit(float(np.median(self.figures.seconds)))
        self._times.take_unit(unit)
        parts = self.figures.times[shown] * scale
        means = parts.mean(axis=1)
        named = (f"{name} {Number(mean):,.0f}" for name, mean in zip(names, means, strict=True))
        self._times.describe(*zip(named, colours, strict=True))
        self._times.stack(self.figures.numbers, parts, colours)
        # One step that was interrupted must not flatten all others.
        self._times.setYRange(0, 1.3 * float(np.quantile(parts.sum(axis=0), 0.98)))

    def _draw_speed(self) -> None:
        theme, figures = self._appearance.theme, self.figures
        self._speed.clear_curves()
        if not len(figures):
            return
        pen, speeds = pg.mkPen(theme.accent, width=2), figures.speeds()
        self._speed.plot(figures.numbers, speeds, pen=pen)
        self._speed.setYRange(0, 1.1 * float(speeds.max()))
        if (calibrated := self._calibrated()) is not None:
            self._speed.addItem(self._dashes(1 / calibrated.plain_step_s))

    def _draw_memory(self) -> None:
        self._memory.clear_curves()
        memory = memory_of(self._loaded())
        if not len(self.figures) or memory is None:
            return
        used = self.figures.context * memory.per_token
        colours = (self._appearance.theme.target_bar,)
        self._memory.stack(self.figures.numbers, used[None], colours)
        self._memory.addItem(self._dashes(memory.room))
        self._memory.setYRange(0, 1.1 * memory.room)

    def _dashes(self, height: float) -> pg.InfiniteLine:
        """Return a dashed reference line for a curve."""
        pen = pg.mkPen(self._appearance.theme.muted, style=Qt.PenStyle.DashLine)
        return pg.InfiniteLine(height, angle=0, pen=pen)

    def _draw_rates(self) -> None:
        rates = self.figures.rates()
        self._rates.clear()
        for place, rate in enumerate(rates):
            colour = self._appearance.mark(rate.mark)
            bar = pg.BarGraphItem(x=[place], height=[rate.share], width=0.7, brush=colour.line)
            self._rates.addItem(bar)
        axis = self._rates.getPlotItem().getAxis("bottom")
        axis.setTicks([[(place, rate.name) for place, rate in enumerate(rates)]])
        self._rates.setYRange(0, 1)
        described = ", ".join(f"{rate.name} {Number(rate.share):.0%}" for rate in rates)
        self._rates.setAccessibleDescription(described or self.tr("nothing yet"))

    def _draw_costs(self) -> None:
        theme, calibrated = self._appearance.theme, self._calibrated()
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
        unit, scale = _unit(seconds[0])
        self._costs.take_unit(unit)
        self._costs.describe()
        pen = pg.mkPen(theme.muted, width=2)
        self._costs.plot(rows, np.array(seconds) * scale, pen=pen, symbol="o", symbolSize=4)
        cost = float(np.interp(used, rows, seconds)) * scale
        self._costs.plot([used], [cost], symbol="o", symbolSize=12, symbolBrush=theme.accent)
        self._costs.setAccessibleDescription(
            self.tr("{0} rows take {1}").format(used, f"{Number(cost):,.0f} {unit}")
        )

    def _rows_used(self) -> int:
        """Mean number of rows of this answer's trees; 0 without any."""
        return round(float(self.figures.rows.mean())) if len(self.figures) else 0

    def _is_of_this_model(self) -> bool:
        """Whether the shown answer, perhaps from a file, is the loaded model's."""
        track = self._timeline.track
        return track is None or track.model == self._model

    def _calibrated(self) -> Calibrated | None:
        """Measured step costs of this answer's model; None if unknown."""
        return self._status.calibrated if self._is_of_this_model() else None

    def _loaded(self) -> ModelLoaded | None:
        return self._status.loaded if self._is_of_this_model() else None

    def _description(self) -> str:
        track = self._timeline.track
        if track is None and self._timeline.has_answers:
            return self.tr("Steps of this answer aren't kept. Ask something to see steps.")
        if not len(self.figures) or track is None:
            return self.tr("No decoding steps yet: ask something.")
        described = describe_answer(self.figures, track.done, self._loaded())
        if self._is_of_this_model():
            return described
        return self.tr("{0} Recorded with {1}, which isn't loaded: no comparison.").format(
            described, track.model
        )

    def _move_markers(self) -> None:
        step, figures = self._timeline.step, self.figures
        number = step.step if step is not None and step.step else None
        for plot in self._over_time:
            plot.mark(number)
        at = None if number is None else int(np.searchsorted(figures.numbers, number))
        text = (self.tr("no step is shown"),) * len(self._over_time)
        if at is not None and at < len(figures):
            text = describe_step(figures, at, memory_of(self._loaded()))
        for plot, words in zip(self._over_time, text, strict=True):
            plot.setAccessibleDescription(words)

    def _go_to(self, number: int) -> None:
        track = self._timeline.track
        if track is not None and len(track):
            self._timeline.go(number - track[0].step)


def _unit(seconds: float) -> tuple[str, float]:
    """Return the unit for times of this size, and its number per second."""
    return ("µs", 1e6) if seconds < 0.01 else ("ms", 1e3)
