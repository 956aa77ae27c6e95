"""Run the tool calls of a round that the user approves; shared by window and terminal.

Each call goes from `requested` to `approved`, `running`, `done` or `failed`, and each state is
stored before the next one begins. So a killed program neither loses a call nor repeats it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from medusa_core.chats.rounds import (
    Approval,
    CallState,
    Round,
    RoundCall,
    ToolResult,
    is_same_call,
)
from medusa_core.errors import ToolError
from medusa_core.messages import ToolCall
from medusa_core.tools.approvals import HOST_SEPARATOR, Approvals
from medusa_core.tools.arguments import arguments_problem
from medusa_core.tools.offered_tool import OfferedTool
from medusa_core.tools.results import RunningCall, repeated_result, text_result

log = logging.getLogger(__name__)

MOST_ROUNDS = 10  # of calls; the round after them is offered no tools
_NOT_STORED = "The call was not run: it could not be stored before."


class ToolRunner(Protocol):
    """Runs calls; a `Toolbox`."""

    @property
    def approvals(self) -> Approvals: ...

    def run(
        self, tool: OfferedTool, arguments: str, on_done: Callable[[ToolResult], None]
    ) -> RunningCall: ...


class CallHost(Protocol):
    """Shows and stores calls, and takes the user's decisions."""

    def save(self, place: int, call: RoundCall) -> bool:
        """Store and show a call's new state.

        Args:
            place: Index of the call in its round.
            call: The call, which is in the round already.

        Returns:
            Whether it is stored. A call that isn't stored as running doesn't run.
        """

    def ask(self, place: int, call: RoundCall) -> None:
        """Ask the user about a call; `CallLoop.approve`, `deny` or `stop` follows."""

    def post(self, function: Callable[[], None]) -> None:
        """Call a function in the loop's thread soon; called from any thread."""

    def end(self, *, goes_on: bool) -> None:
        """Handle the end of all calls.

        Args:
            goes_on: Whether the next round reads the results; else the answer ends.
        """

    def warn(self, error: ToolError) -> None:
        """Show an error that doesn't stop the call."""


