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
        stored: Ids of the conversations with a draft of their own; all others share one.

    Signals:
        conversation_changed: Another conversation is shown instead of this `Conversation`.
        phase_changed: `phase` has another value.
        draft_changed: A draft, shown or not, has another text or other files.
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
        self.stored: set[str] = set()
        self._drafts: dict[str, Draft] = {}  # that aren't shown, by draft id

    def show(self, conversation: Conversation) -> None:
        """Show another conversation; what is queued in the one before becomes its draft."""
        pending = (one.conversation for one in self._pending)
        same = (one for one in pending if one.session_id == conversation.session_id)
        self.unqueue()
        previous, self.conversation = self.conversation, next(same, conversation)
        self._keep_draft(self.draft_id(previous.session_id), self.draft)
        self._set_draft(self._drafts.pop(self.draft_id(self.conversation.session_id), Draft()))
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
        self.stored.add(self.conversation.session_id)
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
        self._drafts.pop(session_id, None)
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

    @property
    def drafts(self) -> dict[str, Draft]:
        """All that is written and not sent in this window, by draft id; the shown one included."""
        return self._drafts | {self.draft_id(self.conversation.session_id): self.unsent}

    def draft_id(self, session_id: str) -> str:
        """The key of a conversation's draft: its id once it is stored, empty before."""
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
        """Empty the draft, and return what it was."""
        draft = self.draft
        self._set_draft(Draft())
        return draft

    def restore(self, draft: Draft, session_id: str = "") -> None:
        """Put what couldn't be sent before what was written in its conversation meanwhile."""
        self._replace_draft(session_id, _joined(draft, self._draft_of(session_id), "\n"))

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
    """One draft of two; texts that are empty are left out."""
    text = first.text if not second.text.strip() else f"{first.text}{gap}{second.text}"
    if not first.text:
        text = second.text
    return Draft(text, (*first.attachments, *second.attachments))
