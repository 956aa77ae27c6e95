"""Leads conversations: from what the user does to commands, from events to what is shown."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, QRect, Signal
from PySide6.QtWidgets import QApplication

from app.chat.chat_page import ChatPage
from app.chat.context_meter import (
    ContextMeter,
    describe_cut,
)
from app.chat.error_board import About
from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.figures import empty_words
from app.chat.messages.message_widgets import Notice
from app.chat.model_status import ModelStatusView
from app.chat.remarks import remarks_on
from app.chat.turn_list import TurnList
from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.state.chat import ChatState, Draft
from app.theme.appearance import Appearance
from app.theme.missing_fonts import FontHints
from medusa_core.chats.conversation import (
    Answer,
    Conversation,
    Prompt,
    Turn,
)
from medusa_core.errors import Cancelled
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    AnswerStarted,
    ChatMessage,
    ContextCut,
    EngineLost,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LayersMoved,
    Progress,
    StepDone,
    StopReason,
)

log = logging.getLogger(__name__)


class ChatController(QObject):
    """One conversation is shown at a time; each may have one answer under way.

    Attributes:
        state: What is shown, answered and written.
        path: The messages that are shown.
        errors: What went wrong, as far as it is shown.
        meter: How much of the context is used.
        records: Traces are wanted of the next answers.
        updates_datastore: Drafts learn from the next answers.

    Signals:
        answer_started: This answer (an `AnswerMessage`) is shown; it may be complete.
        answer_ended: An answer of the conversation that is shown is complete, stopped or failed.
        prompt_sent: A turn (`Conversation`, `Turn`) waits for its answer.
        ended: A turn (`Conversation`, `Turn`) has the answer that it will have.
        taken_back: A turn (`Conversation`, `Turn`) was removed: nothing came of it.
        taken_up: An answer (`Answer`) is written by another model than was expected.
        moved: Another path of the conversation is shown.
        answer_reported: The engine has sent these events (a tuple) about the answer of a turn
            (`Turn`).
        reasoning_known: It is known how the model of an answer (`Answer`) sets reasoning apart.
    """

    answer_started = Signal(object)
    answer_ended = Signal()
    prompt_sent = Signal(object, object)
    ended = Signal(object, object)
    taken_back = Signal(object, object)
    taken_up = Signal(object)
    moved = Signal(object)
    answer_reported = Signal(object, object)
    reasoning_known = Signal(object)

    def __init__(
        self,
        state: ChatState,
        page: ChatPage,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        appearance: Appearance,
    ) -> None:
        super().__init__()
        self.state = state
        self._page = page
        self._font_hints = FontHints()
        self._bridge = bridge
        self._loaded_model = loaded_model
        self._appearance = appearance
        self.records = True
        self.updates_datastore = False
        self.path = TurnList(page.conversation, state, appearance)
        self.errors = page.errors
        self.meter = ContextMeter(page, bridge, loaded_model, state)
        self._model_view = ModelStatusView(page, loaded_model, appearance)
        self._connect()
        self._name_model()

    @property
    def conversation(self) -> Conversation:
        """The conversation that is shown."""
        return self.state.conversation

    @property
    def is_busy(self) -> bool:
        """Whether an answer of the conversation that is shown is being written."""
        return self.state.is_busy

    @property
    def answers(self) -> tuple[AnswerMessage, ...]:
        """The answers that are shown, oldest first."""
        return self.path.answers

    @property
    def temperature(self) -> float:
        """What the panel says, for rules that draw."""
        return self._page.settings_panel.settings().temperature

    @property
    def tree_rows(self) -> int:
        """Rows of the next answers' trees; 0 for the engine's choice."""
        return self._page.settings_panel.settings().tree_rows

    def use_tree_rows(self, num_rows: int) -> None:
        """Give the next answers' trees so many rows; 0 for the engine's choice."""
        self._page.settings_panel.choose_number("tree_rows", num_rows)

    def whole(self) -> tuple[ChatMessage, ...]:
        """All that the model has read and said, the system prompt included."""
        return self._page.settings_panel.framed(self.conversation.whole())

    # What the user does ---------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Ask; does nothing for an empty text or while an answer is being written."""
        loaded = self._loaded_model.status.loaded
        # A text that is gone on with counts to its last space.
        is_whole = loaded is not None and loaded.continues_text and bool(text.strip())
        prompt = text if is_whole else text.strip()
        if not (prompt or self.state.draft.attachments) or self.is_busy:
            return
        files = self.state.take_draft().attachments
        self._begin(self.conversation.ask(prompt, self._settings(), files))

    def regenerate(self, place: int = -1) -> None:
        """Ask for another answer to a prompt; the old one stays beside it."""
        if self._may_ask():
            self._begin(self.conversation.retry(self._settings(), place))

    def edit(self, place: int, text: str) -> None:
        """Ask something else in the place of a prompt; the old one stays beside it."""
        if self._may_ask():
            self._begin(self.conversation.edit(place, text, self._settings()))

    def reroll(self, place: int, token: int) -> None:
        """Ask for another answer that keeps the tokens before this one."""
        if self._may_ask() and self.conversation.turns[place].answer.can_continue:
            self._begin(self.conversation.reroll(token, self._settings(), place))

    def go_on(self, place: int = -1) -> None:
        """Go on with an answer that was cut."""
        if self._may_ask() and self.conversation.turns[place].answer.can_continue:
            self._begin(self.conversation.reroll(None, self._settings(), place))

    def branch(self, place: int) -> None:
        """Let the next prompt follow this turn; the turns after it become another branch."""
        if self._may_ask():
            self.conversation.go_back_to(place)
            self._path_changed()
            self._page.composer.setFocus()

    def choose_prompt(self, place: int, version: int) -> None:
        """Show another version of a prompt, and what followed it."""
        if self._may_ask():
            prompt = self.conversation.prompt_versions(place)[version]
            self.conversation.choose_prompt(place, prompt)
            self._path_changed()

    def choose_answer(self, place: int, version: int) -> None:
        """Show another answer to a prompt, and what followed it."""
        if self._may_ask():
            answer = self.conversation.turns[place].prompt.answers[version]
            self.conversation.choose_answer(place, answer)
            self._path_changed()

    def stop(self) -> None:
        """End the answer that is being written; what there is of it stays."""
        self.state.stop()

    def new_chat(self) -> None:
        """Begin a new conversation; an answer that is being written goes on in the old one."""
        self.open(Conversation())
        self._page.settings_panel.begin_chat()

    def open(self, conversation: Conversation) -> None:
        """Show a conversation; what waits in the one before becomes its draft."""
        self.errors.dismiss(About.ATTACHMENT)
        self.state.show(conversation)

    def _show_conversation(self) -> None:
        self._page.show_messages(bool(self.conversation.turns))
        self._page.conversation.follow_end()
        self._page.show_context(0, 0)
        self._page.strip.begin(has_answers=bool(self.answers))
        self._page.composer.setFocus()

    def merge(self, prompts: Sequence[Prompt]) -> None:
        """Take what another program added to the conversation that is shown."""
        if self.conversation.merge(prompts, follows=not self.is_busy):
            self.path.refresh()
            self._page.show_messages(bool(self.conversation.turns))
            self.meter.refresh()

    def forget(self, session_id: str) -> None:
        """A conversation is gone: stop its answer, free its cache, and show a new one instead."""
        self.state.forget(session_id)
        self._bridge.close_session(session_id)
        if self.conversation.session_id == session_id:
            self.new_chat()

    def show_message(self, message_id: str) -> None:
        """Go to the path that a message is on, and scroll to it."""
        if self.is_busy or not self.conversation.go_to(message_id):
            return
        self._path_changed()
        message = self.path.widget_of(message_id)
        if message is not None:
            self._page.conversation.reveal(message, QRect(0, 0, 1, 1))

    def reveal(self, answer: AnswerMessage, place: QRect) -> None:
        """Scroll to a part of an answer."""
        self._page.conversation.reveal(answer, place)

    def _may_ask(self) -> bool:
        return not self.is_busy and bool(self.conversation.turns)

    def _settings(self) -> GenerateSettings:
        """What the panel says."""
        return self._page.settings_panel.generate_settings()

    def _connect(self) -> None:
        page, path = self._page, self.path
        page.composer.send_requested.connect(self.send)
        page.composer.queue_requested.connect(self.state.queue)
        self.state.conversation_changed.connect(self._show_conversation)
        page.composer.reader.failed.connect(self._show_unread)
        page.composer.stop_requested.connect(self.stop)
        page.empty.suggestion_chosen.connect(self.send)
        page.header.new_chat_requested.connect(self.new_chat)
        self.errors.retry_requested.connect(lambda: self._loaded_model.load())
        self._bridge.engine_lost.connect(self._lose_engine)
        self._loaded_model.changed.connect(self._name_model)
        path.answer_shown.connect(self.answer_started)
        path.edited.connect(self.edit)
        path.quoted.connect(page.composer.quote)
        path.regenerate_requested.connect(self.regenerate)
        path.reroll_requested.connect(self.reroll)
        path.continue_requested.connect(self.go_on)
        path.branch_requested.connect(self.branch)
        path.prompt_chosen.connect(self.choose_prompt)
        path.answer_chosen.connect(self.choose_answer)

    # Requests and events -----------------------------------------------------------------------

    def _begin(self, turn: Turn) -> None:
        """Show an empty answer and ask the engine to fill it."""
        self.errors.dismiss(About.ANSWER)
        for message in self._page.conversation.messages:
            if isinstance(message, Notice):
                self._page.conversation.remove(message)
        _sign(turn.answer, self._loaded_model.choice)
        self._loaded_model.wake()
        question = Generate(
            self.conversation.session_id,
            turn.answer.id,
            self._page.settings_panel.framed(self.conversation.messages()),
            turn.answer.settings,
            keep_tokens=turn.answer.keep_tokens,
            records=self.records,
            updates_datastore=self.updates_datastore,
        )
        on_events = partial(self._take_events, self.conversation, turn)
        self.state.begin(turn, self._bridge.ask(question, on_events))
        self._leave_messages()
        self.path.refresh()
        is_ready = self._loaded_model.status.phase is Phase.READY
        self._show_status(
            turn, self.tr("Thinking…") if is_ready else self.tr("Waiting for the model…")
        )
        page = self._page
        page.show_messages(True)
        page.conversation.follow_end()
        self.prompt_sent.emit(self.conversation, turn)

    def _take_events(
        self, conversation: Conversation, turn: Turn, events: tuple[Event, ...]
    ) -> None:
        """Show what the engine says of an answer."""
        steps: list[StepDone] = []
        is_shown = conversation is self.conversation
        for event in events:
            if isinstance(event, StepDone):
                steps.append(event)  # steps are shown together, however many come at once
                continue
            match event:
                case Progress():
                    text = engine_text(event.text).rstrip(".…")
                    stop = self.tr(" · Esc stops") if event.stage == "prefill" else ""
                    self._show_status(turn, f"{text} … {Number(event.fraction):.0%}{stop}")
                case AnswerStarted():
                    self._take_up(turn, event)
                case ContextCut() if is_shown:
                    self._page.conversation.add(Notice(describe_cut(event.cut)))
                case LayersMoved() if is_shown:
                    self._page.conversation.add(Notice(engine_text(event.move.text)))
                case GenerationDone():
                    self._take_steps(conversation, turn, steps)
                    self._complete(conversation, turn, event)
                case Failed():
                    self._take_steps(conversation, turn, steps)
                    self._fail(conversation, turn, event)
                case _:
                    log.debug("Nothing to do for %s.", type(event).__name__)
        if turn.answer.is_running:
            self._take_steps(conversation, turn, steps)
        self.answer_reported.emit(turn, events)

    def _take_up(self, turn: Turn, event: AnswerStarted) -> None:
        """Begin to show an answer, with the name of the model that writes it.

        The expected model may have been refused meanwhile.
        """
        answer = turn.answer
        answer.content.expect(answer.content.reasoning, event.begins_inside)
        choice = self._loaded_model.choice_of(event.load_id)
        if choice is None or not _sign(answer, choice):
            return
        self.taken_up.emit(answer)
        message = self.path.message_of(answer.id)
        if message is not None:
            message.refresh()

    def _take_steps(self, conversation: Conversation, turn: Turn, steps: list[StepDone]) -> None:
        if not steps:
            return
        content, loaded = turn.answer.content, self._loaded_model.status.loaded
        if not content.steps and loaded is not None:
            content.expect(loaded.reasoning, content.begins_inside)
            self.reasoning_known.emit(turn.answer)
        content.append(*steps)
        message = self.path.message_of(turn.answer.id)
        if conversation is not self.conversation or message is None:
            return
        message.refresh()
        if steps[0].step == 0:
            self._page.strip.begin()
        self._page.strip.add(tuple(steps))
        self._show_context(steps[-1].num_context_tokens)

    def _show_unread(self, message: str, hint: str) -> None:
        """Say why a file isn't attached, until another conversation is opened."""
        self.errors.show_error(message, hint, about=About.ATTACHMENT)

    def _show_status(self, turn: Turn, text: str) -> None:
        """Say what is done before the first token."""
        message = self.path.message_of(turn.answer.id)
        if message is not None:
            message.show_waiting(text)

    def _complete(self, conversation: Conversation, turn: Turn, done: GenerationDone) -> None:
        self.state.end(turn)
        turn.answer.end(done)
        is_taken_back = not done.text and len(turn.prompt.answers) > 1
        if is_taken_back:
            self._take_back(conversation, turn)
        else:
            self.ended.emit(conversation, turn)
            message = self.path.message_of(turn.answer.id)
            if message is not None:
                message.refresh()
        if conversation is self.conversation:
            if is_taken_back and done.stop_reason is not StopReason.CANCELLED:
                self._page.conversation.add(Notice(empty_words(done)))
            for text in remarks_on(turn, done, self._appearance.legend):
                self._page.conversation.add(Notice(text))
            if hint := self._font_hints.hint(turn.prompt.text, done.text):
                self._page.conversation.add(Notice(hint))
            self._end()
            if (queued := self.state.take_queued()) is not None:
                question = self.conversation.ask(queued.text, self._settings(), queued.attachments)
                self._begin(question)

    def _fail(self, conversation: Conversation, turn: Turn, failed: Failed) -> None:
        self.state.end(turn)
        message = self.path.message_of(turn.answer.id)
        turn.answer.end()
        if conversation is self.conversation:
            self.state.unqueue()  # first: what comes back later is put before it
        if turn.answer.text:
            self.ended.emit(conversation, turn)
            if message is not None:
                message.refresh()
        else:
            self._take_back(conversation, turn)
        # A cancel is the user's own wish; a lost engine is shown whoever had asked it.
        if failed.kind != Cancelled.__name__ and not isinstance(failed, EngineLost):
            self.errors.show_failure(failed, About.ANSWER)
        if conversation is self.conversation:
            self._end()

    def _lose_engine(self, lost: EngineLost) -> None:
        self.errors.show_failure(lost, About.ANSWER)
        self.state.lock(self.tr("The engine has stopped: restart Medusa Chat"))

    def _take_back(self, conversation: Conversation, turn: Turn) -> None:
        """Nothing came of it: what was there before is shown, a new prompt can be sent again."""
        conversation.take_back(turn)
        self.taken_back.emit(conversation, turn)
        if conversation is not self.conversation:
            return
        self.path.refresh()
        self._page.show_messages(bool(self._page.conversation.messages))
        if not turn.prompt.answers:
            self.state.restore(Draft(turn.prompt.text, turn.prompt.attachments))

    def _name_model(self) -> None:
        self.path.show_model(self._loaded_model.choice.key)

    def _leave_messages(self) -> None:
        """Messages are about to go: if one has the focus, the composer takes it."""
        page, focused = self._page, QApplication.focusWidget()
        if focused is not None and page.conversation.isAncestorOf(focused):
            page.composer.setFocus()

    def _path_changed(self) -> None:
        self._leave_messages()
        self.path.refresh()
        self.meter.refresh()
        self.moved.emit(self.conversation)

    def _end(self) -> None:
        self._loaded_model.touch()
        self.path.refresh()
        self.answer_ended.emit()

    def _show_context(self, num_used: int) -> None:
        loaded = self._loaded_model.status.loaded
        self._page.show_context(num_used, loaded.context_tokens if loaded else 0)


def _sign(answer: Answer, choice: ModelChoice) -> bool:
    """Say in an answer which model writes it; False where it says that already."""
    before = answer.model, answer.model_key
    answer.model, answer.model_key = choice.name, choice.key
    return (answer.model, answer.model_key) != before
