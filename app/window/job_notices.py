"""Desktop notifications of completed jobs while the window is inactive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.chat.calls import AnswerRun
from app.chat.controller import ChatController
from app.desktop.notification import DesktopNotification
from app.desktop.notifier import Notifier
from app.history.chat_title import title_of
from app.settings.store import SettingsStore
from app.state.library import LibraryState
from medusa_core.api import JobState, resources_dir
from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.messages import StopReason

if TYPE_CHECKING:
    from medusa_core.api import BatchJob, DownloadJob, HeadsTraining

LONG_ANSWER_S = 20.0


class JobNotices(QObject):
    """Notifies about waiting tool calls, completed long answers, batches, downloads and trainings.

    Names of conversations and files are included only if the user allows it.

    Attributes:
        notifier: Shows them.
    """

    def __init__(
        self, window: QWidget, settings: SettingsStore, chat: ChatController, models: LibraryState
    ) -> None:
        """Connect to the jobs.

        Args:
            window: Notifications are shown only while it is inactive.
            settings: Settings of notifications.
            chat: Source of answers.
            models: Source of downloads.
        """
        super().__init__(window)
        self._settings = settings
        self.notifier = Notifier(window, resources_dir() / "icons" / "app.svg")
        chat.ended.connect(self._answer_ended)
        chat.calls.waiting.connect(self._call_waits)
        models.download_ended.connect(self._download_ended)

    def _answer_ended(self, conversation: Conversation, turn: Turn) -> None:
        answer = turn.answer
        is_stopped = answer.done is not None and answer.done.stop_reason is StopReason.CANCELLED
        if is_stopped or time.time() - answer.rounds[0].created_s < LONG_ANSWER_S:
            return
        is_whole = answer.done is not None
        title = self.tr("An answer is ready") if is_whole else self.tr("An answer broke off")
        self._notify(title, title_of((conversation.turns or (turn,))[0].prompt.text))

    def _call_waits(self, run: AnswerRun) -> None:
        """Notify that an answer waits for the user's decision about a call."""
        first = (run.conversation.turns or (run.turn,))[0]
        self._notify(self.tr("A tool call waits for you"), title_of(first.prompt.text))

    def batch_ended(self, job: BatchJob) -> None:
        """Notify that a batch is done or has failed."""
        spec, state = job.spec, job.state()
        is_done = state.stage == "done"
        title = self.tr("A batch is done") if is_done else self.tr("A batch has stopped")
        self._notify(title, "" if spec is None else Path(spec.out).name)

    def training_ended(self, run: HeadsTraining) -> None:
        """Notify that a training is done or has failed."""
        is_done = run.progress().stage == "done"
        title = self.tr("Heads are trained") if is_done else self.tr("A training has stopped")
        self._notify(title, run.out.name)

    def _download_ended(self, job: DownloadJob) -> None:
        is_ready = job.state is JobState.READY
        title = self.tr("A download is ready") if is_ready else self.tr("A download has failed")
        self._notify(title, job.pair.model)

    def _notify(self, title: str, name: str) -> None:
        chosen = self._settings.values
        if chosen.notifies:
            self.notifier.notify(
                DesktopNotification(title, name if chosen.names_in_notices else "")
            )
