"""The Batch page: form and progress of a batch."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton, QWidget

from app.batch.batch_form import BatchForm
from app.batch.batch_view import BatchView, share_of
from app.i18n.engine_texts import error_text
from app.theme.appearance import Appearance
from app.widgets.job_dialog import JobDialog, JobStatus
from app.widgets.questions import confirms
from medusa_core.api import BatchJob, BatchState, OwnBatches, read_lines
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import RuleChoice

log = logging.getLogger(__name__)

_WIDTH_EM, _HEIGHT_EM = 52, 46


class BatchDialog(JobDialog):
    """Dialog for one batch at a time; a running one is resumed at the next start of the program.

    Attributes:
        form: Settings of the batch.
        view: Progress of the batch.
        job: The batch; None before it starts.
        open_button: Opens the answers' file.
    """

    def __init__(
        self,
        batches: OwnBatches,
        tiers: Path,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        """Show an unfinished batch, if there is one.

        Args:
            batches: Stored batches.
            tiers: Folder for offloaded layers.
            appearance: Appearance of the window.
            parent: Parent widget.
        """
        super().__init__(parent)
        self.resize(appearance.scale.px(_WIDTH_EM), appearance.scale.px(_HEIGHT_EM))
        self._batches = batches
        self._model: ModelChoice | None = None
        self._device = ""
        self._is_pausing = False
        self.job = self._unfinished()
        self.form = BatchForm(tiers)
        self.view = BatchView(appearance)
        self.room_box.setText(self.tr("Unload the model that answers in the chat"))
        self.cancel_button.setText(self.tr("Cancel batch…"))
        self.again_button.setText(self.tr("Another batch…"))
        self.open_button = QPushButton(self.tr("Open the answers"))
        note = self.tr(
            "Many conversations are answered at once, each as it would be alone. What is "
            "answered is never done again, whatever happens."
        )
        self._build(note, self.form, self.view, [self.open_button])
        self.open_button.clicked.connect(self._open)
        self.form.changed.connect(self._show)
        appearance.changed.connect(self.view.restyle)
        self._show()

    def offer(self, model: ModelChoice, device: str, rules: Iterable[RuleChoice]) -> None:
        """Set the model of the next batch, unless one is unfinished.

        Args:
            model: Model that is selected in the window.
            device: Device; empty to select the best.
            rules: Acceptance rules, the default first.
        """
        self.form.offer_rules(rules)
        self._model, self._device = model, device
        if self.job is not None and self.job.state().stage == "done":
            self.job = None
        self._show()

    def go_on(self) -> bool:
        """Resume a batch that ran when the program ended; returns whether there was one."""
        if self.job is None or self.job.is_running or not self.job.was_running:
            return False
        self._start()
        return True

    def pause_on_exit(self) -> None:
        """Pause a running batch at the end of the program."""
        self._timer.stop()
        if self.job is not None:
            self.job.pause_on_exit()

    def _begin(self) -> None:
        assert self._model is not None  # the button is off before
        spec = self.form.spec(self._model, self._device)
        try:
            read_lines(Path(spec.prompts))  # before a model is loaded for them
            self.job = self._batches.begin(spec)
        except MedusaError as error:
            self._show_message(error_text(error))
            return
        if self.room_box.isChecked():
            self.room_needed.emit()
        self._start()

    def _start(self) -> None:
        assert self.job is not None
        self._show_message()
        try:
            self.job.start()
        except MedusaError as error:
            self._show_message(error_text(error))
            self.job.remove()
            self.job = None
        else:
            log.info("a batch runs in %s", self.job.folder)
            self._timer.start()
        self._show()

    def _poll(self) -> None:
        state = None if self.job is None else self.job.state()
        if self.job is None or (state is not None and state.is_over and not self.job.is_running):
            self._timer.stop()
            if state is not None and state.stage != "paused":
                self.ended.emit(self.job)
        self._show()

    def _pause_or_go_on(self) -> None:
        if self.job is not None and self.job.is_running:
            self.job.pause()
            self._is_pausing = True  # until it has stopped
            self._show()
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
        """Return the newest unfinished batch, preferably one that ran when the program ended."""
        jobs = sorted(self._batches.unfinished(), key=lambda job: not job.was_running)
        return jobs[0] if jobs else None

    def _open(self) -> None:
        """Open the answers' file with the desktop's program."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._out()))

    def _out(self) -> str:
        spec = None if self.job is None else self.job.spec
        return "" if spec is None else spec.out

    def _show(self) -> None:
        job = self.job
        state = None if job is None else job.state()
        if job is None or not job.is_running:
            self._is_pausing = False
        if state is not None:
            self.view.show_file(Path(self._out()))
            self.view.show_state(state)
        self._about_label.setText(self._about())
        self.open_button.setVisible(job is not None)
        can_start = self._model is not None and self.form.is_complete
        self._show_state(None if job is None else self._state(job, state), can_start=can_start)

    def _state(self, job: BatchJob, progress: BatchState | None) -> JobStatus:
        """Convert a batch's progress to a `JobStatus`; None means that it can be resumed."""
        is_done = progress is not None and progress.stage == "done"
        is_over = progress is None or progress.is_over
        share = 0.0 if progress is None else share_of(progress)
        stage = self.view.stage_label.text()
        return JobStatus(job.is_running, is_over, is_done, self._is_pausing, share, stage)

    def _about(self) -> str:
        if self.job is None:
            name = "" if self._model is None else self._model.name
            return self.tr("{0} answers a file of prompts.").format(name)
        return self.tr("Answers go into {0}").format(self._out())
