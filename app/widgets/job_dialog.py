"""A dialog of long work: a form before it begins, and a view of it as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.widgets.closing import close_by_key
from app.widgets.live_label import LiveLabel

_LOOK_MS = 500


class JobStatus(NamedTuple):
    """How far a job is.

    Attributes:
        is_running: Its process runs.
        is_over: It has said its last word: done, paused or failed.
        is_done: Nothing is left to do.
        is_pausing: It was asked to pause, and hasn't yet.
        share: Of the present stage, while it runs.
        stage: What is done, and how long that takes still.
    """

    is_running: bool
    is_over: bool
    is_done: bool
    is_pausing: bool = False
    share: float = 0.0
    stage: str = ""


class JobDialog(QDialog):
    """One job at a time: chosen, begun, watched, paused, gone on with, or given up.

    Closing it pauses nothing; the end of the program does.

    Attributes:
        message_label: Beside the form: why the job couldn't begin, or what it would take.
        room_box: The model that answers gives its memory back first.
        start_button: Begins.
        pause_button: Pauses, or goes on.
        cancel_button: Gives up.
        again_button: Another job.

    Signals:
        room_needed: The model that answers is to give its memory back.
        ended: Nothing goes on any more in this job, which nobody has paused.
        progressed: How far the job is: the share of its present stage, negative where nothing
            runs, and the stage in words.
    """

    room_needed = Signal()
    ended = Signal(object)
    progressed = Signal(float, str)

    def __init__(self, parent: QWidget | None) -> None:
        """Make what all such dialogs have, below the window; `_build` puts it together."""
        super().__init__(parent)
        self.message_label = LiveLabel()
        self.message_label.hide()
        self.room_box = QCheckBox()
        self.start_button = QPushButton(self.tr("Start"))
        self.pause_button = QPushButton(self.tr("Pause"))
        self.cancel_button = QPushButton()
        self.again_button = QPushButton()
        self._about_label = QLabel()
        self._about_label.setWordWrap(True)
        self._about_label.setTextFormat(Qt.TextFormat.PlainText)
        self._pages = QStackedWidget()
        self._had_focus = False  # the pause button, before it was disabled
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        close_by_key(self)

    def _build(
        self, note: str, form: QWidget, view: QWidget, further: Sequence[QPushButton]
    ) -> None:
        """Lay out the dialog, and connect its buttons.

        Args:
            note: What such jobs are.
            form: What is wanted.
            view: The job as it goes.
            further: More buttons.
        """
        note_label = QLabel(note)
        note_label.setWordWrap(True)
        note_label.setProperty("class", "muted")
        wanted = QWidget()
        column = QVBoxLayout(wanted)
        column.setContentsMargins(0, 0, 0, 0)
        for part in (form, self.room_box, self.message_label):
            column.addWidget(part)
        column.addStretch(1)
        self._pages.addWidget(wanted)
        self._pages.addWidget(view)
        buttons = QHBoxLayout()
        for button in (self.cancel_button, self.again_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        for button in (*further, self.pause_button, self.start_button):
            buttons.addWidget(button)
        for button in (self.cancel_button, self.again_button, *further):
            button.setAutoDefault(False)  # Enter begins or pauses, and gives nothing up
        outer = QVBoxLayout(self)
        outer.addWidget(self._about_label)
        outer.addWidget(note_label)
        outer.addWidget(self._pages, 1)
        outer.addLayout(buttons)
        self.start_button.clicked.connect(self._begin)
        self.pause_button.clicked.connect(self._pause_or_go_on)
        self.cancel_button.clicked.connect(self._give_up)
        self.again_button.clicked.connect(self._forget)
        self._timer.timeout.connect(self._look)

    def _show_state(self, state: JobStatus | None, *, can_start: bool) -> None:
        """Show the page and the buttons for a job.

        Args:
            state: How far it is; None where there is none.
            can_start: The form has what a job needs.
        """
        goes_on = state is not None and not state.is_done
        self._pages.setCurrentIndex(0 if state is None else 1)
        self.start_button.setVisible(state is None)
        self.start_button.setEnabled(can_start)
        self.start_button.setDefault(state is None)
        self.pause_button.setVisible(goes_on)
        self.pause_button.setDefault(goes_on)
        self.cancel_button.setVisible(goes_on)
        self.again_button.setVisible(state is not None and state.is_done)
        if state is not None:
            can_change = (state.is_running or state.is_over) and not state.is_pausing
            if not can_change and self.pause_button.hasFocus():
                self._had_focus = True
                self.setFocus()  # else Qt takes the next button, which gives the job up
            self.pause_button.setEnabled(can_change)
            if can_change and self._had_focus:
                self._had_focus = False
                self.pause_button.setFocus()
            self.pause_button.setText(self.tr("Resume") if state.is_over else self.tr("Pause"))
        if state is not None and state.is_running:
            self.progressed.emit(state.share, state.stage)
        else:
            self.progressed.emit(-1.0, "")

    def _show_message(self, text: str = "") -> None:
        """Say something beside the form, or nothing."""
        self.message_label.setVisible(bool(text))
        self.message_label.setText(text)

    def _begin(self) -> None:
        """Begin the job that the form describes."""
        raise NotImplementedError

    def _pause_or_go_on(self) -> None:
        """Pause a job that runs; go on with another."""
        raise NotImplementedError

    def _give_up(self) -> None:
        """Give up, if the user means it."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Offer another job."""
        raise NotImplementedError

    def _look(self) -> None:
        """See how far it is."""
        raise NotImplementedError
