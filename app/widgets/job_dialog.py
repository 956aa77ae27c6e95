"""Base of dialogs for long jobs: a form, and a view of the progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QTimer, Signal
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
from app.widgets.plain_label import plain_label

_LOOK_MS = 500


class JobStatus(NamedTuple):
    """State of a job.

    Attributes:
        is_running: Whether its process runs.
        is_over: Whether it is done, paused or failed.
        is_done: Whether it is done.
        is_pausing: Whether it is about to pause.
        share: Progress of the stage while it runs.
        stage: Current stage and its remaining time.
    """

    is_running: bool
    is_over: bool
    is_done: bool
    is_pausing: bool = False
    share: float = 0.0
    stage: str = ""


class JobDialog(QDialog):
    """Dialog for one job at a time, which can be paused, resumed and cancelled.

    Closing the dialog doesn't pause the job; the end of the program does.

    Attributes:
        message_label: Error of the start, or estimated needs, beside the form.
        room_box: Unloads the loaded model before the start.
        start_button: Starts the job.
        pause_button: Pauses or resumes the job.
        cancel_button: Cancels the job.
        again_button: Shows the form for another job.

    Signals:
        room_needed: The loaded model must be unloaded.
        ended: The job ended without being paused.
        progressed: Progress of the stage, negative if nothing
            runs, and the stage as text.
    """

    room_needed = Signal()
    ended = Signal(object)
    progressed = Signal(float, str)

    def __init__(self, parent: QWidget | None) -> None:
        """Create the common widgets; `_build` lays them out."""
        super().__init__(parent)
        self.message_label = LiveLabel()
        self.message_label.hide()
        self.room_box = QCheckBox()
        self.start_button = QPushButton(self.tr("Start"))
        self.pause_button = QPushButton(self.tr("Pause"))
        self.cancel_button = QPushButton()
        self.again_button = QPushButton()
        self._about_label = plain_label()
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
            note: Explanation of such jobs.
            form: Settings of the job.
            view: Progress of the job.
            further: Additional buttons.
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
        self._timer.timeout.connect(self._poll)

    def _show_state(self, state: JobStatus | None, *, can_start: bool) -> None:
        """Show the page and buttons for a state.

        Args:
            state: State of the job; None without one.
            can_start: Whether the form is complete.
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
        """Show a message beside the form; an empty one hides it."""
        self.message_label.setVisible(bool(text))
        self.message_label.setText(text)

    def pause_on_exit(self) -> None:
        """Pause a running job at the program's exit."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Start a job with the settings of the form."""
        raise NotImplementedError

    def _pause_or_go_on(self) -> None:
        """Pause a running job, or resume a paused one."""
        raise NotImplementedError

    def _give_up(self) -> None:
        """Cancel the job after a confirmation."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Show the form for another job."""
        raise NotImplementedError

    def _poll(self) -> None:
        """Update the progress."""
        raise NotImplementedError
