"""An engine for models of endpoints; see `medusa_core.api.Engine`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from medusa_core.errors import Cancelled, EngineError, MedusaError, RequestError
from medusa_core.i18n import tr
from medusa_core.messages import (
    NO_PLAN,
    AnswerStarted,
    Cancel,
    CloseSession,
    Command,
    Count,
    Counted,
    DrafterChoice,
    Event,
    Failed,
    Generate,
    GenerationDone,
    LoadRemote,
    Message,
    ModelLoaded,
    Progress,
    RuleChoice,
    ThinkingSwitch,
    Unload,
    Unloaded,
)
from medusa_core.remote.answer_stream import answer_events
from medusa_core.remote.connection import EndpointConnection, EndpointTimeouts
from medusa_core.remote.keys import saved_key
from medusa_core.remote.offered import OfferedModel, chosen_model, offered_models
from medusa_core.remote.refusals import offline_error

log = logging.getLogger(__name__)

FindKey = Callable[[Path | None, str], str]
_DEFAULT = EndpointTimeouts()
# The endpoint decides whether and how it drafts.
_DRAFTER = DrafterChoice(
    "none", "As that machine does", "The other machine decides how it decodes.", drafts=False
)
_RULES = (
    RuleChoice(
        "greedy", "Greedy", "Takes the likeliest token each time.", is_exact=True, draws=False
    ),
    RuleChoice(
        "sample", "Sample", "Draws each token by its probability.", is_exact=True, draws=True
    ),
)


class RemoteEngine:
    """Runs requests on endpoints, in a thread with its own event loop.

    Answers of several conversations run at once. `EngineRouter` holds commands while a model is
    being loaded.

    Attributes:
        is_alive: Whether commands are still executed.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        find_key: FindKey = saved_key,
        timeouts: EndpointTimeouts = _DEFAULT,
    ) -> None:
        """Start the engine, which sends nothing before a `LoadRemote`.

        Args:
            on_event: Called with every event, in the engine's thread.
            find_key: Returns the saved key of a URL; may block.
            timeouts: Timeouts of the endpoints.
        """
        self._send = on_event
        self._find_key = find_key
        self._timeouts = timeouts
        self._connection: EndpointConnection | None = None
        self._model_id = self._load_id = ""
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="medusa-remote", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the engine's thread runs."""
        return self._thread.is_alive()

    def submit(self, command: Command) -> None:
        """Queue a command and return at once."""
        with suppress(RuntimeError):  # the loop is closed, so nobody waits for the answer
            self._loop.call_soon_threadsafe(self._execute, command)

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel all requests and end the thread; safe to call twice."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        """Run the event loop until the engine is closed."""
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end_all())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _end_all(self) -> None:
        """Cancel all requests and close the connection."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._disconnect()

    # Commands -------------------------------------------------------------------------------------

    def _execute(self, command: Command) -> None:
        """Execute a command in the engine's thread."""
        match command:
            case LoadRemote():
                self._start(command, partial(self._load, command))
            case Generate():
                self._generate(command)
            case Cancel():
                self._cancel(*command.ids)
            case CloseSession():
                self._cancel(command.session_id)
            case Unload():
                self._start(command, partial(self._unload, command))
            case Count():
                self._send(Counted(*command.ids, 0, 0, 0, None, "", ""))
            case _:
                self._fail(command, _unknown_here())

    def _start(self, command: Message, start: Callable[[], Awaitable[None]]) -> None:
        """Run a request as a task; its error or cancellation becomes an event."""
        key = command.ids

        def end(task: asyncio.Task[None]) -> None:
            """Forget the request, and report how it failed."""
            if self._running.get(key) is task:
                del self._running[key]
            if task.cancelled():
                self._fail(command, Cancelled(tr("This was stopped.")))
            elif (error := task.exception()) is not None:
                self._fail(command, error)

        self._running[key] = task = self._loop.create_task(_awaited(start))
        task.add_done_callback(end)

    def _cancel(self, session_id: str, request_id: str = "") -> None:
        """Cancel a request, or all requests of a session."""
        for (session, request), task in tuple(self._running.items()):
            if session == session_id and request_id in ("", request):
                task.cancel()

    def _fail(self, command: Message, error: BaseException) -> None:
        """Send the event of a failed request."""
        if isinstance(error, MedusaError):
            kind, message, hint = type(error).__name__, error.message, error.hint
        else:
            log.error("a request to another machine failed", exc_info=error)
            kind, message = (
                EngineError.__name__,
                tr("The engine failed: {0}.", type(error).__name__),
            )
            hint = tr("Try again; the log has the details.")
        self._send(Failed(*command.ids, kind, message, hint))

    # The model ------------------------------------------------------------------------------------

    async def _load(self, command: LoadRemote) -> None:
        """Replace the loaded model, once the endpoint has listed the new one."""
        began_s, model = time.monotonic(), command.model
        if command.is_offline:
            raise offline_error()
        ids = command.ids
        self._send(Progress(*ids, "connect", 0.0, tr("Asking {0} for its models", model.place)))
        key = command.key or await asyncio.to_thread(
            self._find_key, command.keys_dir, model.endpoint
        )
        connection = EndpointConnection(model.endpoint, model.place, key, self._timeouts)
        try:
            offered = await offered_models(connection)
            chosen = chosen_model(model.place, model.model_id, offered)
        except BaseException:
            await connection.close()
            raise
        await self._end_answers()
        await self._disconnect()
        self._connection, self._model_id = connection, chosen.model_id
        self._load_id = command.request_id
        self._send(_loaded(command, chosen, time.monotonic() - began_s))

    async def _unload(self, command: Unload) -> None:
        """Disconnect after ending all answers."""
        await self._end_answers()
        await self._disconnect()
        self._send(Unloaded(*command.ids, 0))

    async def _end_answers(self) -> None:
        """Cancel all other requests, and wait for their end."""
        others = [task for task in self._running.values() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _disconnect(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # Answers --------------------------------------------------------------------------------------

    def _generate(self, request: Generate) -> None:
        """Start an answer, unless the session is being answered."""
        if any(session == request.session_id for session, _ in self._running):
            self._fail(request, _still_answering())
        else:
            self._start(request, partial(self._answer, request))

    async def _answer(self, request: Generate) -> None:
        """Send the events of an answer."""
        if self._connection is None:
            raise RequestError("No model is loaded.", "Load a model first.")
        self._send(AnswerStarted(*request.ids, self._load_id))
        async for event in answer_events(self._connection, request, self._model_id):
            if isinstance(event, GenerationDone):
                # Before the event is sent, so that its receiver can send the next request at once.
                del self._running[request.ids]
            self._send(event)


async def _awaited(start: Callable[[], Awaitable[None]]) -> None:
    """Create the coroutine only when its task starts: a cancelled task leaves none behind."""
    await start()


def _loaded(command: LoadRemote, model: OfferedModel, seconds: float) -> ModelLoaded:
    """Make the event of a loaded model, whose sizes are unknown."""
    return ModelLoaded(
        *command.ids,
        name=model.model_id,
        num_parameters=0,
        num_heads=0,
        context_tokens=model.context_tokens,
        vocab_size=0,
        dtype="",
        quant="",
        plan=NO_PLAN,
        device="",
        drafters=(_DRAFTER,),
        rules=_RULES,
        sources=(),
        load_s=seconds,
        thinking=ThinkingSwitch(can_switch=True),
        place=command.model.place,
    )


def _unknown_here() -> RequestError:
    """Make the error for commands that need a local model."""
    return RequestError(
        "This can't be asked of a model of another machine.",
        "Load a model of this computer for that.",
    )


def _still_answering() -> RequestError:
    """Make the error for a second request of a session."""
    return RequestError(
        "This conversation is still being answered.", "Wait for the answer, or stop it."
    )
