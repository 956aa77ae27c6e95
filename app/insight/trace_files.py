"""Saves recorded answers and opens them again; saves pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtWidgets import QWidget

from app.chat.error_board import ErrorBoard
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.recordings import MAX_STEPS, Recordings
from app.insight.timeline import Timeline
from app.insight.track import Track
from app.widgets.file_dialogs import choose_file, choose_save_path
from medusa_core.api import Recording, read_trace, write_trace
from medusa_core.errors import TraceError

if TYPE_CHECKING:
    from app.insight.tree_view import TreeView

TRACES = QT_TRANSLATE_NOOP("Insight", "Traces (*.json)")
PICTURES = QT_TRANSLATE_NOOP("Insight", "Pictures (*.svg *.png)")
LOADED = "file"  # request of a track that was read from a file


class TraceFiles(QObject):
    """Saves and opens traces and pictures; failures are shown as errors.

    Signals:
        opened: A trace was read, and will be shown.
        saved: A trace or a picture was written to this path.
    """

    opened = Signal()
    saved = Signal(object)
    # From the threads that read and write.
    _read = Signal(str, object)
    _failed = Signal(object, object)

    def __init__(
        self, window: QWidget, errors: ErrorBoard, recordings: Recordings, timeline: Timeline
    ) -> None:
        super().__init__(window)
        self._window = window
        self._errors = errors
        self._recordings = recordings
        self._timeline = timeline
        self._read.connect(self._show)
        self._failed.connect(errors.show_error)

    def ask_to_open(self) -> None:
        """Ask for a trace and open it."""
        kinds = QCoreApplication.translate("Insight", TRACES)
        if path := choose_file(self._window, self.tr("Open a trace"), kinds):
            self.open_trace(path)

    def open_trace(self, path: Path) -> None:
        """Read a recorded answer and show it, or an error."""
        self._apart(lambda: self._read.emit(path.name, _read(path)))

    def _show(self, name: str, recording: Recording) -> None:
        self._recordings.forget(LOADED)
        track = track_of(recording)
        track.file = name
        self._recordings.put(track)
        self.opened.emit()
        self._timeline.show(track, 0)

    def ask_to_save(self) -> None:
        """Ask for a file, and save the shown answer."""
        problem = self._unsavable()
        if problem:
            self._errors.show_error(self.tr("There is no whole recording to save."), problem)
            return
        kinds = QCoreApplication.translate("Insight", TRACES)
        path, _ = choose_save_path(self._window, self.tr("Save the trace"), "trace.json", kinds)
        if path:
            self.save_trace(path if path.suffix else path.with_suffix(".json"))

    def save_trace(self, path: Path) -> None:
        """Save the shown answer, or show an error."""
        track = self._timeline.track
        recording = None if track is None else recording_of(track)
        if recording is not None:
            self._apart(lambda: self._write(recording, path))

    def _write(self, recording: Recording, path: Path) -> None:
        write_trace(path, recording)
        self.saved.emit(path)

    def _apart(self, work: Callable[[], None]) -> None:
        """Run work in a thread, since ten thousand steps take a second or two."""

        def run() -> None:
            try:
                work()
            except TraceError as error:
                self._failed.emit(error.message, error.hint)

        threading.Thread(target=run, name="trace-file").start()

    def _unsavable(self) -> str:
        """Return why the shown answer can't be saved; empty if it can."""
        track = self._timeline.track
        if track is None or not len(track):
            return self.tr("Ask something first, with recording on.")
        if track.has_failed:
            return self.tr("This answer broke off with an error; ask again.")
        if track.done is None:
            return self.tr("Wait for the end of the answer.")
        if track.num_dropped:
            return self.tr("Its first steps have left the buffer: newer answers needed the room.")
        return ""

    def ask_for_picture(self, view: TreeView) -> None:
        """Ask for a file, and save the shown tree."""
        if not view.layout_shown.nodes:
            self._errors.show_error(
                self.tr("There is no tree to save."), self.tr("Ask something first.")
            )
            return
        kinds = QCoreApplication.translate("Insight", PICTURES)
        path, _ = choose_save_path(self._window, self.tr("Save the picture"), "tree.svg", kinds)
        if path:
            self.save_picture(view, path if path.suffix else path.with_suffix(".svg"))

    def save_picture(self, view: TreeView, path: Path) -> None:
        """Save the shown tree as SVG or PNG, or show an error."""
        from app.insight.pictures import PictureError, save_picture

        try:
            save_picture(view, path)
        except PictureError as error:
            self._errors.show_error(error.message, error.hint)
        else:
            self.saved.emit(path)


def _read(path: Path) -> Recording:
    """Read a trace of at most `MAX_STEPS` steps.

    Raises:
        TraceError: The trace can't be read or is too long.
    """
    recording = read_trace(path)
    if len(recording.steps) > MAX_STEPS:
        raise TraceError(
            QCoreApplication.translate(
                "Insight", "{0} has {1:,} steps; {2:,} can be shown."
            ).format(path.name, Number(len(recording.steps)), Number(MAX_STEPS)),
            QCoreApplication.translate("Insight", "Record a shorter answer."),
        )
    return recording


def recording_of(track: Track) -> Recording | None:
    """Return a track as a recording; None if its first steps are missing."""
    if track.done is None or not len(track) or track.has_failed or track.num_dropped:
        return None
    return Recording(track.model, tuple(track[index] for index in range(len(track))), track.done)


def track_of(recording: Recording, request_id: str = LOADED) -> Track:
    """Return the track of a recording."""
    done = recording.done
    track = Track(request_id, recording.model, done.settings.rule, done.num_given_tokens)
    for step in recording.steps:
        track.add(step)
    track.done = done
    return track
