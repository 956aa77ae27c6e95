"""Runs the tool calls of the chat's answers: stores and shows them, and asks the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from app.chat.messages.approval_form import CallQuestion
from app.state.chat import ChatPhase, ChatState
from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.chats.rounds import Approval, CallState, RoundCall, is_same_call
from medusa_core.errors import ToolError
from medusa_core.messages import ChatMessage

if TYPE_CHECKING:
    from medusa_core.api import OfferedTool, Toolbox


@dataclass(slots=True)
class AnswerRun:
    """A pending answer with the tools of its rounds.

    Attributes:
        conversation: Its conversation.
        turn: Its turn.
        tools: Tools that it may call, the same in all of its rounds.
        system: System prompt of its conversation.
        num_rounds: Number of its rounds since the user asked.
    """

    conversation: Conversation
    turn: Turn
    tools: tuple[OfferedTool, ...] = ()
    system: tuple[ChatMessage, ...] = ()
    num_rounds: int = 1


class CallController(QObject):
    """Runs the calls of ended rounds, one answer's beside another's.

    Attributes:
        toolbox: Tools of the user; None for none.
        is_stored: Returns whether all that was reported is in the history.
        is_requested: Returns whether a call (id of its round, and place) still waits for a
            decision: another program with the same history may have run it.

    Signals:
        changed: The state of a call (its `AnswerRun`, place and `RoundCall`) has changed.
        waiting: A call of an answer (an `AnswerRun`) waits for the user.
        ended: All calls of an answer (an `AnswerRun`) have ended; whether its next round begins.
        warned: An approval couldn't be stored (a `ToolError`).
        taken: Another program has decided about a call of the shown conversation.
    """

    changed = Signal(object, int, object)
    waiting = Signal(object)
    ended = Signal(object, bool)
    warned = Signal(object)
    taken = Signal()
    # From a tool's thread to that of the window.
    _posted = Signal(object)

    def __init__(self, state: ChatState) -> None:
        super().__init__()
        self.toolbox: Toolbox | None = None
        self.is_stored: Callable[[], bool] = lambda: True
        self.is_requested: Callable[[str, int], bool] = lambda _id, _place: True
        self._state = state
        self._under_way: list[_Calls] = []
        self._posted.connect(self._call, Qt.ConnectionType.QueuedConnection)

    def chosen(self, ids: tuple[str, ...]) -> tuple[OfferedTool, ...]:
        """Return the chosen tools that can be called now."""
        return () if self.toolbox is None or not ids else self.toolbox.chosen(ids)

    def run(self, run: AnswerRun) -> None:
        """Run the calls of the last round of a pending answer."""
        assert self.toolbox is not None
        calls = _Calls(self, self.toolbox, run)
        self._under_way.append(calls)
        self._state.wait_for(run.turn, calls)
        calls.loop.start()

    def take_up(self, run: AnswerRun) -> None:
        """Ask about and run the open calls of a shown answer, which an earlier session left."""
        assert self.toolbox is not None
        calls = _Calls(self, self.toolbox, run)
        self._under_way.append(calls)
        self._state.begin(run.turn, calls)
        calls.loop.start(asks_first=True)

    def question(self, turn: Turn) -> CallQuestion | None:
        """Return the call about which the user can decide; None if there is none.

        Args:
            turn: The last one of its conversation.
        """
        calls = self._calls_of(turn)
        if calls is None and (self._state.is_pending(turn) or self.toolbox is None):
            return None
        place = _first_requested(turn) if calls is None else calls.loop.waiting
        if place is None:
            return None
        asked = turn.answer.last.calls[place].call
        name = asked.name
        before = (one for earlier in turn.answer.rounds[:-1] for one in earlier.calls)
        is_repeated = any(
            one.state is CallState.DONE and is_same_call(one.call, asked) for one in before
        )
        known = () if self.toolbox is None else self.toolbox.all_tools()
        tools = {one.tool.name: one for one in (known if calls is None else calls.run.tools)}
        tool = tools.get(name)
        is_there = tool is not None and any(one.id == tool.id for one in known)
        return CallQuestion(place, name, tool if is_there else None, is_repeated)

    def is_waiting(self, turn: Turn) -> bool:
        """Whether the answer of a turn waits for the user's decision now."""
        calls = self._calls_of(turn)
        return calls is not None and calls.loop.waiting is not None

    def decide(self, turn: Turn, place: int, approval: Approval, arguments: str) -> None:
        """Answer the question about a call; does nothing if another one waits, or none.

        Args:
            turn: Turn of the call.
            place: Index of the call in the last round of the answer.
            approval: How it is approved; `Approval.NONE` denies it.
            arguments: Its arguments, which may have been edited.
        """
        calls = self._calls_of(turn)
        if calls is None or calls.loop.waiting != place:
            return
        if approval is Approval.NONE:
            calls.loop.deny()
        else:
            calls.loop.approve(approval, arguments)

    def give_up(self, turn: Turn) -> None:
        """Leave the calls of an answer to another program, which has decided about one."""
        calls = self._calls_of(turn)
        if calls is not None:
            calls.cancel()
        self.taken.emit()

    def stop_all(self) -> None:
        """Stop all calls, before the window is closed."""
        for calls in tuple(self._under_way):
            calls.cancel()

    def _calls_of(self, turn: Turn) -> _Calls | None:
        return next((one for one in self._under_way if one.run.turn.answer is turn.answer), None)

    def post(self, function: Callable[[], None]) -> None:
        """Call a function in the window's thread; called from any thread."""
        try:
            self._posted.emit(function)
        except RuntimeError:  # the window was closed: Qt's part is gone
            return

    def _call(self, function: Callable[[], None]) -> None:
        """Call a posted function in the window's thread."""
        function()

    def show(self, calls: _Calls, phase: ChatPhase) -> None:
        """Show whether an answer waits for the user, unless its conversation is gone."""
        if not self._state.is_pending(calls.run.turn):
            return
        self._state.wait_for(calls.run.turn, calls, phase)
        if phase is ChatPhase.AWAITING_APPROVAL:
            self.waiting.emit(calls.run)

    def end(self, calls: _Calls, *, goes_on: bool) -> None:
        """Report the end of an answer's calls, unless its conversation is gone."""
        self._under_way.remove(calls)
        if self._state.is_pending(calls.run.turn):
            self.ended.emit(calls.run, goes_on)


