"""What isn't sent yet: a message that waits for the answer under way, files of other chats."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.chat.compose.composer import Composer
from app.chat.compose.queued_row import Queued
from medusa_core.api import Attachment


class Outbox(QObject):
    """Beside the composer of one window.

    Signals:
        ready: This (a `Queued`) is to be asked now.
    """

    ready = Signal(object)

    def __init__(self, composer: Composer, session_id: str) -> None:
        """Begin empty.

        Args:
            composer: Where the user writes.
            session_id: The conversation that is written for.
        """
        super().__init__()
        self._composer = composer
        self._session_id = session_id
        self._queued: Queued | None = None
        self._files: dict[str, tuple[Attachment, ...]] = {}
        composer.move_to(session_id)
        composer.queue_requested.connect(self.queue)
        composer.queued_row.edit_requested.connect(self.give_back)
        composer.queued_row.cancelled.connect(self._take)
        composer.read_late.connect(self._keep)

    @property
    def text(self) -> str:
        """What waits for the answer that is being written."""
        return "" if self._queued is None else self._queued.text

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files of that."""
        return () if self._queued is None else self._queued.attachments

    def queue(self, text: str) -> None:
        """Wait until the answer that is being written has ended; joins what waits already."""
        before = self._queued or Queued("", ())
        texts = (before.text, text.strip())
        files = (*before.attachments, *self._composer.files.attachments)
        self._queued = Queued("\n\n".join(filter(None, texts)), files)
        self._composer.clear()
        self._composer.queued_row.show_queued(self._queued)

    def send(self) -> None:
        """The answer has ended: ask what waited for that."""
        queued = self._take()
        if queued is not None:
            self.ready.emit(queued)

    def give_back(self) -> None:
        """Put what waits back into the composer."""
        queued = self._take()
        if queued is not None:
            self._composer.give_back(queued.text, queued.attachments)

    def move_to(self, session_id: str) -> None:
        """Another conversation is shown; what waits in the one before becomes its draft."""
        self.give_back()
        self._files[self._session_id] = self._composer.files.attachments
        self._session_id = session_id
        self._composer.move_to(session_id, self._files.pop(session_id, ()))

    def _take(self) -> Queued | None:
        queued, self._queued = self._queued, None
        self._composer.queued_row.show_queued(None)
        return queued

    def _keep(self, session_id: str, attachment: Attachment) -> None:
        """A file of a conversation that was left meanwhile waits for its return."""
        self._files[session_id] = (*self._files.get(session_id, ()), attachment)
