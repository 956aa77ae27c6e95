"""The Batch page: what is wanted, and the batch as it goes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
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

from app.batch.batch_form import BatchForm
from app.batch.batch_view import BatchView
from app.i18n.engine_texts import error_text
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key
from app.widgets.live_label import LiveLabel
from app.widgets.questions import confirms
from medusa_core.api import BatchJob, OwnBatches
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import RuleChoice

log = logging.getLogger(__name__)

_WIDTH_EM, _HEIGHT_EM = 52, 46
_LOOK_MS = 500


class BatchDialog(QDialog):
    """One batch at a time: chosen, begun, watched, paused, gone on with, or given up.

    Closing it pauses nothing. The end of the program pauses the batch; the next start goes on.

    Attributes:
        form: What is wanted.
        view: The batch.
        job: It; None before one is begun.
        problem_label: Why it couldn't begin.
        room_box: The model that answers gives its memory back first.
        start_button: Begins.
        pause_button: Pauses, or goes on.
        cancel_button: Gives up; answers that are there stay.
        open_button: Opens the file of answers.
        again_button: Another batch.

    Signals:
        room_needed: The model that answers is to give its memory back.
        ended: Nothing goes on any more in this batch (a `BatchJob`), which nobody has paused.
    """

    room_needed = Signal()
    ended = Signal(object)

    def __init__(
        self,
        batches: OwnBatches,
        tiers: Path,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        """Show a batch that isn't finished, if there is one.

        Args:
            batches: All of them.
            tiers: Folder for layers of models that are larger than the memory they may take.
            appearance: Of the window.
            parent: The window above.
        """
        super().__init__(parent)
        self.setWindowTitle(self.tr("Batch"))
        self.resize(appearance.scale.px(_WIDTH_EM), appearance.scale.px(_HEIGHT_EM))
        self._batches = batches
        self._model: ModelChoice | None = None
        self._device = ""
        self.job = self._unfinished()
        self.form = BatchForm(tiers)
        self.view = BatchView(appearance)
        self._about_label = QLabel()
        self._about_label.setWordWrap(True)
        self._about_label.setTextFormat(Qt.TextFormat.PlainText)
        self.problem_label = LiveLabel()
        self.room_box = QCheckBox(self.tr("Unload the model that answers in the chat"))
        self.start_button = QPushButton(self.tr("Start"))
        self.pause_button = QPushButton()
        self.cancel_button = QPushButton(self.tr("Cancel batch…"))
        self.open_button = QPushButton(self.tr("Open the answers"))
        self.again_button = QPushButton(self.tr("Another batch…"))
        self._pages = QStackedWidget()
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._build()
        self._connect()
        appearance.changed.connect(self.view.restyle)
        close_by_key(self)
        self._show()

    def offer(self, model: ModelChoice, device: str, rules: Iterable[RuleChoice]) -> None:
        """Let this model answer, unless a batch isn't finished.

        Args:
            model: The model that is chosen in the window.
            device: Where to run; empty for the best there is.
            rules: How tokens may be chosen, the usual one first.
        """
        self.form.offer_rules(rules)
        self._model, self._device = model, device
        if self.job is not None and self.job.state().stage == "done":
            self.job = None
        self._show()

    def go_on(self) -> bool:
        """Go on with a batch that ran when the program ended; False where none did."""
        if self.job is None or self.job.is_running or not self.job.was_running:
            return False
        self._start()
        return True

    def close_job(self) -> None:
        """Pause what runs, as the program ends."""
        self._timer.stop()
        if self.job is not None:
            self.job.leave()

    def _build(self) -> None:
        note = QLabel(
            self.tr(
                "Many conversations are answered at once, each as it would be alone. What is "
                "answered is never done again, whatever happens."
            )
        )
        note.setWordWrap(True)
        note.setProperty("class", "muted")
        wanted = QWidget()
        column = QVBoxLayout(wanted)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.form)
        column.addWidget(self.room_box)
        column.addWidget(self.problem_label)
        column.addStretch(1)
        self._pages.addWidget(wanted)
        self._pages.addWidget(self.view)
        buttons = QHBoxLayout()
        for button in (self.cancel_button, self.again_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        for button in (self.open_button, self.pause_button, self.start_button):
            buttons.addWidget(button)
        self.start_button.setDefault(True)
        outer = QVBoxLayout(self)
        outer.addWidget(self._about_label)
        outer.addWidget(note)
        outer.addWidget(self._pages, 1)
        outer.addLayout(buttons)

    def _connect(self) -> None:
        self.start_button.clicked.connect(self._begin)
        self.pause_button.clicked.connect(self._pause_or_go_on)
        self.cancel_button.clicked.connect(self._give_up)
        self.open_button.clicked.connect(self._open)
        self.again_button.clicked.connect(self._forget)
        self.form.changed.connect(self._show)
        self._timer.timeout.connect(self._look)

    def _begin(self) -> None:
        assert self._model is not None  # the button is off before
        try:
            self.job = self._batches.begin(self.form.wish(self._model, self._device))
        except MedusaError as error:
            self.problem_label.setText(error_text(error))
            return
        if self.room_box.isChecked():
            self.room_needed.emit()
        self._start()

    def _start(self) -> None:
        assert self.job is not None
        self.problem_label.clear()
        try:
            self.job.start()
        except MedusaError as error:
            self.problem_label.setText(error_text(error))
            self.job.remove()
            self.job = None
        else:
            log.info("a batch runs in %s", self.job.folder)
            self._timer.start()
        self._show()

    def _look(self) -> None:
        state = None if self.job is None else self.job.state()
        if self.job is None or (state is not None and state.is_over and not self.job.is_running):
            self._timer.stop()
            if state is not None and state.stage != "paused":
                self.ended.emit(self.job)
        self._show()

    def _pause_or_go_on(self) -> None:
        if self.job is not None and self.job.is_running:
            self.job.pause()
            self.pause_button.setEnabled(False)  # until it has stopped
        else:
            self._start()

    def _give_up(self) -> None:
        question = self.tr("Cancel the batch? The answers that are there stay.")
        if self.job is not None and confirms(self, question, self._out()):
            self._forget()

    def _forget(self) -> None:
        if self.job is not None:
            self.job.remove()
        self.job = self._unfinished()
        self._show()

    def _unfinished(self) -> BatchJob | None:
        """The newest one, but first one that ran when the program ended."""
        jobs = sorted(self._batches.unfinished(), key=lambda job: not job.was_running)
        return jobs[0] if jobs else None

    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._out()))

    def _out(self) -> str:
        wish = None if self.job is None else self.job.wish
        return "" if wish is None else wish.out

    def _show(self) -> None:
        job = self.job
        self._about_label.setText(self._about())
        self._pages.setCurrentIndex(0 if job is None else 1)
        state = None if job is None else job.state()
        is_done = state is not None and state.stage == "done"
        is_over = state is None or state.is_over
        if state is not None:
            self.view.show_file(Path(self._out()))
            self.view.show_state(state)
        self.start_button.setVisible(job is None)
        self.start_button.setEnabled(self._model is not None and self.form.is_complete)
        self.pause_button.setVisible(job is not None and not is_done)
        self.pause_button.setEnabled(job is not None and (job.is_running or is_over))
        self.pause_button.setText(self.tr("Resume") if is_over else self.tr("Pause"))
        self.cancel_button.setVisible(job is not None and not is_done)
        self.open_button.setVisible(job is not None)
        self.again_button.setVisible(is_done)
        self.problem_label.setVisible(bool(self.problem_label.text()))

    def _about(self) -> str:
        if self.job is None:
            name = "" if self._model is None else self._model.name
            return self.tr("{0} answers a file of prompts.").format(name)
        return self.tr("Answers go into {0}").format(self._out())
