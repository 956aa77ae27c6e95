"""Controller of conversations: turns user actions into commands and events into views."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QRect, Signal
from PySide6.QtWidgets import QApplication

from app.chat.calls import AnswerRun, CallController
from app.chat.chat_page import ChatPage
from app.chat.context_meter import (
    ContextMeter,
    describe_cut,
)
from app.chat.error_board import ErrorTopic
from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.figures import empty_words
from app.chat.messages.message_widgets import Notice
from app.chat.model_status import ModelStatusView
from app.chat.passage_retrieval import PassageRetrieval
from app.chat.remarks import remarks_on, remarks_on_passages
from app.chat.round_requests import RoundRequests
from app.chat.turn_list import TurnList
from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.state.chat import ChatState, Draft
from app.theme.appearance import Appearance
from app.theme.missing_fonts import FontHints
from app.widgets.qt_text import with_visible_controls
from medusa_core.chats.conversation import (
    Answer,
    Conversation,
    Prompt,
    Turn,
)
from medusa_core.chats.rounds import Approval, RoundCall
from medusa_core.errors import Cancelled, MedusaError
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    AnswerStarted,
    ChatMessage,
    ContextCut,
    EngineLost,
    Event,
    Failed,
    GenerateSettings,
    GenerationDone,
    LayersMoved,
    Progress,
    StepDone,
    StopReason,
    with_passages,
)

if TYPE_CHECKING:
    from medusa_core.api import Retrieved, Toolbox

log = logging.getLogger(__name__)


class ChatController(QObject):
    """Controls the shown conversation; each conversation may have one pending answer.

    Attributes:
        state: Shown conversation, pending answers, and draft.
        path: The shown messages.
        errors: Shows errors.
        meter: Context usage.
        calls: Runs tool calls.
        records: Whether to record traces of the next answers.
        updates_datastore: Whether to add the next answers to the draft datastore.
        retrieval: Retrieves passages of documents; None without documents.

    Signals:
        answer_started: An answer (an `AnswerMessage`) is shown; it may be complete.
        answer_ended: An answer of the shown conversation is complete, stopped or failed.
        prompt_sent: A turn (`Conversation`, `Turn`) waits for its answer.
        passages_found: Passages were retrieved for the prompt of a turn (`Conversation`, `Turn`).
        round_begun: A turn (`Conversation`, `Turn`) waits for the next round of its answer.
        round_ended: The last round of a turn's (`Conversation`, `Turn`) answer is complete.
        ended: The answer of a turn (`Conversation`, `Turn`) is final.
        turn_removed: A turn (`Conversation`, `Turn`) without an answer was removed.
        model_replaced: Another model than expected generates an answer (`Answer`).
        path_changed: Another path of the conversation is shown.
        answer_reported: The engine has sent these events (a tuple) about the answer of a turn
            (`Turn`).
        reasoning_known: The reasoning format of an answer's (`Answer`) model is known.
    """

    answer_started = Signal(object)
    answer_ended = Signal()
    prompt_sent = Signal(object, object)
    passages_found = Signal(object, object)
    round_begun = Signal(object, object)
    round_ended = Signal(object, object)
    ended = Signal(object, object)
    turn_removed = Signal(object, object)
    model_replaced = Signal(object)
    path_changed = Signal(object)
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
        self.retrieval: PassageRetrieval | None = None
        self.path = TurnList(page.conversation, state, appearance)
        self.errors = page.errors
        self.meter = ContextMeter(page, bridge, loaded_model, state)
        self.calls = CallController(state)
        self._requests = RoundRequests(bridge, loaded_model, state, self._handle_events)
        self._model_view = ModelStatusView(page, loaded_model, appearance)
        self._connect()
        self._name_model()

    @property
    def conversation(self) -> Conversation:
        """The shown conversation."""
        return self.state.conversation

    @property
    def toolbox(self) -> Toolbox | None:
        """Tools of the user; None for none."""
        return self.calls.toolbox

    @toolbox.setter
    def toolbox(self, toolbox: Toolbox | None) -> None:
        self.calls.toolbox = toolbox
        if toolbox is not None:
            toolbox.listen(partial(self.calls.post, self._show_questions))
        self._show_questions()

    @property
    def is_busy(self) -> bool:
        """Whether the shown conversation has a pending answer."""
        return self.state.is_busy

    @property
    def answers(self) -> tuple[AnswerMessage, ...]:
        """The shown answers, oldest first."""
        return self.path.answers

    @property
    def temperature(self) -> float:
        """Temperature of the next answer, for sampling rules."""
        return self._page.settings_panel.settings().temperature

    @property
    def tree_rows(self) -> int:
        """Tree size of the next answers in nodes; 0 for automatic."""
        return self._page.settings_panel.settings().tree_rows

    def use_tree_rows(self, num_rows: int) -> None:
        """Set the tree size of the next answers; 0 for automatic."""
        self._page.settings_panel.choose_number("tree_rows", num_rows)

    def whole(self) -> tuple[ChatMessage, ...]:
        """All messages of the conversation with the system prompt."""
        return self._page.settings_panel.framed(self.conversation.whole())

    # What the user does ---------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Send a prompt with the files of the draft, which is emptied.

        Does nothing if it is empty, an answer is pending, or the engine is lost.
        """
        loaded = self._loaded_model.status.loaded
        # A text that is gone on with counts to its last space.
        is_whole = loaded is not None and loaded.continues_text and bool(text.strip())
        prompt = text if is_whole else text.strip()
        if not (prompt or self.state.draft.attachments) or not self._may_begin:
            return
        files = self.state.take_draft().attachments
        self._begin(self.conversation.ask(prompt, self._settings(), files))

    def send_suggestion(self, text: str) -> None:
        """Send a suggested prompt; the draft stays."""
        if self._may_begin:
            self._begin(self.conversation.ask(text, self._settings()))

    def regenerate(self, place: int = -1) -> None:
        """Regenerate an answer; the old one stays as another version."""
        if self._may_ask():
            self._begin(self.conversation.retry(self._settings(), place))

    def edit(self, place: int, text: str) -> None:
        """Replace a prompt and answer it; the old one stays as another version."""
        if self._may_ask():
            self._begin(self.conversation.edit(place, text, self._settings()))
        elif self.state.lock_reason:
            self.state.restore(Draft(text))  # there it can be copied

    def reroll(self, place: int, token: int) -> None:
        """Regenerate an answer from a token on, keeping the tokens before it."""
        if self._may_ask() and self.conversation.turns[place].answer.can_continue:
            self._begin(self.conversation.reroll(token, self._settings(), place))

    def go_on(self, place: int = -1) -> None:
        """Continue an answer that was cut off, or whose calls have results."""
        if not self._may_ask():
            return
        turn = self.conversation.turns[place]
        if turn.answer.lacks_next_round:
            run = self._new_run(turn)
            self.conversation.next_round(turn)
            self._begin_round(run)
        elif turn.answer.can_continue:
            self._begin(self.conversation.reroll(None, self._settings(), place))

    def branch(self, place: int) -> None:
        """Branch: the next prompt follows this turn; later turns stay in the other branch."""
        if self._may_move():
            self.conversation.go_back_to(place)
            self._show_path()
            self._page.composer.setFocus()

    def choose_prompt(self, place: int, version: int) -> None:
        """Show another version of a prompt with its follow-ups."""
        if self._may_move():
            prompt = self.conversation.prompt_versions(place)[version]
            self.conversation.choose_prompt(place, prompt)
            self._show_path()

    def choose_answer(self, place: int, version: int) -> None:
        """Show another answer to a prompt with its follow-ups."""
        if self._may_move():
            answer = self.conversation.turns[place].prompt.answers[version]
            self.conversation.choose_answer(place, answer)
            self._show_path()

    def decide(self, place: int, call_place: int, approval: Approval, arguments: str) -> None:
        """Allow or deny the waiting call of an answer, which an earlier session may have left.

        Args:
            place: Index of the turn.
            call_place: Index of the call in the last round.
            approval: How the call is approved; `Approval.NONE` denies it.
            arguments: Its arguments, which may have been edited.
        """
        turn = self.conversation.turns[place]
        question = self.calls.question(turn)
        if question is None or question.place != call_place:
            return
        if not self.calls.is_requested(turn.answer.id, call_place):
            self.calls.give_up(turn)
            return
        if not self.calls.is_waiting(turn):
            if not self._may_ask():
                return
            turn.answer.is_running = True
            self.errors.dismiss(ErrorTopic.ANSWER)
            run = self._new_run(turn)
            if question.tool is not None and question.tool not in run.tools:
                run.tools = (*run.tools, question.tool)
            self.calls.take_up(run)
        self._leave_messages()  # the form of the question goes
        self.calls.decide(turn, call_place, approval, arguments)

    def stop(self) -> None:
        """Stop the pending answer and keep its text."""
        self.state.stop()

    def close(self) -> None:
        """Stop all calls, before the window is closed."""
        self.calls.stop_all()

    def new_chat(self) -> None:
        """Begin a new conversation; a pending answer of the old one goes on."""
        self.open(Conversation())
        self._page.settings_panel.begin_chat()

    def open(self, conversation: Conversation) -> None:
        """Show a conversation; the queued prompt of the previous one becomes its draft."""
        self.errors.dismiss(ErrorTopic.ATTACHMENT)
        self.state.show(conversation)

    def _show_conversation(self) -> None:
        self._page.show_messages(bool(self.conversation.turns))
        self._page.conversation.follow_end()
        self._page.show_context(0, 0)
        self._page.strip.begin(has_answers=bool(self.answers))
        self._page.composer.setFocus()

    def merge(self, prompts: Sequence[Prompt]) -> None:
        """Merge messages that another program added to the shown conversation."""
        if self.conversation.merge(prompts, follows=not self.is_busy):
            self.path.refresh()
            self._page.show_messages(bool(self.conversation.turns))
            self.meter.refresh()

    def forget(self, session_id: str) -> None:
        """Handle a deleted conversation: stop its answer, free its cache, show a new one."""
        self.state.forget(session_id)
        self._bridge.close_session(session_id)
        if self.conversation.session_id == session_id:
            self.new_chat()

    def show_message(self, message_id: str) -> None:
        """Switch to the branch of a message and scroll to it."""
        if self.is_busy or not self.conversation.go_to(message_id):
            return
        self._show_path()
        message = self.path.widget_of(message_id)
        if message is not None:
            self._page.conversation.reveal(message, QRect(0, 0, 1, 1))

    def reveal(self, answer: AnswerMessage, place: QRect) -> None:
        """Scroll to a part of an answer."""
        self._page.conversation.reveal(answer, place)

    @property
    def _may_begin(self) -> bool:
        """Whether an answer can begin; nothing is submitted once the engine is lost."""
        return not self.is_busy and not self.state.lock_reason

    def _may_move(self) -> bool:
        return not self.is_busy and bool(self.conversation.turns)

    def _may_ask(self) -> bool:
        return self._may_begin and self._may_move()

    def _settings(self) -> GenerateSettings:
        """Return the generation settings that the settings panel shows."""
        return self._page.settings_panel.generate_settings()

    def _connect(self) -> None:
        page, path = self._page, self.path
        page.composer.send_requested.connect(self.send)
        page.composer.queue_requested.connect(self.state.queue)
        self.state.conversation_changed.connect(self._show_conversation)
        page.composer.reader.failed.connect(self._show_unread)
        page.composer.stop_requested.connect(self.stop)
        page.empty.suggestion_chosen.connect(self.send_suggestion)
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
        path.call_decided.connect(self.decide)
        path.refreshed.connect(self._show_questions)
        self.state.phase_changed.connect(self._show_questions)
        self.calls.changed.connect(self._show_call)
        self.calls.ended.connect(self._calls_ended)
        self.calls.warned.connect(lambda error: self.errors.show_error(error.message, error.hint))

    # Requests and events -----------------------------------------------------------------------

    def _begin(self, turn: Turn) -> None:
        """Show an empty answer and request it from the engine."""
        self.errors.dismiss(ErrorTopic.ANSWER)
        for message in self._page.conversation.messages:
            if isinstance(message, Notice):
                self._page.conversation.remove(message)
        conversation, run = self.conversation, self._new_run(turn)
        if self.retrieval is not None and self.retrieval.is_needed(conversation, turn):
            _set_model(turn.answer, self._loaded_model.choice)
            self._loaded_model.wake()
            on_passages = partial(self._request_with_passages, run)
            self.state.begin(turn, self.retrieval.begin(run, on_passages))
            status = self.tr("Reading the documents…")
        else:
            self._request(run)
            status = self._waiting_words
        self._leave_messages()
        self.path.refresh()
        self._show_status(turn, status)
        self._page.show_messages(True)
        self._report_missing_tools(run)
        self._page.conversation.follow_end()
        self.prompt_sent.emit(conversation, turn)

    def _report_missing_tools(self, run: AnswerRun) -> None:
        """Name chosen tools that can't be offered now, such as those of a server that starts."""
        panel, offered = self._page.settings_panel, {one.id for one in run.tools}
        missing = [one for one in panel.settings().tools if one not in offered]
        if missing and not panel.tools.reason:
            words = self.tr("The model isn't offered these tools, which aren't there now: {0}")
            names = with_visible_controls(", ".join(missing))
            self._page.conversation.add(Notice(words.format(names)))

    def _request_with_passages(self, run: AnswerRun, result: Retrieved | MedusaError) -> None:
        """Request the answer to a prompt whose passages were retrieved."""
        conversation, turn = run.conversation, run.turn
        if not self.state.is_pending(turn):
            return
        if isinstance(result, MedusaError):
            ids = (conversation.session_id, turn.answer.id)
            self._fail(run, Failed(*ids, type(result).__name__, result.message, result.hint))
            return
        if result.passages:
            turn.prompt.content = with_passages(turn.prompt.content, result.passages)
            self.passages_found.emit(conversation, turn)
        if conversation is self.conversation:
            self.path.show_passages()
            for text in remarks_on_passages(result):
                self._page.conversation.add(Notice(text))
        self._show_status(turn, self._waiting_words)
        self._request(run)

    @property
    def _waiting_words(self) -> str:
        is_ready = self._loaded_model.status.phase is Phase.READY
        return self.tr("Thinking…") if is_ready else self.tr("Waiting for the model…")

    def _new_run(self, turn: Turn) -> AnswerRun:
        """Return the run of an answer with the tools and system prompt of all its rounds."""
        panel = self._page.settings_panel
        tools = () if panel.tools.reason else self.calls.chosen(panel.settings().tools)
        return AnswerRun(self.conversation, turn, tools, panel.framed(()))

    def _begin_round(self, run: AnswerRun) -> None:
        """Show the next round of an answer and request it."""
        self._request(run)
        if run.conversation is self.conversation:
            self.path.refresh()
            self._refresh(run.turn)
            self._show_status(run.turn, self._waiting_words)
        self.round_begun.emit(run.conversation, run.turn)

    def _request(self, run: AnswerRun) -> None:
        """Request the last round of an answer."""
        _set_model(run.turn.answer, self._loaded_model.choice)
        self._requests.send(run, records=self.records, updates_datastore=self.updates_datastore)

    def _handle_events(self, run: AnswerRun, events: tuple[Event, ...]) -> None:
        """Apply the engine's events to an answer."""
        conversation, turn = run.conversation, run.turn
        round_id = turn.answer.id
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
                    self._begin_streaming(turn, event)
                case ContextCut() if is_shown:
                    self._page.conversation.add(Notice(describe_cut(event.cut)))
                case LayersMoved() if is_shown:
                    self._page.conversation.add(Notice(engine_text(event.move.text)))
                case GenerationDone():
                    self._append_steps(conversation, turn, steps)
                    self._complete(run, event)
                case Failed():
                    self._append_steps(conversation, turn, steps)
                    self._fail(run, event)
                case _:
                    log.debug("Nothing to do for %s.", type(event).__name__)
        if turn.answer.id == round_id and not turn.answer.content.is_finished:
            self._append_steps(conversation, turn, steps)
        self.answer_reported.emit(turn, events)

    def _begin_streaming(self, turn: Turn, event: AnswerStarted) -> None:
        """Begin to stream an answer under the name of its model.

        The expected model may have been refused meanwhile.
        """
        answer = turn.answer
        answer.content.expect(answer.content.reasoning, event.begins_inside)
        choice = self._loaded_model.choice_of(event.load_id)
        if choice is None or not _set_model(answer, choice):
            return
        self.model_replaced.emit(answer)
        message = self.path.message_of(answer.id)
        if message is not None:
            message.refresh()

    def _append_steps(self, conversation: Conversation, turn: Turn, steps: list[StepDone]) -> None:
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
        self.errors.show_error(message, hint, topic=ErrorTopic.ATTACHMENT)

    def _show_status(self, turn: Turn, text: str) -> None:
        """Show the state before the first token."""
        message = self.path.message_of(turn.answer.id)
        if message is not None:
            message.show_waiting(text)

    def _complete(self, run: AnswerRun, done: GenerationDone) -> None:
        """End a round: run its calls, or end the answer."""
        answer = run.turn.answer
        answer.last.end(done)
        if not _is_removed(run.turn, done):
            self.round_ended.emit(run.conversation, run.turn)
        if answer.last.ends_with_calls and self.calls.toolbox is not None:
            self._refresh(run.turn)
            self.calls.run(run)
        else:
            self._end_answer(run, done)

    def _calls_ended(self, run: AnswerRun, goes_on: bool) -> None:
        """Begin the next round after the calls of one, or end the answer."""
        if not goes_on or self.state.lock_reason:
            self._end_answer(run, run.turn.answer.done)
            return
        run.num_rounds += 1
        run.conversation.next_round(run.turn)
        self._begin_round(run)

    def _end_answer(self, run: AnswerRun, done: GenerationDone | None) -> None:
        """End an answer whose last round has ended."""
        conversation, turn = run.conversation, run.turn
        self.state.end(turn)
        turn.answer.is_running = False
        if done is None:
            self._refresh(turn)
            if conversation is self.conversation:
                self._end()
            return
        is_removed = _is_removed(turn, done)
        if is_removed:
            self._remove_turn(conversation, turn)
        else:
            self.ended.emit(conversation, turn)
            self._refresh(turn)
        if conversation is self.conversation:
            if is_removed and done.stop_reason is not StopReason.CANCELLED:
                self._page.conversation.add(Notice(empty_words(done)))
            for text in remarks_on(turn, done, self._appearance.legend, run.num_rounds):
                self._page.conversation.add(Notice(text))
            if hint := self._font_hints.hint(turn.prompt.text, done.text):
                self._page.conversation.add(Notice(hint))
            self._end()
            if (queued := self.state.take_queued()) is not None:
                follow_up = (queued.text, self._settings(), queued.attachments)
                self._begin(self.conversation.ask(*follow_up))

    def _refresh(self, turn: Turn) -> None:
        """Show what is new of an answer."""
        message = self.path.message_of(turn.answer.id)
        if message is not None:
            message.refresh()

    def _show_call(self, run: AnswerRun, _place: int, _call: RoundCall) -> None:
        """Show the new state of a call."""
        self._refresh(run.turn)

    def _show_questions(self) -> None:
        """Ask about the waiting call of the last answer."""
        turns = self.conversation.turns
        for place, message in enumerate(self.answers):
            is_last = place == len(self.answers) - 1 == len(turns) - 1
            message.show_question(self.calls.question(turns[place]) if is_last else None)

    def _fail(self, run: AnswerRun, failed: Failed) -> None:
        conversation, turn = run.conversation, run.turn
        self.state.end(turn)
        message = self.path.message_of(turn.answer.id)
        turn.answer.end()
        if conversation is self.conversation:
            self.state.unqueue()  # first: what comes back later is put before it
        if turn.answer.text:
            self.round_ended.emit(conversation, turn)
            self.ended.emit(conversation, turn)
            if message is not None:
                message.refresh()
        else:
            self._remove_turn(conversation, turn)
        # A cancel is the user's own wish; a lost engine is shown whoever had asked it.
        if failed.kind != Cancelled.__name__ and not isinstance(failed, EngineLost):
            self.errors.show_failure(failed, ErrorTopic.ANSWER)
        if conversation is self.conversation:
            self._end()

    def _lose_engine(self, lost: EngineLost) -> None:
        self.errors.show_failure(lost, ErrorTopic.ANSWER)
        self.state.lock(self.tr("The engine has stopped: restart Medusa Chat"))

    def _remove_turn(self, conversation: Conversation, turn: Turn) -> None:
        """Remove a turn without an answer; put a new prompt back into the draft."""
        conversation.remove_last_round(turn)
        self.turn_removed.emit(conversation, turn)
        if not turn.prompt.answers:
            unsent = Draft(turn.prompt.text, turn.prompt.attachments)
            self.state.restore(unsent, conversation.session_id)
        if conversation is self.conversation:
            self.path.refresh()
            self._page.show_messages(bool(self._page.conversation.messages))

    def _name_model(self) -> None:
        self.path.show_model(self._loaded_model.choice.key)

    def _leave_messages(self) -> None:
        """Move the focus from a message that will be removed to the composer."""
        page, focused = self._page, QApplication.focusWidget()
        if focused is not None and page.conversation.isAncestorOf(focused):
            page.composer.setFocus()

    def _show_path(self) -> None:
        self._leave_messages()
        self.path.refresh()
        self.meter.refresh()
        self.path_changed.emit(self.conversation)

    def _end(self) -> None:
        self._loaded_model.touch()
        self.path.refresh()
        self.answer_ended.emit()

    def _show_context(self, num_used: int) -> None:
        loaded = self._loaded_model.status.loaded
        self._page.show_context(num_used, loaded.context_tokens if loaded else 0)


def _is_removed(turn: Turn, done: GenerationDone) -> bool:
    """Whether an answer without text is removed, as another one has all its earlier rounds."""
    others = [one for one in turn.prompt.answers if one is not turn.answer]
    if done.text or turn.answer.last.calls or not others:
        return False
    before = turn.answer.rounds[:-1]
    shared = {one.id for other in others for one in other.rounds}
    return not before or before[-1].id in shared


def _set_model(answer: Answer, choice: ModelChoice) -> bool:
    """Set the model of an answer, and return whether it has changed."""
    before = answer.model, answer.model_key
    answer.model, answer.model_key = choice.name, choice.key
    return (answer.model, answer.model_key) != before