class CallLoop:
    """The calls of a round, one after the other. All methods are called in one thread.

    Attributes:
        waiting: Index of the call that waits for the user; None for none.
        is_ended: Whether `CallHost.end` was called.
    """

    def __init__(
        self,
        round_: Round,
        tools: Sequence[OfferedTool],
        toolbox: ToolRunner,
        conversation_id: str,
        host: CallHost,
        *,
        before: Sequence[RoundCall] = (),
    ) -> None:
        """Prepare the calls of a round.

        Args:
            round_: The round, which has ended. Of its calls, those that were requested are run.
            tools: Tools that may be called.
            toolbox: Runs calls; holds the user's approvals.
            conversation_id: Id of the conversation.
            host: Shows and stores calls.
            before: Calls of the round before. None of them is run again: the same call gets the
                same result, or is denied again without a question.
        """
        self._before = before
        self._round, self._host = round_, host
        self._tools = {one.tool.name: one for one in tools}
        self._toolbox, self._conversation_id = toolbox, conversation_id
        self._place = 0
        self._running: RunningCall | None = None
        self._asks_next = False
        self.waiting: int | None = None
        self.is_ended = False

    def start(self, *, asks_first: bool = False) -> None:
        """Run the calls that need no question, up to the first that does.

        Args:
            asks_first: Whether to ask about the first call even if it is approved already, for
                calls that an earlier session left: those never run by themselves.
        """
        self._asks_next = asks_first
        self._run_next_calls()

    def _run_next_calls(self) -> None:
        """Run or ask about calls from the current one on, up to the first to wait for."""
        calls = self._round.calls
        while not self.is_ended and self._place < len(calls):
            if calls[self._place].state is CallState.REQUESTED:
                self._begin()
                if self.waiting is not None or self._running is not None:
                    return
                calls = self._round.calls
            self._place += 1
        if not self.is_ended:
            self._end(goes_on=True)

    def tool(self, place: int) -> OfferedTool | None:
        """Return the tool of a call; None if there is none of that name."""
        return self._tools.get(self._round.calls[place].call.name)

    def problem(self, arguments: str) -> str:
        """Return why the waiting call can't run with other arguments; empty if it can."""
        tool = None if self.waiting is None else self.tool(self.waiting)
        return "" if tool is None else arguments_problem(arguments, tool.tool.parameters)

    def approve(self, approval: Approval, arguments: str | None = None) -> None:
        """Run the waiting call.

        Args:
            approval: How long the approval holds.
            arguments: Arguments that the user has edited; None for those of the model.
        """
        if self.waiting is None:
            return
        self.waiting = None
        call = self._call
        if arguments is None:
            arguments = call.call.arguments
        elif arguments != call.call.arguments:
            self._replace_call(replace(call, call=call.call._replace(arguments=arguments)))
        tool = self.tool(self._place)
        assert tool is not None  # nobody is asked about others
        try:
            key, host = tool.approval_key(arguments), tool.host(arguments)
            label = f"{tool.label}{HOST_SEPARATOR}{host}" if host else tool.label
            self._toolbox.approvals.approve(key, approval, self._conversation_id, label)
        except ToolError as error:
            self._host.warn(error)
        self._run(tool, approval)
        self._advance()

    def deny(self) -> None:
        """Deny the waiting call, which doesn't run; the model reads that it was denied."""
        if self.waiting is None:
            return
        self.waiting = None
        self._store(replace(self._call, state=CallState.DENIED))
        self._advance()

    def stop(self) -> None:
        """End the answer: a waiting call stays requested, a running one is interrupted."""
        if self.is_ended:
            return
        self.waiting = None
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            self._store(replace(self._call, state=CallState.INTERRUPTED))
        self._end(goes_on=False)

    @property
    def _call(self) -> RoundCall:
        return self._round.calls[self._place]

    def _begin(self) -> None:
        """Refuse the next call, run it, or ask the user about it."""
        call, tool = self._call.call, self.tool(self._place)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            self._fail(f"The call was not run: there is no tool {call.name!r}. Tools: {known}.")
        elif (same := self._earlier_call(call)) is not None:
            result = None if same.result is None else repeated_result(same.result)
            self._store(replace(self._call, state=same.state, result=result))
        elif problem := arguments_problem(call.arguments, tool.tool.parameters):
            self._fail(f"The call was not run. {problem}")
        else:
            key = tool.approval_key(call.arguments)
            approval = self._toolbox.approvals.approval(key, self._conversation_id)
            if approval is Approval.NONE or self._asks_next:
                self._asks_next = False
                self.waiting = self._place
                self._host.ask(self._place, self._call)
            else:
                self._run(tool, approval)

    def _earlier_call(self, call: ToolCall) -> RoundCall | None:
        """Return the same call of this round or the one before, if it was answered or denied."""
        others = (*self._before, *self._round.calls[: self._place])
        ended = (CallState.DONE, CallState.FAILED, CallState.DENIED)
        same = (one for one in others if one.state in ended and is_same_call(call, one.call))
        return next(same, None)

    def _run(self, tool: OfferedTool, approval: Approval) -> None:
        """Store an approved call and run it."""
        self._store(replace(self._call, state=CallState.APPROVED, approval=approval))
        if not self._store(replace(self._call, state=CallState.RUNNING)):
            self._fail(_NOT_STORED)
            return
        place = self._place
        self._running = self._toolbox.run(
            tool,
            self._call.call.arguments,
            lambda result: self._host.post(partial(self._done, place, result)),
        )

    def _done(self, place: int, result: ToolResult) -> None:
        """Store the result of a call, and go on unless it was stopped."""
        if self._running is None or place != self._place:
            return
        self._running = None
        state = CallState.FAILED if result.is_error else CallState.DONE
        self._store(replace(self._call, state=state, result=result))
        self._advance()

    def _advance(self) -> None:
        if self._running is None and not self.is_ended:
            self._place += 1
            self._run_next_calls()

    def _fail(self, text: str) -> None:
        """End a call without running it; `text` tells the model why."""
        result = text_result(text, is_error=True)
        self._store(replace(self._call, state=CallState.FAILED, result=result))

    def _replace_call(self, call: RoundCall) -> None:
        calls = list(self._round.calls)
        calls[self._place] = call
        self._round.calls = tuple(calls)

    def _store(self, call: RoundCall) -> bool:
        self._replace_call(call)
        return self._host.save(self._place, call)

    def _end(self, *, goes_on: bool) -> None:
        self.is_ended = True
        self._host.end(goes_on=goes_on)
