"""Leads a conversation: from what the user does to commands, from events to what is shown."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import QObject, QRect, Signal

from app.bridge import EngineBridge
from app.chat.answer_message import AnswerMessage
from app.chat.chat_page import ChatPage
from app.chat.error_board import ErrorBoard
from app.chat.message_widgets import Notice, UserMessage
from app.control.context_meter import ContextMeter, describe_cut
from app.markdown.formats import Marking
from app.model_keeper import ModelKeeper
from app.theme.appearance import Appearance
from medusa_core.conversation import Conversation, Turn, new_id
from medusa_core.messages import (
    Cancel,
    ChatMessage,
    CloseSession,
    ContextCut,
    EngineLost,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    Progress,
    StepDone,
    StepTrace,
    StopReason,
)
from medusa_core.model_state import Phase

log = logging.getLogger(__name__)

CONTEXT_NOTICE = (
    "The conversation fills the model's context; it can't be continued. Start a new chat (Ctrl+N)."
)
MODEL_NOTE = "It is tiny: expect simple stories and small talk rather than facts."


class ChatController(QObject):
    """One conversation at a time, one answer at a time.

    Attributes:
        conversation: What has been said.
        errors: What went wrong, as far as it is shown.
        meter: How much of the context is used.
        marking: How accepted tokens are marked in the text.
        records: Traces are wanted of the next answers.

    Signals:
        answer_begun: This answer (an `AnswerMessage`) is shown, and asked for.
        answer_ended: The running answer is complete, stopped or failed.
        chat_begun: The conversation is a new one.
        marking_changed: Tokens are marked in another way (a `Marking`).
    """

    answer_begun = Signal(object)
    answer_ended = Signal()
    chat_begun = Signal()
    marking_changed = Signal(object)

    def __init__(
        self,
        page: ChatPage,
        bridge: EngineBridge,
        keeper: ModelKeeper,
        appearance: Appearance,
        *,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        super().__init__()
        self._page = page
        self._bridge = bridge
        self._keeper = keeper
        self._appearance = appearance
        self._make_id = make_id
        self.marking = Marking.HEADS
        self.records = True
        self._turn: Turn | None = None
        self._answer: AnswerMessage | None = None
        # What a regenerated answer takes the place of, until it has a text of its own.
        self._replaced: tuple[Turn, AnswerMessage] | None = None
        self.conversation = Conversation(make_id)
        self.errors = ErrorBoard(page, appearance)
        self.meter = ContextMeter(
            page, bridge, keeper, lambda: self.conversation.whole(), lambda: self.is_busy
        )
        self._connect()
        self._model_changed()

    @property
    def is_busy(self) -> bool:
        """Whether an answer is being written."""
        return self._turn is not None

    @property
    def answers(self) -> tuple[AnswerMessage, ...]:
        """The answers that are shown, oldest first."""
        shown = self._page.conversation.messages
        return tuple(message for message in shown if isinstance(message, AnswerMessage))

    @property
    def temperature(self) -> float:
        """What the panel says, for rules that draw."""
        return self._page.control.settings().temperature

    @property
    def tree_rows(self) -> int:
        """Rows of the next answers' trees; 0 for the engine's choice."""
        return self._page.control.settings().tree_rows

    def use_tree_rows(self, num_rows: int) -> None:
        """Give the next answers' trees so many rows; 0 for the engine's choice."""
        self._page.control.choose_number("tree_rows", num_rows)

    def whole(self) -> tuple[ChatMessage, ...]:
        """All that the model has read and said, the system prompt included."""
        return self._page.control.framed(self.conversation.whole())

    def send(self, text: str) -> None:
        """Ask; does nothing for an empty text or while an answer is being written."""
        prompt = text.strip()
        if not prompt or self.is_busy:
            return
        self._page.composer.clear()
        turn = self.conversation.ask(prompt, self._settings())
        self._page.conversation.add(UserMessage(prompt, self._appearance))
        self._begin(turn)

    def _settings(self) -> GenerateSettings:
        """What the panel says."""
        return self._page.control.generate_settings()

    def regenerate(self) -> None:
        """Ask for another last answer; the old one is kept until the new one has a text."""
        if self.is_busy or not self.answers:
            return
        self._replaced = (self.conversation.turns[-1], self.answers[-1])
        self.answers[-1].hide()
        self._begin(self.conversation.ask_again(self._settings()))

    def reroll(self, token: int) -> None:
        """Ask for another last answer that keeps the tokens before this one."""
        if self.is_busy or not self.answers or self.conversation.turns[-1].done is None:
            return
        self._replaced = (self.conversation.turns[-1], self.answers[-1])
        self.answers[-1].hide()
        self._begin(self.conversation.reroll(token, self._settings()))

    def stop(self) -> None:
        """End the answer that is being written; what there is of it stays."""
        if self._turn is not None:
            self._bridge.submit(Cancel(self.conversation.session_id, self._turn.request_id))

    def new_chat(self) -> None:
        """Begin a new conversation and let the engine forget this one."""
        self.stop()
        if self.conversation.turns:
            self._bridge.submit(CloseSession(self.conversation.session_id, self._make_id()))
        self.conversation = Conversation(self._make_id)
        self._turn = self._answer = self._replaced = None
        self._page.conversation.clear()
        self._page.show_messages(False)
        self._page.show_context(0, 0)
        self._page.control.begin_chat()
        self.meter.refresh()
        self._page.strip.begin()
        self._page.composer.set_busy(False)
        self._page.composer.setFocus()
        self.chat_begun.emit()

    def reveal(self, answer: AnswerMessage, place: QRect) -> None:
        """Scroll to a part of an answer."""
        self._page.conversation.reveal(answer, place)

    def _connect(self) -> None:
        page = self._page
        page.composer.send_requested.connect(self.send)
        page.composer.stop_requested.connect(self.stop)
        page.empty.suggestion_chosen.connect(self.send)
        page.header.new_chat_requested.connect(self.new_chat)
        self.errors.retry_requested.connect(lambda: self._keeper.load())
        page.strip.marking_changed.connect(self._set_marking)
        self._bridge.arrived.connect(self._receive)
        self._keeper.changed.connect(self._model_changed)

    def _begin(self, turn: Turn) -> None:
        """Show an empty answer and ask the engine to fill it."""
        for message in self._page.conversation.messages:
            if isinstance(message, AnswerMessage):
                message.set_is_last(False)
            elif isinstance(message, Notice):
                self._page.conversation.remove(message)
        self._turn = turn
        self._keeper.wake()
        self._answer = AnswerMessage(
            self._keeper.choice.name, self.marking, self._appearance, turn.request_id
        )
        self._answer.regenerate_requested.connect(self.regenerate)
        self._answer.reroll_requested.connect(self.reroll)
        is_ready = self._keeper.status.phase is Phase.READY
        self._answer.show_waiting("Thinking …" if is_ready else "Waiting for the model …")
        page = self._page
        page.conversation.add(self._answer)
        page.show_messages(True)
        page.conversation.follow_end()
        page.composer.set_busy(True)
        self._bridge.submit(
            Generate(
                self.conversation.session_id,
                turn.request_id,
                self._page.control.framed(self.conversation.messages()),
                turn.settings,
                keep_tokens=turn.keep_tokens,
                records=self.records,
            )
        )
        self.answer_begun.emit(self._answer)

    def _receive(self, events: tuple[Event, ...]) -> None:
        """Take the events of the running answer; all others are of answers given up."""
        steps: list[StepDone] = []
        for event in events:
            if self._turn is None or event.request_id != self._turn.request_id:
                continue
            if isinstance(event, StepDone):
                steps.append(event)
                continue
            if isinstance(event, StepTrace):
                continue  # for the panels; steps are shown together, however many come at once
            self._take_steps(tuple(steps))
            steps.clear()
            match event:
                case Progress():
                    self._show_progress(event)
                case ContextCut(cut=cut, num_prompt_tokens=num_read):
                    self._page.conversation.add(Notice(describe_cut(cut.num_messages, num_read)))
                case GenerationDone():
                    self._complete(event)
                case Failed():
                    self._fail(event)
                case _:
                    log.debug("Nothing to do for %s.", type(event).__name__)
        self._take_steps(tuple(steps))

    def _take_steps(self, steps: tuple[StepDone, ...]) -> None:
        if not steps or self._answer is None:
            return
        self._answer.append(steps)
        if self._replaced is not None and self._answer.has_text:
            self._page.conversation.remove(self._replaced[1])
            self._replaced = None
        if steps[0].step == 0:
            self._page.strip.begin()
        self._page.strip.add(steps)
        self._show_context(steps[-1].num_context_tokens)

    def _show_progress(self, progress: Progress) -> None:
        if self._answer is not None:
            stop = " · Esc stops" if progress.stage == "prefill" else ""
            text = progress.text.rstrip(".…")
            self._answer.show_waiting(f"{text} … {progress.fraction:.0%}{stop}")

    def _complete(self, done: GenerationDone) -> None:
        turn, answer = self._turn, self._answer
        assert turn is not None
        assert answer is not None
        turn.done, turn.answer = done, done.text
        if self._replaced is not None:
            self._restore(answer)
        else:
            answer.finish(done)
        if done.stop_reason is StopReason.CONTEXT:
            self._page.conversation.add(Notice(CONTEXT_NOTICE))
        self._end()

    def _fail(self, failed: Failed) -> None:
        turn, answer = self._turn, self._answer
        assert turn is not None
        assert answer is not None
        if answer.has_text:
            turn.answer = answer.document.text
            answer.cut_short()
        elif self._replaced is not None:
            self._restore(answer)
        else:
            self._take_back(turn, answer)
        self.errors.show(failed.message, failed.hint)
        self._end()
        if isinstance(failed, EngineLost):
            self._page.composer.lock("The engine has stopped: restart Medusa Chat")

    def _take_back(self, turn: Turn, answer: AnswerMessage) -> None:
        """Nothing came of it: the prompt goes back to where it was written."""
        self.conversation.take_back()
        self._page.conversation.remove(answer)
        shown = self._page.conversation.messages
        user_messages = [message for message in shown if isinstance(message, UserMessage)]
        self._page.conversation.remove(user_messages[-1])
        self._page.composer.give_back(turn.prompt)

    def _restore(self, answer: AnswerMessage) -> None:
        """Nothing came of the new answer: the old one is shown again."""
        assert self._replaced is not None
        old_turn, old_answer = self._replaced
        self._replaced = None
        self.conversation.turns[-1] = old_turn
        self._page.conversation.remove(answer)
        old_answer.show()

    def _end(self) -> None:
        self._turn = self._answer = None
        self._keeper.touch()
        for answer in self.answers[-1:]:
            answer.set_is_last(True)
        self._page.composer.set_busy(False)
        self.meter.refresh()
        self.answer_ended.emit()

    def _set_marking(self, marking: Marking) -> None:
        self.marking = marking
        for answer in self.answers:
            answer.set_marking(marking)
        self.marking_changed.emit(marking)

    def _show_context(self, num_used: int) -> None:
        loaded = self._keeper.status.loaded
        self._page.show_context(num_used, loaded.context_tokens if loaded else 0)

    def _model_changed(self) -> None:
        status = self._keeper.status
        if status.loaded is not None:
            self._appearance.legend.learn(status.loaded.sources, status.loaded.rules)
        self._page.header.show_model(self._keeper.choice)
        self._page.header.show_status(status)
        if status.phase is Phase.FAILED and status.failed is not None:
            self._page.empty.show_model("The model could not be loaded.")
            if status.failed.kind != "Cancelled":
                self.errors.show(status.failed.message, status.failed.hint, can_retry=True)
        elif status.phase is Phase.ASLEEP:
            self._page.empty.show_model("The model is asleep; it wakes with your next message.")
        elif status.loaded is not None:
            note = f" {MODEL_NOTE}" if self._keeper.choice.is_demo else ""
            self._page.empty.show_model(f"{self._keeper.choice.name} is ready.{note}")
            self._page.offer(status.loaded)
            self._page.strip.show_model(status.loaded, status.calibrated)
        else:
            self._page.empty.show_model("The model is being loaded; you can write already.")
