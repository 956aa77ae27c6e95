"""Dialog that trains heads: settings, estimated needs, and progress."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.i18n.engine_texts import error_text
from app.i18n.numbers import Number
from app.theme.appearance import Appearance
from app.training.train_form import TrainForm
from app.training.train_run import TrainRun
from app.widgets.explain import explain
from app.widgets.job_dialog import JobDialog, JobStatus
from app.widgets.questions import confirms
from app.widgets.sizes import (
    duration,
    on_disk,
    speed,
)
from medusa_core.api import HeadsNeeds, HeadsTraining, ModelConfig, NeedsQuery, OwnHeads
from medusa_core.errors import MedusaError

log = logging.getLogger(__name__)

_SIZE = QSize(620, 520)


class TrainDialog(JobDialog):
    """Dialog for one training run at a time.

    Attributes:
        form: Settings of the run.
        view: Progress of the run.
        run: The run; None before it starts.
        needs_button: Estimates the needs of the run.

    Signals:
        made: Heads were written to this folder.
    """

    made = Signal(Path)

    def __init__(
        self,
        own_heads: OwnHeads,
        appearance: Appearance,
        history: str = "",
        parent: QWidget | None = None,
    ) -> None:
        """Show an unfinished run, if there is one.

        Args:
            own_heads: Folder of all runs.
            appearance: The theme.
            history: File of the user's chats; empty for none.
            parent: Parent widget.
        """
        super().__init__(parent)
        self.setWindowTitle(self.tr("Train heads"))
        self.resize(_SIZE)
        self._own_heads = own_heads
        self._model = self._name = self._quant = self._device = ""
        self._query: NeedsQuery | None = None
        self._is_pausing = False
        self._query_dir: TemporaryDirectory[str] | None = None
        self.run: HeadsTraining | None = next(iter(own_heads.unfinished()), None)
        self.form = TrainForm(history)
        self.view = TrainRun(appearance)
        self.room_box.setText(self.tr("Unload the model that answers while heads are trained"))
        explain(
            self.room_box,
            self.tr("Chatting loads it again. On a card both rarely fit; training then says so."),
        )
        self.cancel_button.setText(self.tr("Cancel training…"))
        self.again_button.setText(self.tr("Train others…"))
        self.needs_button = QPushButton(self.tr("What would it take?"))
        note = self.tr(
            "The model answers questions, and heads learn to draft its answers; the model itself "
            "stays as it is. You can chat meanwhile: both are slower then."
        )
        self._build(note, self.form, self.view, [self.needs_button])
        self.needs_button.clicked.connect(self._ask_needs)
        self.form.changed.connect(lambda: self._show_message())
        appearance.changed.connect(self.view.restyle)
        self._show()

    def offer(
        self, name: str, model: str, quant: str, device: str, config: ModelConfig | None = None
    ) -> None:
        """Set the model of the next run, unless one is unfinished.

        Args:
            name: Name of the model.
            model: Its folder or file.
            quant: Its weight format; empty for the default.
            device: Device; empty to select the best.
            config: Its configuration; None if unknown.
        """
        self.form.show_model(config)
        self._name, self._model, self._quant, self._device = name, model, quant, device
        if self.run is not None and self.run.progress().stage == "done":
            spec = self.run.spec
            self.run = self.run if spec is not None and spec.model == model else None
        self._show_message()
        self._show()

    def resume(self) -> None:
        """Resume a paused run."""
        if self.run is not None and not self.run.is_running:
            self._start()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._end_query()
        super().closeEvent(event)

    def pause_on_exit(self) -> None:
        """Pause a running training at the end of the program."""
        self._end_query()
        self._timer.stop()
        if self.run is not None:
            self.run.pause()

    # What is wanted ------------------------------------------------------------------------------

    def _ask_needs(self) -> None:
        self._end_query()
        self._query_dir = TemporaryDirectory(prefix="medusa-needs-", ignore_cleanup_errors=True)
        spec = self.form.spec(self._model, self._quant, self._device)
        try:
            self._query = NeedsQuery(spec, Path(self._query_dir.name))
        except MedusaError as error:
            self._show_message(error_text(error))
            return
        self._show_message(self.tr("Loading the model and trying it: a minute or two…"))
        self._timer.start()
        self._show()

    def _end_query(self) -> None:
        if self._query is not None:
            self._query.close()
            self._query = None
        if self._query_dir is not None:
            self._query_dir.cleanup()
            self._query_dir = None

    def _poll_query(self) -> None:
        assert self._query is not None
        try:
            needs = self._query.answer()
        except MedusaError as error:
            self._show_message(error_text(error))
        else:
            if needs is None:
                return
            self._show_message(self._needs_shown(needs))
        self._end_query()
        self._show()

    def _needs_shown(self, needs: HeadsNeeds) -> str:
        return self.tr(
            "Peak memory {0} · disk {1} for states and checkpoints · the model writes {2} "
            "tokens/s · about {3} · expected: {4:.1f} tokens per step"
        ).format(
            on_disk(needs.peak_bytes),
            on_disk(needs.disk_bytes),
            speed(needs.tokens_per_s),
            duration(3600 * needs.hours),
            Number(needs.tau),
        )

    def _begin(self) -> None:
        self._end_query()
        spec = self.form.spec(self._model, self._quant, self._device)
        try:
            self.run = self._own_heads.begin(spec, self._name)
        except MedusaError as error:
            self._show_message(error_text(error))
            return
        self._start()

    # The run -------------------------------------------------------------------------------------

    def _start(self) -> None:
        assert self.run is not None
        if self.room_box.isChecked():
            self.room_needed.emit()
        try:
            self.run.start()
        except MedusaError as error:
            self._show_message(error_text(error))
            self.run.remove()
            self.run = None
        else:
            log.info("training heads in %s", self.run.out)
            self._timer.start()
        self._show()

    def _poll(self) -> None:
        if self._query is not None:
            self._poll_query()
        if self.run is not None:
            progress = self.run.progress()
            if not self.run.is_running:
                self._is_pausing = False
            if progress.is_over and not self.run.is_running:
                self._timer.stop()
                if progress.stage == "done":
                    self.made.emit(self.run.out)
                if progress.stage != "paused":
                    self.ended.emit(self.run)
            self._show()
        elif self._query is None:
            self._timer.stop()

    def _pause_or_go_on(self) -> None:
        if self.run is not None and self.run.is_running:
            self.run.pause()
            self._is_pausing = True  # until it has stopped
            self._show()
        else:
            self._start()

    def _give_up(self) -> None:
        question = self.tr("Cancel the training, and delete what it has?")
        if self.run is not None and confirms(self, question, str(self.run.out)):
            self.run.remove()
            self._forget()

    def _forget(self) -> None:
        self.run = next(iter(self._own_heads.unfinished()), None)
        self._show_message()
        self._show()

    def _show(self) -> None:
        run, state = self.run, None
        if run is not None:
            progress = run.progress()
            self.view.show_progress(progress, is_pausing=self._is_pausing)
            is_done = progress.stage == "done"
            state = JobStatus(
                run.is_running,
                progress.is_over,
                is_done,
                self._is_pausing,
                progress.share,
                self.view.stage_label.text(),
            )
        self._about_label.setText(self._about())
        self.needs_button.setVisible(run is None)
        self.needs_button.setEnabled(bool(self._model) and self._query is None)
        self._show_state(state, can_start=bool(self._model))

    def _about(self) -> str:
        if self.run is None:
            name = f"{self._name} ({self._quant})" if self._quant else self._name
            return self.tr("Heads for {0}").format(name)
        return self.tr("Heads in {0}").format(self.run.out)
