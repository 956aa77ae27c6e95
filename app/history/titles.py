"""Titles that the model writes for conversations in idle time."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.controller import ChatController
from app.chat.suggestions import is_small
from app.engine.bridge import EngineBridge, Request
from app.engine.loaded_model import LoadedModel
from app.history.journal import Journal
from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import (
    Conversation,
    Turn,
    new_id,
)
from medusa_core.errors import Cancelled
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    AnswerStarted,
    ChatMessage,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    Role,
    StepDone,
    StopReason,
)

_IDLE_MS = 3_000
_SESSION = "titles"
_MOST_TOKENS = 24
_MOST_CHARS = 600  # of each message: a title needs no more, and reading costs time
_LONGEST = 60
_ASK = "Give this conversation a title of two to six words. Answer with the title alone."


class Titles(QObject):
    """Requests a title after the first exchange; requests of the user take priority.

    Signals:
        named: A conversation got a title.
    """

    named = Signal()

    def __init__(
        self,
        chat: ChatController,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        journal: Journal,
    ) -> None:
        super().__init__()
        self._chat, self._bridge, self._loaded_model, self._journal = (
            chat,
            bridge,
            loaded_model,
            journal,
        )
        self._waiting: dict[str, tuple[ChatMessage, ...]] = {}
        self._request: Request | None = None
        self._content = AnswerText()
        self._idle = QTimer(self)
        self._idle.setSingleShot(True)
        self._idle.setInterval(_IDLE_MS)
        self._idle.timeout.connect(self._ask)
        chat.ended.connect(self._ended)
        chat.prompt_sent.connect(lambda _conversation, _turn: self._evict())

    def _ended(self, conversation: Conversation, turn: Turn) -> None:
        """Request a title after the first exchange of a conversation."""
        is_first = turn.prompt.parent_id == "" and turn.prompt.answers == [turn.answer]
        loaded = self._loaded_model.status.loaded
        # Very small models make up titles; the question itself says more.
        names_things = loaded is not None and not is_small(loaded)
        if is_first and turn.answer.done is not None and names_things:
            words = (turn.prompt.text[:_MOST_CHARS], turn.answer.shown_text[:_MOST_CHARS])
            described = (ChatMessage(Role.USER, words[0]), ChatMessage(Role.ASSISTANT, words[1]))
            self._waiting[conversation.session_id] = (*described, ChatMessage(Role.USER, _ASK))
        if self._waiting:
            self._idle.start()

    def _evict(self) -> None:
        """Cancel the title for a request of the user."""
        self._idle.stop()
        if self._request is not None:
            self._request.cancel()

    def _ask(self) -> None:
        if not self._waiting or self._chat.state.pending_answers or self._is_asking:
            return
        status = self._loaded_model.status
        if status.phase is not Phase.READY or status.loaded is None:
            return
        conversation_id, messages = next(iter(self._waiting.items()))
        self._content = AnswerText(status.loaded.reasoning)
        # Whatever drafts for the model: not every one has Medusa heads. Thoughts would take all
        # tokens there are.
        settings = GenerateSettings(
            drafter="", max_new_tokens=_MOST_TOKENS, stop=("\n",), thinks=False
        )
        command = Generate(_SESSION, new_id(), messages, settings, is_background=True)
        on_events = partial(self._handle_events, conversation_id)
        self._request = self._bridge.ask(command, on_events)

    @property
    def _is_asking(self) -> bool:
        return self._request is not None and not self._request.is_done

    def _handle_events(self, conversation_id: str, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, AnswerStarted):
                self._content.expect(self._content.reasoning, event.begins_inside)
            elif isinstance(event, StepDone):
                self._content.append(event)
            elif isinstance(event, GenerationDone):
                self._store_title(conversation_id, event)
            elif isinstance(event, Failed) and event.kind != Cancelled.__name__:
                self._waiting.pop(conversation_id, None)

    def _store_title(self, conversation_id: str, done: GenerationDone) -> None:
        self._bridge.close_session(_SESSION)
        if done.stop_reason is not StopReason.CANCELLED:
            self._waiting.pop(conversation_id, None)
            self._content.finish(done.text)
            if title := title_in(self._content.answer):
                self._journal.write(lambda h: h.rename(conversation_id, title, by_user=False))
                self.named.emit()
        if self._waiting and not self._chat.state.pending_answers:
            self._idle.start()


def title_in(answer: str) -> str:
    """Extract the title from an answer; empty if there is none."""
    title = " ".join(answer.split()).strip("\"'“”*#. ")
    title = title.replace("Title:", "", 1).strip("\"'“”* ")
    return title if 0 < len(title) <= _LONGEST else ""
