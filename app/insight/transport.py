"""Moves through the steps of an answer: slider, play, single step, follow."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QSlider,
    QToolButton,
    QWidget,
)

from app.i18n.numbers import Number
from app.insight.timeline import Timeline
from app.theme.appearance import Appearance
from medusa_core.messages import StepTrace


class Transport(QWidget):
    """Controls of a timeline.

    Attributes:
        slider: Selects the step.
        play_button: Plays the steps.
        follow_box: Follows the newest step.
    """

    def __init__(
        self, timeline: Timeline, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._timeline = timeline
        self._appearance = appearance
        self._back = _button(self.tr("Step back"))
        self.play_button = _button(self.tr("Play"))
        self._forward = _button(self.tr("Step forward"))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(self.tr("Step"))
        self.slider.setToolTip(
            self.tr("The step that is shown; arrow keys move by one, Page keys by ten")
        )
        self.follow_box = QCheckBox(self.tr("Follow live"))
        self.follow_box.setToolTip(self.tr("Show the newest step while an answer is written"))
        self._label = QLabel()
        self._label.setObjectName("stepLabel")
        self._row = QHBoxLayout(self)
        self._build()
        self._connect()
        self.restyle()
        self._show()

    @property
    def text(self) -> str:
        """Description of the step."""
        return self._label.text()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, muted = self._appearance.scale, self._appearance.theme.text
        playing = "pause" if self._timeline.is_playing else "play"
        buttons = ((self._back, "back"), (self.play_button, playing), (self._forward, "forward"))
        for button, icon in buttons:
            button.setIcon(self._appearance.icon(icon, muted, 1.1))
            button.setIconSize(QSize(scale.px(1.1), scale.px(1.1)))
        self._row.setSpacing(scale.px(0.5))

    def _build(self) -> None:
        self._row.setContentsMargins(0, 0, 0, 0)
        for button in (self._back, self.play_button, self._forward):
            self._row.addWidget(button)
        self._row.addWidget(self.slider, 1)
        self._row.addWidget(self._label)
        self._row.addWidget(self.follow_box)

    def _connect(self) -> None:
        timeline = self._timeline
        self._back.clicked.connect(lambda: timeline.go(timeline.index - 1))
        self._forward.clicked.connect(lambda: timeline.go(timeline.index + 1))
        self.play_button.clicked.connect(lambda: timeline.play(not timeline.is_playing))
        self.slider.valueChanged.connect(self._choose)
        self.follow_box.clicked.connect(timeline.follow)
        timeline.moved.connect(self._show)
        timeline.grown.connect(self._show)
        timeline.track_changed.connect(self._show)
        timeline.playing_changed.connect(self._playing_changed)

    def _choose(self, index: int) -> None:
        if index != self._timeline.index:
            self._timeline.go(index)

    def _playing_changed(self, on: bool) -> None:
        name = self.tr("Pause") if on else self.tr("Play")
        self.play_button.setAccessibleName(name)
        self.play_button.setToolTip(name)
        self.restyle()

    def _show(self) -> None:
        """Show the current step of the timeline in slider and buttons."""
        timeline = self._timeline
        # Shrunk after the value is set: a slider that cuts its value would choose another step.
        self.slider.setMaximum(max(timeline.last, self.slider.maximum()))
        self.slider.setValue(timeline.index)
        self.slider.setMaximum(max(timeline.last, 0))
        for widget in (self._back, self.play_button, self._forward, self.slider):
            widget.setEnabled(timeline.last > 0)
        self.follow_box.setChecked(timeline.follows)
        step, track = timeline.step, timeline.track
        if step is None or track is None:
            lost = track is not None and track.num_dropped
            words = self.tr("its steps left the buffer") if lost else self.tr("no steps yet")
            is_unkept = track is None and timeline.has_answers
            self._label.setText(self.tr("Steps of this answer aren't kept") if is_unkept else words)
        else:
            last = track[timeline.last].step
            self._label.setText(
                self.tr("step {0:,} of {1:,}: {2}").format(
                    Number(step.step), Number(last), describe_step(step)
                )
            )
        self.slider.setAccessibleDescription(self._label.text())


def is_led_by_keys(panel: QWidget, timeline: Timeline) -> bool:
    """Whether the user moves through steps by keyboard in a panel, so that each is announced."""
    focused = QApplication.focusWidget()
    return focused is not None and panel.isAncestorOf(focused) and not timeline.is_playing


def describe_step(step: StepTrace) -> str:
    """Describe the tokens of a step."""
    if step.step == 0:
        return QCoreApplication.translate("Insight", "the prompt is read, one token")
    num_accepted = min(len(step.path) - 1, step.num_appended)
    own = step.num_appended - num_accepted
    parts = [
        QCoreApplication.translate("Insight", "{0} accepted").format(num_accepted),
        *([QCoreApplication.translate("Insight", "1 of the model's own")] if own else []),
    ]
    words = (
        QCoreApplication.translate("Insight", "{0} token ({1})")
        if step.num_appended == 1
        else QCoreApplication.translate("Insight", "{0} tokens ({1})")
    )
    return words.format(step.num_appended, " + ".join(parts))


def _button(name: str) -> QToolButton:
    button = QToolButton()
    button.setAccessibleName(name)
    button.setToolTip(name)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
