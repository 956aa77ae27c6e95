"""Stores the settings of each conversation."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import QObject

from app.chat.controller import ChatController
from app.chat_settings.panel import ChatSettingsPanel
from app.history.history_controller import HistoryController
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import MedusaError, RequestError


class SavedSettings(QObject):
    """Saves the panel's settings with a conversation, from its first question on."""

    def __init__(
        self, chat: ChatController, panel: ChatSettingsPanel, controller: HistoryController
    ) -> None:
        super().__init__(panel)
        self._chat = chat
        self._panel = panel
        self._controller = controller
        chat.prompt_sent.connect(lambda conversation, _turn: self._keep(conversation.session_id))
        chat.state.conversation_changed.connect(self._show)
        panel.changed.connect(self._changed)

    def _changed(self) -> None:
        if self._chat.conversation.turns:
            self._keep(self._chat.conversation.session_id)

    def _keep(self, conversation_id: str) -> None:
        raw = json.dumps(self._panel.settings().as_json(), ensure_ascii=False)
        self._controller.journal.write(lambda history: history.set_settings(conversation_id, raw))

    def _show(self) -> None:
        """Show the settings of the opened conversation; those of a new one are set elsewhere."""
        conversation = self._chat.conversation
        if not conversation.turns:
            return
        try:
            raw = self._controller.history.settings(conversation.session_id)
        except RequestError:  # it isn't written yet: the disk may be full
            return
        except MedusaError as error:
            self._chat.errors.show_error(error.message, error.hint)
            return
        self._panel.show_settings(ChatSettings().with_json(_object(raw)))


def _object(raw: str) -> dict[str, Any]:
    """Parse stored settings; empty for imported or older conversations."""
    try:
        read = json.loads(raw or "{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
