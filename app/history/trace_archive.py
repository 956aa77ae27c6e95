"""Stores the recorded steps of answers in the history, and loads them on request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QObject, Signal

from app.history.journal import Journal
from app.insight.insight_panels import Insight
from app.insight.trace_files import recording_of, track_of
from app.insight.track import Track
from medusa_core.api import History, Recording, pack_trace, unpack_trace
from medusa_core.errors import MedusaError

_AT_ONCE_BYTES = 60_000
log = logging.getLogger(__name__)


class TraceArchive(QObject):
    """Stores and loads the steps of answers.

    Packing and reading run in a thread, since thousands of steps take a second.
    """

    # Emitted in the thread; what is connected runs in the window's.

    _packed = Signal(str, bytes)
    _unpacked = Signal(object)

    def __init__(self, insight: Insight, history: History, journal: Journal) -> None:
        super().__init__()
        self._insight, self._history, self._journal = insight, history, journal
        self._requested: set[str] = set()
        self._threads: list[threading.Thread] = []
        insight.recorded.connect(self._keep)
        insight.recall = self.recall
        self._packed.connect(self._write)
        self._unpacked.connect(self._put)

    def recall(self, answer_id: str) -> None:
        """Add the stored steps of an answer to the recordings.

        Returns at once; the steps are added later.
        """
        if answer_id in self._requested:
            return
        self._requested.add(answer_id)
        try:
            packed = self._history.trace(answer_id)
        except MedusaError as error:
            log.warning("the trace of an answer can't be read: %s", error.message)
            return
        if packed is None:
            return
        if len(packed) <= _AT_ONCE_BYTES:
            self._unpack(answer_id, packed)
        else:
            self._apart(lambda: self._unpack(answer_id, packed))

    def finish(self) -> None:
        """Wait until all steps are packed and written."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        QCoreApplication.sendPostedEvents(self)

    def _keep(self, track: Track) -> None:
        recording = recording_of(track)
        if recording is not None:
            self._apart(lambda: self._pack(track.request_id, recording))

    def _pack(self, answer_id: str, recording: Recording) -> None:
        self._packed.emit(answer_id, pack_trace(recording))

    def _unpack(self, answer_id: str, packed: bytes) -> None:
        try:
            self._unpacked.emit(track_of(unpack_trace(packed), answer_id))
        except MedusaError as error:
            log.warning("%s", error.message)

    def _put(self, track: Track) -> None:
        self._insight.recordings.put(track)

    def _write(self, answer_id: str, packed: bytes) -> None:
        self._journal.write(lambda h: h.put_trace(answer_id, packed))

    def _apart(self, work: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name="kept-trace")
        self._threads.append(thread)
        thread.start()
