"""Adds stored answers to the drafters' datastore, and removes those of deleted conversations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from PySide6.QtCore import QObject

from app.chat.controller import ChatController
from app.history.history_controller import HistoryController
from app.settings.preferences import Preferences
from app.settings.store import SettingsStore
from app.state.tasks import Tasks
from medusa_core.errors import MedusaError

log = logging.getLogger(__name__)


class DraftDataSync(QObject):
    """Keeps the drafters' datastore consistent with the history.

    Deletions that fail because the disk can't be written are reported, and repeated at the
    next start.
    """

    def __init__(
        self,
        chat: ChatController,
        controller: HistoryController,
        store: SettingsStore,
        folder: Path,
    ) -> None:
        """Connect history and datastore.

        Args:
            chat: Controller of the chat that answers.
            controller: Controller of the history.
            store: Settings, which can disable the datastore.
            folder: Folder of the datastore.
        """
        super().__init__(controller)
        self._chat, self._store, self._folder = chat, store, folder
        self._history = controller.history
        self._tasks = Tasks(self)
        store.follow("learning", self._follow)
        controller.trashed.connect(self._forget)
        controller.history.on_emptied(self._forget)

    @property
    def _learns(self) -> bool:
        # What isn't kept can't be deleted, and so its end isn't told.
        return self._store.values.learns and self._history.is_saved

    def tidy(self) -> None:
        """Repeat pending deletions of the last run in a thread."""
        self._tasks.start(self._tidy())

    async def _tidy(self) -> None:
        try:
            await asyncio.to_thread(self._forget_deleted_conversations)
        except MedusaError as error:
            log.warning("what was learned can't be tidied: %s", error.message)

    def _forget_deleted_conversations(self) -> None:
        """Delete draft data of conversations that the history no longer has; runs in a thread."""
        from medusa_core.api import forget_deleted_conversations

        if self._store.values.learns and self._history.is_saved and self._folder.is_dir():
            with closing(self._history.another()) as history:
                forget_deleted_conversations(
                    self._folder, lambda: [one.id for one in history.conversations()]
                )

    def _follow(self, now: Preferences) -> None:
        self._chat.updates_datastore = self._learns
        if not now.learns:
            from medusa_core.api import forget_answers

            self._report_failure(lambda: forget_answers(self._folder))

    def _forget(self, conversation_ids: tuple[str, ...]) -> None:
        from medusa_core.api import forget_answers

        self._report_failure(lambda: forget_answers(self._folder, conversation_ids))

    def _report_failure(self, forget: Callable[[], None]) -> None:
        try:
            forget()
        except MedusaError as error:
            self._chat.errors.show_error(error.message, error.hint)
