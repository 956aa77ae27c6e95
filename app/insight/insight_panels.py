"""Insight: records the steps of answers and opens the panels that show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, QPoint, Signal
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QMainWindow, QToolTip, QWidget

from app.chat.controller import ChatController
from app.chat.messages.answer_message import AnswerMessage
from app.chat_settings.seeds import new_seed
from app.engine.bridge import EngineBridge, OnEvents, Request
from app.engine.loaded_model import LoadedModel
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.docks import Docks
from app.insight.recordings import Recordings
from app.insight.timeline import Timeline
from app.insight.token_card import as_html, card_of
from app.insight.trace_files import TraceFiles
from app.insight.track import Track
from app.theme.appearance import Appearance
from medusa_core.chats.conversation import Turn, new_id
from medusa_core.messages import (
    Command,
    Event,
    Failed,
    GenerateSettings,
    GenerationDone,
    StepDone,
    StepTrace,
)

if TYPE_CHECKING:
    from app.insight.compare import CompareDialog
    from app.insight.equilibrium_panel import EquilibriumPanel
    from app.insight.steps_panel import StepsPanel
    from app.insight.tree_panel import TreePanel


NOT_RECORDED = QT_TRANSLATE_NOOP("Insight", "The step of this token is not recorded, or no longer.")


class Insight(QObject):
    """Owner of the panels that show how answers were decoded.

    Panels are created when they are first opened, so that the window starts faster.

    Args:
        window: The main window, which docks the panels.
        chat: Controller of the chat whose answers are recorded.
        bridge: To the engine.
        loaded_model: State of the model.
        appearance: Appearance of the window.
        chat_height: Minimum height of the chat in pixels.
        make_id: Makes ids of requests.

    Attributes:
        docks: Docks of the panels.
        recordings: The steps of the last answers.
        timeline: The step that the panels show.
        files: Saves and opens recordings.
        tree: Panel of a step's tree; None until it is opened, like the others.
        steps: Panel of curves over all steps.
        equilibrium: Panel of inputs and outputs.
        compare: Comparison of two modes.
        recall: Called with the id of an answer that isn't recorded in this window; adds its steps
            to the recordings if they are stored elsewhere.

    Signals:
        recorded: An answer's steps (a `Track`) are complete.
    """

    recorded = Signal(object)

    def __init__(
        self,
        window: QMainWindow,
        chat: ChatController,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        appearance: Appearance,
        chat_height: Callable[[], int],
        make_id: Callable[[], str] = new_id,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._chat = chat
        self._bridge = bridge
        self._loaded_model = loaded_model
        self._appearance = appearance
        self._make_id = make_id
        self.docks = Docks(window, chat_height, appearance)
        self.recordings = Recordings()
        self.timeline = Timeline()
        self.files = TraceFiles(window, chat.errors, self.recordings, self.timeline)
        self.tree: TreePanel | None = None
        self.steps: StepsPanel | None = None
        self.equilibrium: EquilibriumPanel | None = None
        self.compare: CompareDialog | None = None
        self._model_key = ""
        self.recall: Callable[[str], None] = _nothing_is_kept
        chat.answer_reported.connect(self._record_answer)
        chat.answer_started.connect(self._watch)
        loaded_model.changed.connect(self._announce_model)
        loaded_model.chosen.connect(self._take_model)
        appearance.changed.connect(self._restyle)
        chat.state.conversation_changed.connect(self._show_conversation)
        chat.answer_ended.connect(self._announce_answer)
        self.timeline.moved.connect(self._frame_step)
        self.docks.changed.connect(self._docks_changed)
        self.files.opened.connect(self.open_tree)
        self.files.saved.connect(self._note_saved)

    # Panels ---------------------------------------------------------------------------------------

    def close_all(self) -> None:
        """Close all panels, and delete the comparison, which no other widget owns."""
        self.docks.hide_all()
        if self.compare is not None:
            self.compare.close()
            self.compare.deleteLater()
            self.compare = None

    def is_open(self, name: str) -> bool:
        """Whether a panel, `tree`, `steps` or `equilibrium`, is open and no other hides it."""
        return self.docks.is_seen(self._panel(name))

    def close(self, name: str) -> None:
        """Close a panel."""
        if (panel := self._panel(name)) is not None:
            self.docks.hide(panel)

    def _panel(self, name: str) -> QWidget | None:
        return {"tree": self.tree, "steps": self.steps, "equilibrium": self.equilibrium}[name]

    def open_tree(self) -> TreePanel:
        """Open the tree of a step."""
        if self.tree is None:
            from app.insight.tree_panel import TreePanel

            self.tree = panel = TreePanel(self.timeline, self._appearance)
            panel.token_chosen.connect(lambda token: self._frame(range(token, token + 1)))
            panel.plan.rows_chosen.connect(self._use_rows)
            panel.open_requested.connect(self.files.ask_to_open)
            panel.save_requested.connect(self.files.ask_to_save)
            panel.picture_requested.connect(lambda: self.files.ask_for_picture(panel.view))
            self.docks.add(self.tr("Tree"), panel)
            self._announce_model()
        was_seen = self.docks.is_seen(self.tree)
        self.docks.show(self.tree)
        if not was_seen:
            self.timeline.show_richest()
        return self.tree

    def open_steps(self) -> StepsPanel:
        """Open the curves over all steps."""
        if self.steps is None:
            from app.insight.steps_panel import StepsPanel

            self.steps = StepsPanel(self.timeline, self._appearance)
            self.docks.add(self.tr("Steps"), self.steps)
            self._announce_model()
        self.docks.show(self.steps)
        return self.steps

    def open_equilibrium(self) -> EquilibriumPanel:
        """Open the table of inputs and outputs."""
        if self.equilibrium is None:
            from app.insight.equilibrium_panel import EquilibriumPanel

            self.equilibrium = EquilibriumPanel(
                self._ask,
                self._chat.whole,
                self._make_id,
                self._appearance,
            )
            self.equilibrium.refused.connect(self._chat.errors.show_error)
            self.docks.add(self.tr("Equilibrium"), self.equilibrium)
        self.docks.show(self.equilibrium)
        self._fill_equilibrium()
        return self.equilibrium

    def ask_to_compare(self) -> CompareDialog | None:
        """Open the comparison if the model has more than one mode."""
        loaded = self._loaded_model.status.loaded
        if loaded is not None and loaded.is_remote:
            self._chat.errors.show_error(
                self.tr("On another machine there are no modes to compare."),
                self.tr("Load a model of this computer for that."),
            )
            return None
        return self.open_compare()

    def open_compare(self) -> CompareDialog:
        """Open the comparison."""
        if self.compare is None:
            from app.insight.compare import CompareDialog

            self.compare = CompareDialog(
                self._ask,
                self._bridge.close_session,
                self._make_id,
                new_seed,
                lambda: self._chat.records,
                lambda: self._chat.temperature,
                self._appearance,
            )
            self.compare.answer_started.connect(self._watch)
            self.compare.answer_reported.connect(self._record_compared)
            self._announce_model()
        self.compare.show()
        self.compare.raise_()
        self.compare.edit.setFocus()
        return self.compare

    def _fill_equilibrium(self) -> None:
        """Verify the conversation in an open, empty table once a model is loaded."""
        panel = self.equilibrium
        loaded = self._loaded_model.status.loaded
        is_ready = loaded is not None and not loaded.is_remote  # whose scores nobody knows here
        if panel is not None and is_ready and self.docks.is_seen(panel):
            panel.open()

    def _ask(self, command: Command, on_events: OnEvents) -> Request:
        """Send a command to the engine, after a sleeping model was loaded again."""
        self._loaded_model.wake()
        return self._bridge.ask(command, on_events)

    def _announce_answer(self) -> None:
        self.timeline.has_answers = bool(self._chat.answers)
        if self.equilibrium is not None:
            self.equilibrium.announce_answer()

    def _show_conversation(self) -> None:
        """Reset the panels for another conversation."""
        self.timeline.has_answers = bool(self._chat.answers)
        self.timeline.show(None)
        if self.equilibrium is not None:
            self.equilibrium.forget_conversation()

    def _note_saved(self, path: Path) -> None:
        if self.tree is not None:
            self.tree.show_note(self.tr("Saved as {0}.").format(path))

    def _use_rows(self, num_rows: int) -> None:
        self._chat.use_tree_rows(num_rows)

    def _take_model(self) -> None:
        """Reset what depends on the loaded model."""
        key, self._model_key = self._model_key, self._loaded_model.choice.key
        if self.equilibrium is not None and self._model_key != key:
            self.equilibrium.forget_model()
            self._fill_equilibrium()

    def _announce_model(self) -> None:
        status = self._loaded_model.status
        if self.tree is not None:
            self.tree.show_plan(status.calibrated, status.planned)
        if self.steps is not None:
            self.steps.show_status(status, self._loaded_model.choice.name)
        if self.compare is not None:
            self.compare.offer(status.loaded)
        self._fill_equilibrium()

    def _restyle(self) -> None:
        self.docks.restyle()
        for panel in (self.tree, self.steps, self.equilibrium, self.compare):
            if panel is not None:
                panel.restyle()

    # What is recorded -----------------------------------------------------------------------------

    def _record_answer(self, turn: Turn, events: tuple[Event, ...]) -> None:
        """Record events of an answer of the chat, and update the panels that show it."""
        answer = turn.answer
        if any(one is answer for one in turn.prompt.answers):  # it wasn't taken back
            track = self._begin(events, answer.model, answer.settings)
            shown = self._chat.conversation.turns
            if track is not None and any(one.answer is answer for one in shown):
                self.timeline.show(track)
        self._record(events)

    def _record_compared(self, settings: GenerateSettings, events: tuple[Event, ...]) -> None:
        self._begin(events, self._loaded_model.choice.name, settings)
        self._record(events)

    def _begin(
        self, events: Sequence[Event], model: str, settings: GenerateSettings
    ) -> Track | None:
        """Begin the track of an answer if the events include its first step."""
        for event in events if self._chat.records else ():
            # Of another machine's steps nothing is known.
            if isinstance(event, StepDone) and event.step == 0 and event.token_ids:
                return self.recordings.begin(event, model, settings.rule)
        return None

    def _record(self, events: tuple[Event, ...]) -> None:
        """Record events of one answer."""
        traces = [event for event in events if isinstance(event, StepTrace)]
        self.recordings.add(traces)
        last = events[-1]
        track = self.recordings.tracks.get(last.request_id)
        if track is not None and isinstance(last, Failed):
            track.has_failed = True
        elif track is not None and isinstance(last, GenerationDone):
            track.done = last
            self.recorded.emit(track)
        is_shown = track is not None and track is self.timeline.track
        has_grown = bool(traces) or isinstance(last, GenerationDone)
        if self.timeline.has_lost or (is_shown and has_grown):
            self.timeline.grow()

    # Text and panels ------------------------------------------------------------------------------

    def _watch(self, answer: AnswerMessage) -> None:
        answer.token_hovered.connect(lambda token: self._show_card(answer, token))
        answer.token_pressed.connect(lambda token: self._show_token(answer, token))

    def _show_card(self, answer: AnswerMessage, token: int) -> None:
        track = self._track(answer.request_id)
        lines = () if track is None or token < 0 else card_of(track, token, self._appearance.legend)
        if lines:
            QToolTip.showText(QCursor.pos() + QPoint(0, 12), as_html(lines), answer.view)
        else:
            QToolTip.hideText()

    def _track(self, request_id: str) -> Track | None:
        """Return an answer's recorded steps, loaded if they were saved; None without any."""
        if request_id not in self.recordings.tracks:
            self.recall(request_id)
        return self.recordings.tracks.get(request_id)

    def _show_token(self, answer: AnswerMessage, token: int) -> None:
        """Show the step of a token that the user selected in the text."""
        track = self._track(answer.request_id)
        index = None if track is None or token < 0 else track.step_of(token)
        if track is None or index is None:
            if token >= 0:
                QToolTip.showText(
                    QCursor.pos(), QCoreApplication.translate("Insight", NOT_RECORDED), answer.view
                )
            return
        panel = self.open_tree()
        panel.window().raise_()  # a comparison has a window of its own
        panel.window().activateWindow()
        self.timeline.show(track, index)
        panel.choose_token(token)

    def _docks_changed(self) -> None:
        if not self.docks.is_any_open:
            self.timeline.play(False)
        self._frame_step()

    def _frame_step(self) -> None:
        """Frame the tokens of the shown step, unless it is followed live."""
        timeline = self.timeline
        is_open = self.docks.is_any_open
        if timeline.track is None or timeline.step is None or timeline.follows or not is_open:
            self._frame(range(0))
            return
        first = timeline.track.first_token(timeline.index)
        self._frame(range(first, first + timeline.step.num_appended))

    def _frame(self, tokens: range) -> None:
        """Frame tokens of the shown answer in chat or comparison, and remove other frames."""
        track = self.timeline.track
        shown = "" if track is None else track.request_id
        for answer in self._chat.answers:
            place = answer.select_tokens(tokens if answer.request_id == shown else range(0))
            if place is not None:
                self._chat.reveal(answer, place)
        if self.compare is not None:
            self.compare.reveal(shown, tokens)


def _nothing_is_kept(request_id: str) -> None:
    """Default of `recall`: no steps are stored elsewhere."""
