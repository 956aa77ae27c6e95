"""State of the chat: shown conversation, pending answers, and draft."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from medusa_core.api import Attachment
from medusa_core.chats.conversation import Answer, Conversation, Turn


class ChatPhase(Enum):
    """Phase of a conversation's pending answer."""

    IDLE = "idle"
    ANSWERING = "answering"
    AWAITING_APPROVAL = "awaiting approval"


@dataclass(frozen=True, slots=True)
class Draft:
    """An unsent message."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.attachments)


class Stoppable(Protocol):
    """What a pending answer waits for: a request to the engine, passages, or tool calls."""

    def cancel(self) -> None:
        """Stop it; its receiver is still told of the end."""

    def drop(self) -> None:
        """Stop it without telling its receiver."""


@dataclass(slots=True)
class _Pending:
    """A pending answer."""

    conversation: Conversation
    turn: Turn
    request: Stoppable
    phase: ChatPhase = ChatPhase.ANSWERING


class ChatState(QObject):
    """State of a window's chat: rendered by views, changed by the controller.

    Each conversation, shown or not, may have one pending answer.

    Attributes:
        conversation: The shown conversation.
        draft: Its draft.
        queued: Prompt that is sent after its pending answer; None for none.
        lock_reason: Why sending is disabled; empty if it is enabled.
        stored: Ids of conversations with their own draft; all others share one.

    Signals:
        conversation_changed: Another conversation is shown; the previous `Conversation`.
        phase_changed: `phase` has changed.
        draft_changed: Text or files of a draft, shown or not, have changed.
        queued_changed: `queued` has changed.
        collections_changed: A conversation (`Conversation`) has other collections of documents.
    """

    conversation_changed = Signal(object)
    phase_changed = Signal()
    draft_changed = Signal()
    queued_changed = Signal()
    collections_changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.conversation = Conversation()
        self.draft = Draft()
        self.queued: Draft | None = None
        self.lock_reason = ""
        self._pending: list[_Pending] = []
        self.stored: set[str] = set()
        self._drafts: dict[str, Draft] = {}  # that aren't shown, by draft id
        self._draft_collections: tuple[str, ...] = ()  # of a new conversation

    def show(self, conversation: Conversation) -> None:
        """Show another conversation; the previous one's queued prompt becomes its draft."""
        pending = (one.conversation for one in self._pending)
        same = (one for one in pending if one.session_id == conversation.session_id)
        self.unqueue()
        previous, self.conversation = self.conversation, next(same, conversation)
        self._keep_draft(self.draft_id(previous.session_id), self.draft)
        self._set_draft(self._drafts.pop(self.draft_id(self.conversation.session_id), Draft()))
        # New conversations share a draft, and so the documents that it is about.
        if previous.session_id not in self.stored:
            self._draft_collections = previous.collections
        if not self.conversation.turns and self.conversation.session_id not in self.stored:
            self.conversation.collections = self._draft_collections
        self.conversation_changed.emit(previous)
        self.phase_changed.emit()

    # Answers under way ----------------------------------------------------------------------------

    @property
    def phase(self) -> ChatPhase:
        """Phase of the shown conversation."""
        phases = (one.phase for one in self._pending if one.conversation is self.conversation)
        return next(phases, ChatPhase.IDLE)

    @property
    def is_busy(self) -> bool:
        """Whether the shown conversation has a pending answer."""
        return self.phase is not ChatPhase.IDLE

    @property
    def pending_answers(self) -> tuple[Answer, ...]:
        """Pending answers of all conversations."""
        return tuple(one.turn.answer for one in self._pending)

    @property
    def pending_sessions(self) -> frozenset[str]:
        """Ids of conversations with a pending answer."""
        return frozenset(one.conversation.session_id for one in self._pending)

    def attach_collection(self, collection_id: str, is_attached: bool) -> None:
        """Attach a collection of documents to the shown conversation, or detach it."""
        others = tuple(one for one in self.conversation.collections if one != collection_id)
        self.conversation.collections = (*others, collection_id) if is_attached else others
        self.collections_changed.emit(self.conversation)

    def begin(self, turn: Turn, request: Stoppable) -> None:
        """Begin to wait for the answer of a turn in the shown conversation."""
        if self.conversation.session_id not in self.stored:
            self._draft_collections = ()
        self.stored.add(self.conversation.session_id)
        self._pending.append(_Pending(self.conversation, turn, request))
        self.phase_changed.emit()

    def is_pending(self, turn: Turn) -> bool:
        """Whether the answer of a turn is pending."""
        return any(one.turn.answer is turn.answer for one in self._pending)

    def wait_for(
        self, turn: Turn, request: Stoppable, phase: ChatPhase = ChatPhase.ANSWERING
    ) -> None:
        """Let a pending answer wait for another request; a forgotten answer drops it."""
        pending = [one for one in self._pending if one.turn is turn]
        for one in pending:
            one.request, one.phase = request, phase
        if not pending:
            request.drop()
        self.phase_changed.emit()

    def end(self, turn: Turn) -> None:
        """End a pending answer, complete or not."""
        self._pending = [one for one in self._pending if one.turn is not turn]
        self.phase_changed.emit()

    def stop(self) -> None:
        """Stop the pending answer of the shown conversation and keep its text."""
        for one in tuple(self._pending):
            if one.conversation is self.conversation:
                one.request.cancel()

    def forget(self, session_id: str) -> None:
        """Drop the pending answers of a conversation."""
        for one in [one for one in self._pending if one.conversation.session_id == session_id]:
            self._pending.remove(one)
            one.request.drop()
        self._drafts.pop(session_id, None)
        self.phase_changed.emit()

    def lock(self, reason: str) -> None:
        """Disable sending; the draft can still be copied."""
        self.lock_reason = reason
        self.phase_changed.emit()

    # What is being written ------------------------------------------------------------------------

    @property
    def unsent(self) -> Draft:
        """All unsent text and files, queued or not."""
        return self.draft if self.queued is None else _joined(self.queued, self.draft, "\n\n")

    @property
    def drafts(self) -> dict[str, Draft]:
        """All unsent messages of this window by draft id, including the shown one."""
        return self._drafts | {self.draft_id(self.conversation.session_id): self.unsent}

    def draft_id(self, session_id: str) -> str:
        """Key of a conversation's draft: its id once it is stored, else empty."""
        return session_id if session_id in self.stored else ""

    def write(self, text: str) -> None:
        """Replace the text of the draft."""
        self._set_draft(replace(self.draft, text=text))

    def attach(self, *attachments: Attachment, session_id: str = "") -> None:
        """Add files to the draft, or to that of another conversation."""
        draft = self._draft_of(session_id)
        files = (*draft.attachments, *attachments)
        self._replace_draft(session_id, replace(draft, attachments=files))

    def detach(self, attachment: Attachment) -> None:
        """Remove a file from the draft."""
        files = tuple(one for one in self.draft.attachments if one is not attachment)
        self._set_draft(replace(self.draft, attachments=files))

    def take_draft(self) -> Draft:
        """Clear the draft and return its contents."""
        draft = self.draft
        self._set_draft(Draft())
        return draft

    def restore(self, draft: Draft, session_id: str = "") -> None:
        """Prepend an unsent message to the draft of its conversation."""
        self._replace_draft(session_id, _joined(draft, self._draft_of(session_id), "\n"))

    def queue(self) -> None:
        """Queue the draft, merged with an already queued message."""
        draft = self.take_draft()
        draft = replace(draft, text=draft.text.strip())
        self._set_queued(draft if self.queued is None else _joined(self.queued, draft, "\n\n"))

    def take_queued(self) -> Draft | None:
        """Remove and return the queued message."""
        queued = self.queued
        self._set_queued(None)
        return queued

    def unqueue(self) -> None:
        """Move the queued message back into the draft."""
        queued = self.take_queued()
        if queued is not None:
            self.restore(queued)

    def _is_shown(self, session_id: str) -> bool:
        """Whether the draft of a conversation, empty for the shown one, is the shown draft."""
        shown_id = self.conversation.session_id
        return session_id == "" or self.draft_id(session_id) == self.draft_id(shown_id)

    def _draft_of(self, session_id: str) -> Draft:
        is_shown = self._is_shown(session_id)
        return self.draft if is_shown else self._drafts.get(self.draft_id(session_id), Draft())

    def _replace_draft(self, session_id: str, draft: Draft) -> None:
        if self._is_shown(session_id):
            self._set_draft(draft)
        else:
            self._keep_draft(self.draft_id(session_id), draft)
            self.draft_changed.emit()

    def _keep_draft(self, draft_id: str, draft: Draft) -> None:
        if draft != Draft():
            self._drafts[draft_id] = draft
        else:
            self._drafts.pop(draft_id, None)

    def _set_draft(self, draft: Draft) -> None:
        if draft != self.draft:
            self.draft = draft
            self.draft_changed.emit()

    def _set_queued(self, queued: Draft | None) -> None:
        if queued is not self.queued:
            self.queued = queued
            self.queued_changed.emit()


def _joined(first: Draft, second: Draft, gap: str) -> Draft:
    """Merge two drafts; empty texts are left out."""
    text = first.text if not second.text.strip() else f"{first.text}{gap}{second.text}"
    if not first.text:
        text = second.text
    return Draft(text, (*first.attachments, *second.attachments))
