"""State of the chat: what is shown, what is being answered, and what is being written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from PySide6.QtCore import QObject, Signal

from app.engine.bridge import Request
from medusa_core.api import Attachment
from medusa_core.chats.conversation import Answer, Conversation, Turn


class ChatPhase(Enum):
    """What a conversation waits for."""

    IDLE = "idle"
    ANSWERING = "answering"
    AWAITING_APPROVAL = "awaiting approval"


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that isn't sent yet."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.attachments)


@dataclass(slots=True)
class _Pending:
    """An answer under way."""

    conversation: Conversation
    turn: Turn
    request: Request
    phase: ChatPhase = ChatPhase.ANSWERING


class ChatState(QObject):
    """The chat of a window. Views show it; the controller changes it as the user wants.

    Each conversation may have one answer under way, whether it is shown or not.

    Attributes:
        conversation: The conversation that is shown.
        draft: What is written for it.
        queued: What is sent once its answer has ended; None for nothing.
        lock_reason: Why nothing can be sent any more; empty if it can.

    Signals:
        conversation_changed: Another conversation is shown instead of this `Conversation`.
        phase_changed: `phase` has another value.
        draft_changed: `draft` has another text or other files.
        queued_changed: `queued` has another value.
    """

    conversation_changed = Signal(object)
    phase_changed = Signal()
    draft_changed = Signal()
    queued_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.conversation = Conversation()
        self.draft = Draft()
        self.queued: Draft | None = None
        self.lock_reason = ""
        self._pending: list[_Pending] = []
        self._files: dict[str, tuple[Attachment, ...]] = {}  # of drafts that aren't shown

    def show(self, conversation: Conversation) -> None:
        """Show another conversation; what is queued in the one before becomes its draft."""
        pending = (one.conversation for one in self._pending)
        same = (one for one in pending if one.session_id == conversation.session_id)
        self.unqueue()
        previous, self.conversation = self.conversation, next(same, conversation)
        self._files[previous.session_id] = self.draft.attachments
        files = self._files.pop(self.conversation.session_id, ())
        self._set_draft(replace(self.draft, attachments=files))
        self.conversation_changed.emit(previous)
        self.phase_changed.emit()

    # Answers under way ----------------------------------------------------------------------------

    @property
    def phase(self) -> ChatPhase:
        """What the shown conversation waits for."""
        phases = (one.phase for one in self._pending if one.conversation is self.conversation)
        return next(phases, ChatPhase.IDLE)

    @property
    def is_busy(self) -> bool:
        """Whether the shown conversation has an answer under way."""
        return self.phase is not ChatPhase.IDLE

    @property
    def pending_answers(self) -> tuple[Answer, ...]:
        """The answers under way, of all conversations."""
        return tuple(one.turn.answer for one in self._pending)

    @property
    def pending_sessions(self) -> frozenset[str]:
        """Ids of the conversations that have an answer under way."""
        return frozenset(one.conversation.session_id for one in self._pending)

    def begin(self, turn: Turn, request: Request) -> None:
        """A turn of the shown conversation waits for its answer."""
        self._pending.append(_Pending(self.conversation, turn, request))
        self.phase_changed.emit()

    def set_phase(self, turn: Turn, phase: ChatPhase) -> None:
        """Let a turn under way wait for something else."""
        for one in self._pending:
            if one.turn is turn:
                one.phase = phase
        self.phase_changed.emit()

    def end(self, turn: Turn) -> None:
        """The answer of a turn is complete, or will never be."""
        self._pending = [one for one in self._pending if one.turn is not turn]
        self.phase_changed.emit()

    def stop(self) -> None:
        """End the answer of the shown conversation; what there is of it stays."""
        for one in self._pending:
            if one.conversation is self.conversation:
                one.request.cancel()

    def forget(self, session_id: str) -> None:
        """Nobody waits for the answers of a conversation any more."""
        for one in [one for one in self._pending if one.conversation.session_id == session_id]:
            one.request.drop()
            self._pending.remove(one)
        self._files.pop(session_id, None)
        self.phase_changed.emit()

    def lock(self, reason: str) -> None:
        """Send nothing any more; what is written can still be copied."""
        self.lock_reason = reason
        self.phase_changed.emit()

    # What is being written ------------------------------------------------------------------------

    @property
    def unsent(self) -> Draft:
        """All that is written and not sent, queued or not."""
        return self.draft if self.queued is None else _joined(self.queued, self.draft, "\n\n")

    def write(self, text: str) -> None:
        """Replace the text of the draft."""
        self._set_draft(replace(self.draft, text=text))

    def attach(self, *attachments: Attachment, session_id: str = "") -> None:
        """Add files to the draft, or to that of another conversation."""
        if session_id in ("", self.conversation.session_id):
            files = (*self.draft.attachments, *attachments)
            self._set_draft(replace(self.draft, attachments=files))
        else:
            self._files[session_id] = (*self._files.get(session_id, ()), *attachments)

    def detach(self, attachment: Attachment) -> None:
        """Remove a file from the draft."""
        files = tuple(one for one in self.draft.attachments if one is not attachment)
        self._set_draft(replace(self.draft, attachments=files))

    def take_draft(self) -> Draft:
        """Empty the draft, and return what it was."""
        draft = self.draft
        self._set_draft(Draft())
        return draft

    def restore(self, draft: Draft) -> None:
        """Put what couldn't be sent before what was written meanwhile."""
        self._set_draft(_joined(draft, self.draft, "\n"))

    def queue(self) -> None:
        """Send the draft once the answer has ended, together with what waits already."""
        draft = self.take_draft()
        draft = replace(draft, text=draft.text.strip())
        self._set_queued(draft if self.queued is None else _joined(self.queued, draft, "\n\n"))

    def take_queued(self) -> Draft | None:
        """Remove what is queued, and return it."""
        queued = self.queued
        self._set_queued(None)
        return queued

    def unqueue(self) -> None:
        """Put what is queued back into the draft."""
        queued = self.take_queued()
        if queued is not None:
            self.restore(queued)

    def _set_draft(self, draft: Draft) -> None:
        if draft != self.draft:
            self.draft = draft
            self.draft_changed.emit()

    def _set_queued(self, queued: Draft | None) -> None:
        if queued is not self.queued:
            self.queued = queued
            self.queued_changed.emit()


def _joined(first: Draft, second: Draft, gap: str) -> Draft:
    """One draft of two; texts that are empty are left out."""
    text = first.text if not second.text.strip() else f"{first.text}{gap}{second.text}"
    if not first.text:
        text = second.text
    return Draft(text, (*first.attachments, *second.attachments))
