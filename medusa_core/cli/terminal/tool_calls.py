"""Tools in a terminal chat: which are offered, and the question before each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from medusa_core.chats.conversation import Answer
from medusa_core.chats.rounds import Approval, CallState, RoundCall
from medusa_core.cli.terminal.screen import Screen, escaped
from medusa_core.errors import RequestError, ToolError
from medusa_core.tools.arguments import visible_text
from medusa_core.tools.call_loop import CallLoop
from medusa_core.tools.offered_tool import OfferedTool
from medusa_core.tools.status import ServerState
from medusa_core.tools.toolbox import Toolbox

QUESTION = "Run it? [y/N/always] "
_MOST_SHOWN_LINES = 5
_MOST_SHOWN_CHARS = 500
_APPROVALS = {"y": Approval.ONCE, "yes": Approval.ONCE, "always": Approval.ALWAYS}

ReadLine = Callable[[str], Awaitable[str]]
SaveCall = Callable[[int, RoundCall], bool]
IsRequested = Callable[[int], bool]


class TerminalTools:
    """The tools of a terminal chat, and the calls of a round that runs."""

    def __init__(
        self, toolbox: Toolbox, names: tuple[str, ...], screen: Screen, read_line: ReadLine | None
    ) -> None:
        """Initialize.

        Args:
            toolbox: Runs calls.
            names: Names of tools, as `Toolbox.named` reads them.
            screen: Output.
            read_line: Reads an answer of the user; None if there is no terminal, so that calls are
                denied that aren't always approved.
        """
        self._toolbox, self._names = toolbox, names
        self._screen, self._read_line = screen, read_line
        self._loop: CallLoop | None = None

    async def connect(self) -> None:
        """Wait for the servers, and check that each name has a tool.

        Raises:
            RequestError: A name has none.
        """
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(changed.set)

        stop_listening = self._toolbox.listen(wake)
        try:
            while self._missing() and self._is_starting():
                self._screen.progress("starting the servers of tools …")
                await changed.wait()
                changed.clear()
        finally:
            stop_listening()
            self._screen.progress("")
        for problem in self._toolbox.problems:
            self._screen.print_error(problem)
        for status in self._toolbox.servers():
            if status.state is ServerState.FAILED:
                self._screen.print_error(f"{status.server.name}: {status.reason}", status.hint)
        if missing := self._missing():
            known = ", ".join(tool.id for tool in self._toolbox.all_tools()) or "none"
            builtins = ", ".join(one.builtin.name for one in self._toolbox.builtins())
            raise RequestError(
                f"There is no tool {', '.join(missing)}.",
                f"Tools: {known}. Built in: {builtins}. Servers are added in {self._toolbox.path}.",
            )

    @property
    def offered(self) -> tuple[OfferedTool, ...]:
        """The tools that the model may call now."""
        return self._toolbox.named(self._names)

    def stop(self) -> None:
        """Stop the calls."""
        if self._loop is not None:
            self._loop.stop()

    async def run(
        self,
        answer: Answer,
        tools: tuple[OfferedTool, ...],
        conversation_id: str,
        save: SaveCall,
        is_requested: IsRequested,
    ) -> bool:
        """Run the calls of an answer's last round that the user allows.

        Args:
            answer: The answer.
            tools: Tools that were offered.
            conversation_id: Id of the conversation.
            save: Stores a call's new state; returns whether it is stored.
            is_requested: Returns whether a call (its index) waits for a decision: a window may have
                run it.

        Returns:
            Whether the next round reads the results.
        """
        host = _Host(self._screen, self._read_line, save, is_requested)
        self._loop = CallLoop(
            answer.last,
            tools,
            self._toolbox,
            conversation_id,
            host,
            before=answer.rounds[-2].calls if len(answer.rounds) > 1 else (),
        )
        try:
            return await host.run(self._loop)
        finally:
            self._loop = None

    def _missing(self) -> list[str]:
        """Return names without a tool."""
        return [name for name in self._names if not self._toolbox.named((name,))]

    def _is_starting(self) -> bool:
        return any(one.state is ServerState.STARTING for one in self._toolbox.servers())


class _Host:
    """Shows and stores the calls of a round, and asks the user; see `CallHost`."""

    def __init__(
        self,
        screen: Screen,
        read_line: ReadLine | None,
        save: SaveCall,
        is_requested: IsRequested,
    ) -> None:
        self._screen, self._read_line, self._save = screen, read_line, save
        self._is_requested = is_requested
        self._event_loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[bool] = self._event_loop.create_future()
        self._question: asyncio.Task[None] | None = None
        self._shown: set[int] = set()

    async def run(self, calls: CallLoop) -> bool:
        """Run all calls; return whether the next round reads the results."""
        self._calls = calls
        calls.start()
        try:
            return await self._ended
        finally:
            if self._question is not None:
                self._question.cancel()

    def save(self, place: int, call: RoundCall) -> bool:
        match call.state:
            case CallState.RUNNING | CallState.DONE | CallState.FAILED:
                if place not in self._shown:  # nobody was asked
                    self._show_call(place, call)
                if call.state is not CallState.RUNNING:
                    self._show_result(call)
            case CallState.DENIED:
                if place not in self._shown:  # it was denied in the round before
                    self._show_call(place, call)
                self._screen.print_dim("denied")
        return self._save(place, call)

    def ask(self, place: int, call: RoundCall) -> None:
        self._show_call(place, call)
        if self._read_line is None:
            self._screen.print_error(
                "Nobody can be asked about this call here, so it is denied.",
                "Approve it with `always` in a chat at a terminal.",
            )
            self._event_loop.call_soon(self._calls.deny)
        else:
            self._question = asyncio.ensure_future(self._decide(self._read_line))

    def post(self, function: Callable[[], None]) -> None:
        self._event_loop.call_soon_threadsafe(function)

    def end(self, *, goes_on: bool) -> None:
        if not self._ended.done():
            self._ended.set_result(goes_on)

    def warn(self, error: ToolError) -> None:
        self._screen.print_error(error.message, error.hint)

    async def _decide(self, read_line: ReadLine) -> None:
        """Ask the user about the waiting call."""
        try:
            line = await read_line(QUESTION)
        except (EOFError, KeyboardInterrupt):
            self._calls.stop()
            return
        place = self._calls.waiting
        if place is not None and not self._is_requested(place):
            self._screen.print_dim("A window has decided about this call: the chat goes on there.")
            self._calls.stop()
            return
        approval = _APPROVALS.get(line.strip().lower())
        if approval is None:
            self._calls.deny()
        else:
            self._calls.approve(approval)

    def _show_call(self, place: int, call: RoundCall) -> None:
        """Show a call with all its arguments."""
        self._shown.add(place)
        tool = self._calls.tool(place)
        label = call.call.name if tool is None else tool.label
        host = "" if tool is None else tool.host(call.call.arguments)
        self._screen.print(f"▸ {visible_text(label)}{f' → {visible_text(host)}' if host else ''}")
        self._screen.print(f"  {visible_text(call.call.arguments or '{}')}")

    def _show_result(self, call: RoundCall) -> None:
        """Show the beginning of a result."""
        text = "" if call.result is None else call.result.text
        lines = text[:_MOST_SHOWN_CHARS].splitlines()[:_MOST_SHOWN_LINES]
        shown = "\n  ".join(escaped(line) for line in lines)
        rest = len(text) - len("\n".join(lines))
        more = f" … ({rest:,} more characters)" if rest > 1 else ""
        mark = "✗" if call.state is CallState.FAILED else "✓"
        self._screen.print_dim(f"{mark} {shown}{more}")
