"""Read documents in sandboxed processes, with limits of time and memory."""

from __future__ import annotations

from typing import NamedTuple

from medusa_core.chats.attachments.reader import ERRORS, check_answer
from medusa_core.chats.attachments.worker import MEMORY_BYTES
from medusa_core.documents.chunks import Chunk
from medusa_core.documents.sections import MOST_CHARS
from medusa_core.errors import AttachmentError
from medusa_core.i18n import text_from_json
from medusa_core.system.sandbox.worker import WorkerProcess

_MOST_S = 120.0
_MODULE = "medusa_core.documents.worker"
_MOST_LINE_CHARS = 12 * MOST_CHARS  # JSON escapes a character outside the BMP as 12
_MOST_FILES = 500  # of a process, since parsers may leak memory


class ReadDocument(NamedTuple):
    """A document that was read.

    Attributes:
        digest: Hash of the file.
        chunks: Its chunks; None if the hash is the one that was given.
    """

    digest: str
    chunks: list[Chunk] | None


class DocumentReader:
    """Reads documents one after the other in a process, which is replaced after it failed."""

    def __init__(self, most_s: float = _MOST_S) -> None:
        """Prepare; the process is started for the first document.

        Args:
            most_s: Timeout for a document.
        """
        self._most_s = most_s
        self._worker: WorkerProcess | None = None
        self._num_read = 0
        self._is_stopped = False

    def read(self, path: str, digest: str) -> ReadDocument:
        """Read a document, which may take minutes.

        Args:
            path: Absolute path without links.
            digest: Hash of the file when it was read last; empty if it wasn't.

        Raises:
            AttachmentError: The file has no text or too much, or takes too long.
        """
        answer = self._started().request({"path": path, "digest": digest}, self._most_s)
        check_answer(answer)
        if "chunks" not in answer:
            return ReadDocument(str(answer["digest"]), None)
        chunks = [
            Chunk(text_from_json(place), str(heading), str(text))
            for place, heading, text in answer["chunks"]
        ]
        return ReadDocument(str(answer["digest"]), chunks)

    def stop(self) -> None:
        """Kill the process while another thread reads; nothing can be read any more."""
        self._is_stopped = True
        if (worker := self._worker) is not None:
            worker.kill()

    def close(self) -> None:
        """End the process, once no thread reads."""
        self._end()

    def _started(self) -> WorkerProcess:
        """Return the process, which is started or replaced if needed."""
        if self._num_read >= _MOST_FILES:
            self._end()
        worker = self._worker
        if worker is None or worker.sandbox is None:
            worker = WorkerProcess(_MODULE, ERRORS, MEMORY_BYTES, _MOST_LINE_CHARS)
            self._worker, self._num_read = worker, 0
            worker.start()
        self._num_read += 1
        if self._is_stopped:
            raise AttachmentError("Reading was stopped.")
        return worker

    def _end(self) -> None:
        """End the process; the next document gets a new one."""
        if self._worker is not None:
            self._worker.close()
        self._worker = None
