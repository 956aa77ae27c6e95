"""Keeps the shown messages in sync with the conversation's turns."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject, Signal

from app.chat.conversation_view import ConversationView
from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.message_widgets import (
    MessageWidget,
    UserMessage,
)
from app.state.chat import ChatState
from app.theme.appearance import Appearance
from medusa_core.chats.conversation import (
    Answer,
    Prompt,
    Turn,
)
from medusa_core.messages import PassagePart


class Shown(NamedTuple):
    """Widgets of a turn: prompt and answer."""

    turn: Turn
    user: UserMessage
    answer: AnswerMessage


class TurnList(QObject):
    """The message widgets of the shown branch.

    Attributes:
        model_key: Key of the current model.

    Signals:
        quoted: The user wants to quote a text in the next prompt.
        answer_shown: The widget of an answer (an `AnswerMessage`) was created.
        edited: The user edited a prompt (index of the turn, new text).
        regenerate_requested: The user wants to regenerate a turn's answer.
        reroll_requested: The user wants to regenerate a turn's answer from a token on.
        continue_requested: The user wants to continue a turn's answer.
        branch_requested: The user wants to continue the conversation after a turn.
        prompt_chosen: The user selected another version of a turn's prompt (its index).
        answer_chosen: The user selected another answer of a turn (its index).
        call_decided: The user decided about a call of a turn's answer (index of the turn, index of
            the call in the last round, `Approval`, arguments).
        refreshed: The shown messages or their places have changed.
    """

    quoted = Signal(str)
    answer_shown = Signal(object)
    edited = Signal(int, str)
    regenerate_requested = Signal(int)
    reroll_requested = Signal(int, int)
    continue_requested = Signal(int)
    branch_requested = Signal(int)
    prompt_chosen = Signal(int, int)
    answer_chosen = Signal(int, int)
    call_decided = Signal(int, int, object, str)
    refreshed = Signal()

    def __init__(self, view: ConversationView, state: ChatState, appearance: Appearance) -> None:
        super().__init__(view)
        self._view = view
        self._appearance = appearance
        self._shown: list[Shown] = []
        self._state = state
        self.model_key = ""
        state.conversation_changed.connect(self._show_conversation)

    @property
    def answers(self) -> tuple[AnswerMessage, ...]:
        """The widgets of the answers, oldest first."""
        return tuple(shown.answer for shown in self._shown)

    def message_of(self, round_id: str) -> AnswerMessage | None:
        """Return the widget of the answer with a round; None if not shown."""
        for message in reversed(self.answers):
            if any(one.id == round_id for one in message.answer.rounds):
                return message
        return None

    def widget_of(self, message_id: str) -> MessageWidget | None:
        """Return the widget of a message; None if not shown."""
        for shown in self._shown:
            if shown.turn.prompt.id == message_id:
                return shown.user
        return self.message_of(message_id)

    def _show_conversation(self) -> None:
        self._view.clear()
        self._shown.clear()
        self.refresh()

    def refresh(self) -> None:
        """Update to the current branch; unchanged messages keep their widgets."""
        turns = self._state.conversation.turns
        num_same = 0
        while num_same < min(len(turns), len(self._shown)) and _is_same(
            self._shown[num_same].turn, turns[num_same]
        ):
            num_same += 1
        gone = self._shown[num_same:]
        del self._shown[num_same:]
        kept: UserMessage | None = None
        for shown in gone:
            self._view.remove(shown.answer)
            if not self._shown_prompt(shown, num_same):
                self._view.remove(shown.user)
            else:
                kept = shown.user
        for turn in turns[num_same:]:
            self._add(turn, kept)
            kept = None
        self._show_versions()

    def show_passages(self) -> None:
        """Show the passages that were retrieved for the last prompt."""
        for place, shown in enumerate(self._shown[-1:], len(self._shown) - 1):
            shown.user.show_passages(shown.turn.prompt.passages)
            shown.answer.cite(self._citable(place))

    def _citable(self, place: int) -> tuple[PassagePart, ...]:
        """Return the passages that the answer at an index may cite."""
        turns = self._state.conversation.turns[: place + 1]
        return tuple(one for turn in turns for one in turn.prompt.passages)

    def show_model(self, model_key: str) -> None:
        """Set the current model."""
        self.model_key = model_key
        self._show_versions()

    def _shown_prompt(self, shown: Shown, place: int) -> bool:
        """Whether a prompt is already shown at an index, so that only the answer differs."""
        turns = self._state.conversation.turns
        return place < len(turns) and shown.turn.prompt is turns[place].prompt

    def _add(self, turn: Turn, user: UserMessage | None) -> None:
        place = len(self._shown)
        if user is None:
            user = UserMessage(turn.prompt.text, self._appearance, turn.prompt.attachments)
            user.show_passages(turn.prompt.passages)
            user.edited.connect(lambda text: self.edited.emit(place, text))
            user.version_chosen.connect(lambda n: self.prompt_chosen.emit(place, n))
            user.quoted.connect(self.quoted)
            self._view.add(user)
        answer = AnswerMessage(turn.answer, self._appearance, self._citable(place))
        answer.regenerate_requested.connect(lambda: self.regenerate_requested.emit(place))
        answer.reroll_requested.connect(lambda token: self.reroll_requested.emit(place, token))
        answer.continue_requested.connect(lambda: self.continue_requested.emit(place))
        answer.branch_requested.connect(lambda: self.branch_requested.emit(place))
        answer.version_chosen.connect(lambda n: self.answer_chosen.emit(place, n))
        answer.call_decided.connect(lambda *decision: self.call_decided.emit(place, *decision))
        answer.quoted.connect(self.quoted)
        self._view.add(answer)
        self._shown.append(Shown(turn, user, answer))
        self.answer_shown.emit(answer)

    def _show_versions(self) -> None:
        last = len(self._shown) - 1
        for place, shown in enumerate(self._shown):
            prompts = self._state.conversation.prompt_versions(place)
            shown.user.show_version(_place_of(shown.turn.prompt, prompts), len(prompts))
            answers = shown.turn.prompt.answers
            shown.answer.show_version(_place_of(shown.turn.answer, answers), len(answers))
            lack = self._reroll_obstacle(shown.turn.answer)
            shown.answer.set_place(is_last=place == last, lack=lack)
        self.refreshed.emit()

    def _reroll_obstacle(self, answer: Answer) -> str:
        """Return why generation can't resume from an answer's tokens; empty if it can."""
        if answer.model_key in ("", self.model_key):
            return ""
        return self.tr("{0} wrote this answer: load it to continue the answer.").format(
            answer.model
        )


def _is_same(a: Turn, b: Turn) -> bool:
    return a.prompt is b.prompt and a.answer is b.answer


def _place_of(one: Prompt | Answer, versions: object) -> int:
    assert isinstance(versions, list | tuple)
    return next(place for place, version in enumerate(versions) if version is one)