class _Calls:
    """The calls of one round, as work of its pending answer."""

    def __init__(self, controller: CallController, toolbox: Toolbox, run: AnswerRun) -> None:
        from medusa_core.api import CallLoop

        self._controller, self.run = controller, run
        answer, session_id = run.turn.answer, run.conversation.session_id
        before = answer.rounds[-2].calls if len(answer.rounds) > 1 else ()
        self.loop = CallLoop(
            *(answer.last, run.tools, toolbox, session_id, self),
            before=before,
        )

    def cancel(self) -> None:
        self.loop.stop()

    def drop(self) -> None:
        self.loop.stop()

    def save(self, place: int, call: RoundCall) -> bool:
        self._controller.changed.emit(self.run, place, call)
        if call.state is not CallState.REQUESTED:
            self._controller.show(self, ChatPhase.ANSWERING)
        return self._controller.is_stored()

    def ask(self, place: int, call: RoundCall) -> None:
        del place, call
        self._controller.show(self, ChatPhase.AWAITING_APPROVAL)

    def post(self, function: Callable[[], None]) -> None:
        self._controller.post(function)

    def end(self, *, goes_on: bool) -> None:
        self._controller.end(self, goes_on=goes_on)

    def warn(self, error: ToolError) -> None:
        self._controller.warned.emit(error)


def _first_requested(turn: Turn) -> int | None:
    """Return the index of the first call of an ended answer that hasn't run; None for none."""
    calls = enumerate(turn.answer.last.calls)
    return next((place for place, one in calls if one.state is CallState.REQUESTED), None)
