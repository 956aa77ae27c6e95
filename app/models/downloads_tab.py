"""Tab of downloads."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.state.library import LibraryState
from app.widgets.number_edit import DecimalBox
from app.widgets.plain_label import plain_label
from app.widgets.sizes import (
    duration,
    library_text,
    on_disk,
)
from app.widgets.table import RowTable
from medusa_core.api import DownloadJob, JobState, Library, with_limit

COLUMNS = (
    QT_TRANSLATE_NOOP("Library", "Model"),
    QT_TRANSLATE_NOOP("Library", "State"),
    QT_TRANSLATE_NOOP("Library", "Progress"),
    QT_TRANSLATE_NOOP("Library", "Speed"),
    QT_TRANSLATE_NOOP("Library", "Left"),
)
STATE_WORDS = {
    JobState.QUEUED: QT_TRANSLATE_NOOP("Library", "waits for its turn"),
    JobState.DOWNLOADING: QT_TRANSLATE_NOOP("Library", "downloading"),
    JobState.PAUSED: QT_TRANSLATE_NOOP("Library", "paused"),
    JobState.VERIFYING: QT_TRANSLATE_NOOP("Library", "verifying"),
    JobState.READY: QT_TRANSLATE_NOOP("Library", "ready"),
    JobState.FAILED: QT_TRANSLATE_NOOP("Library", "failed"),
    JobState.CANCELLED: QT_TRANSLATE_NOOP("Library", "cancelled"),
}
_SHOW_EVERY_MS = 100


class DownloadsTab(QWidget):
    """Table of downloads, with buttons for the selected one.

    Attributes:
        table: The downloads, the newest first.
        reason_label: Why the selected download waits, is paused or failed.
        pause_button: Pauses, resumes or tries again.
        cancel_button: Cancels it.
        forget_button: Removes an ended download from the list.
        limit_box: Speed limit in MB/s; 0 for none.

    """

    def __init__(self, state: LibraryState, library: Library) -> None:
        super().__init__()
        self._library = library
        self._downloads = library.downloads
        self.table = RowTable(self.tr("Downloads"), [library_text(name) for name in COLUMNS])
        self.reason_label = plain_label(name="notice")
        self.pause_button = QPushButton(self.tr("Pause"))
        self.cancel_button = QPushButton(self.tr("Cancel"))
        self.forget_button = QPushButton(self.tr("Remove from list"))
        self.limit_box = self._make_limit_box()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SHOW_EVERY_MS)
        self._timer.timeout.connect(self.show_jobs)
        self._build()
        state.download_changed.connect(self._changed)
        self.table.currentCellChanged.connect(lambda *_: self._show_chosen())
        self.show_jobs()

    @property
    def jobs(self) -> tuple[DownloadJob, ...]:
        """Downloads in the order of the rows."""
        return tuple(reversed(self._downloads.jobs))

    @property
    def chosen(self) -> DownloadJob | None:
        """The selected download."""
        row = self.table.currentRow()
        return self.jobs[row] if 0 <= row < len(self.jobs) else None

    def show_jobs(self) -> None:
        """Show the current state of all downloads."""
        self.table.show_rows([cells(job) for job in self.jobs])
        if self.jobs and self.table.currentRow() < 0:
            self.table.selectRow(0)
        self._show_chosen()

    def _build(self) -> None:
        buttons = QHBoxLayout()
        buttons.addWidget(self.reason_label, 1)
        limit_label = QLabel(self.tr("Speed limit"))
        limit_label.setBuddy(self.limit_box)
        buttons.addWidget(limit_label)
        buttons.addWidget(self.limit_box)
        for button in (self.pause_button, self.cancel_button, self.forget_button):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.addWidget(self.table, 1)
        column.addLayout(buttons)
        self.pause_button.clicked.connect(self._pause_or_resume)
        self.cancel_button.clicked.connect(self._cancel)
        self.forget_button.clicked.connect(self._forget)
        self.limit_box.valueChanged.connect(self._set_limit)

    def _make_limit_box(self) -> DecimalBox:
        box = DecimalBox()
        box.setAccessibleName(self.tr("Most megabytes a second"))
        box.setToolTip(self.tr("Applies to downloads that start or resume from now on."))
        box.setRange(0, 10_000)
        box.setDecimals(1)
        box.setSpecialValueText(self.tr("no limit"))
        box.setSuffix(self.tr(" MB/s at most"))
        return box

    def _changed(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _show_chosen(self) -> None:
        job = self.chosen
        is_over = job is None or job.state.is_over
        can_resume = job is not None and job.state in (JobState.PAUSED, JobState.FAILED)
        self.pause_button.setEnabled(can_resume or not is_over)
        failed = job is not None and job.state is JobState.FAILED
        self.pause_button.setText(self._pause_word(failed, can_resume))
        self.cancel_button.setEnabled(not is_over)
        self.forget_button.setEnabled(job is not None and is_over)
        words = (
            ""
            if job is None
            else engine_text(job.waits_for)
            or f"{engine_text(job.reason)} {engine_text(job.hint)}".strip()
        )
        self.reason_label.setText(words)

    def _pause_word(self, failed: bool, can_resume: bool) -> str:
        if failed:
            return self.tr("Try again")
        return self.tr("Resume") if can_resume else self.tr("Pause")

    def _pause_or_resume(self) -> None:
        job = self.chosen
        if job is None:
            return
        if job.state in (JobState.PAUSED, JobState.FAILED):
            self._downloads.resume(job.id)
        else:
            self._downloads.pause(job.id)

    def _cancel(self) -> None:
        if (job := self.chosen) is not None:
            self._downloads.cancel(job.id)

    def _set_limit(self, mb_per_s: float) -> None:
        self._library.change_settings(with_limit(self._library.settings, mb_per_s))

    def _forget(self) -> None:
        if (job := self.chosen) is not None:
            self._downloads.forget(job.id)
            self.show_jobs()


def cells(job: DownloadJob) -> tuple[str, ...]:
    """Return the cells of a download's row."""
    progress, left = "–", ""
    if job.total_bytes:
        share = job.done_bytes / job.total_bytes
        progress = QCoreApplication.translate("Library", "{0} of {1}").format(
            f"{Number(share):.0%}", on_disk(job.total_bytes)
        )
    if job.eta_s is not None and job.state is JobState.DOWNLOADING:
        left = duration(job.eta_s)
    speed = f"{Number(job.bytes_per_s / 1e6):.1f} MB/s" if job.bytes_per_s else ""
    state = library_text(
        QT_TRANSLATE_NOOP("Library", "stalled") if job.waits_for else STATE_WORDS[job.state]
    )
    return (
        " + ".join(dict.fromkeys(repo for repo, _ in job.pair.repos)),
        state,
        progress,
        speed,
        left,
    )
