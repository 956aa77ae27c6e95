"""The engine for programs: requests that are awaited, answers that are iterated over.

```
async with Client() as client:
    await client.load(LoadModel("", new_id(), demo_model_dir(), demo_heads_dir()))
    async with aclosing(client.answer("chat", messages, settings)) as events:
        async for event in events:
            ...
```

Requests are routed by their ids, so that any number may wait at once. Those of one conversation
take turns: a second question waits for the first one's answer. Who leaves a request before its end
cancels it. Command lines and servers are adapters over this; the window has a bridge of its own,
which collects what comes between two frames.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from medusa_core import errors
from medusa_core.api import Engine, EventSink, start_engine
from medusa_core.chats.conversation import new_id
from medusa_core.errors import EngineError, MedusaError
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Cancel,
    ChatMessage,
    CloseSession,
    Command,
    Count,
    Counted,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadRemote,
    Message,
    ModelLoaded,
    Progress,
    Tokenize,
    Tokenized,
    Unload,
    Unloaded,
    Verified,
    Verify,
)

log = logging.getLogger(__name__)

Listener = Callable[[Event], None]
StartEngine = Callable[[EventSink], Engine]
_SESSION = "client"
_E = TypeVar("_E", bound=Message)


@dataclass(slots=True)
class _Turn:
    """Whose turn it is in a conversation, and how many have or want it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    num_users: int = 0


class Client:
    """One engine, used by the coroutines of one event loop."""

    def __init__(self, start: StartEngine = start_engine) -> None:
        """Prepare a client; `async with` starts its engine and ends it.

        Args:
            start: Starts an engine; tests bring their own.
        """
        self._start = start
        self._lock = threading.Lock()
        self._arrived: deque[Event] = deque()
        self._wake_is_posted = False
        self._requests: dict[tuple[str, str], asyncio.Queue[Event]] = {}
        self._turns: dict[str, _Turn] = {}
        self._listeners: list[Listener] = []

    async def __aenter__(self) -> Client:
        self._loop = asyncio.get_running_loop()
        self._engine = self._start(self._receive)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._engine.close)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with every event, in the loop's thread; returns what stops that."""
        self._listeners.append(listener)

        def stop() -> None:
            with suppress(ValueError):  # it was ended before
                self._listeners.remove(listener)

        return stop

    async def load(
        self,
        command: LoadModel | LoadRemote,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> ModelLoaded:
        """Load a model in place of the one before, which comes back where that fails.

        Args:
            command: What to load; see `model_state.ModelState.load`.
            on_progress: Called with how far it is.

        Raises:
            MedusaError: It can't be loaded.
        """
        return await self._last(command, ModelLoaded, on_progress)

    async def calibrate(self, *, is_anew: bool = False) -> Calibrated:
        """Measure what steps cost, or take what was measured before.

        Args:
            is_anew: Forget what was measured before.

        Raises:
            MedusaError: No model is loaded, or the engine failed.
        """
        return await self._last(Calibrate(_SESSION, new_id(), is_anew), Calibrated)

    async def verify(self, command: Verify) -> Verified:
        """What the model would have written behind each token of a text.

        Raises:
            MedusaError: There is no text, it is too long, or the engine failed.
        """
        return await self._last(command, Verified)

    async def count(self, command: Count) -> Counted:
        """How long a conversation is, and how much of it would be read; disturbs no answer.

        Raises:
            MedusaError: No model is loaded, or its template fails.
        """
        return await self._last(command, Counted)

    async def tokenize(self, command: Tokenize) -> Tokenized:
        """Which tokens are a text, or which text are tokens; disturbs no answer.

        Raises:
            MedusaError: No model is loaded, or a token is none of it.
        """
        return await self._last(command, Tokenized)

    async def unload(self) -> Unloaded:
        """Free the model and all conversations' caches."""
        return await self._last(Unload(_SESSION, new_id()), Unloaded)

    async def answer(
        self,
        session_id: str,
        messages: Sequence[ChatMessage],
        settings: GenerateSettings,
        *,
        keep_tokens: int | None = None,
        records: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Answer a conversation, once its earlier answers are complete.

        Args:
            session_id: Names the conversation, whose cached rows are used again.
            messages: Its turns, oldest first.
            settings: How to decode.
            keep_tokens: Of an answer at the end of the messages, the tokens to go on from.
            records: Give a `StepTrace` behind every step.

        Yields:
            `AnswerStarted`, `Progress` while the prompt is read, `StepDone` and maybe `StepTrace`
            for every step, and at the end `GenerationDone`. Leaving earlier cancels the answer; use
            `aclosing`.

        Raises:
            MedusaError: It can't be answered.
        """
        request = Generate(
            session_id,
            new_id(),
            tuple(messages),
            settings,
            keep_tokens=keep_tokens,
            records=records,
        )
        async with aclosing(self.generate(request)) as events:
            async for event in events:
                yield event

    async def generate(self, request: Generate) -> AsyncGenerator[Event, None]:
        """Carry out a command to answer; see `answer`.

        Raises:
            MedusaError: It can't be answered.
        """
        turn, events = self._turn(request.session_id), self._events(request, GenerationDone)
        async with turn, aclosing(events):
            async for event in events:
                yield event

    def cancel(self, request: Generate) -> None:
        """End an answer within a step; its events still come, and what there is of it stays."""
        self._engine.submit(Cancel(request.session_id, request.request_id))

    async def close_session(self, session_id: str) -> None:
        """Forget a conversation's cached rows, once its answers are complete."""
        async with self._turn(session_id):
            self._engine.submit(CloseSession(session_id, new_id()))

    @asynccontextmanager
    async def _turn(self, session_id: str) -> AsyncIterator[None]:
        """Wait for a conversation's earlier requests; the last one to leave forgets it."""
        turn = self._turns.setdefault(session_id, _Turn())
        turn.num_users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.num_users -= 1
            if not turn.num_users:
                del self._turns[session_id]

    async def _last(
        self,
        command: Command,
        end: type[_E],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> _E:
        """The event that ends a request."""
        async with aclosing(self._events(command, end)) as events:
            async for event in events:
                if isinstance(event, end):
                    return event
                if isinstance(event, Progress) and on_progress is not None:
                    on_progress(event)
        raise EngineError("The engine ended a request without an answer.", "Try again.")

    async def _events(self, command: Command, end: type[Message]) -> AsyncGenerator[Event, None]:
        """Submit a command; its events up to the last one. Leaving earlier cancels it."""
        key = (command.session_id, command.request_id)
        events = self._requests[key] = asyncio.Queue()
        has_ended = False
        try:
            self._engine.submit(command)
            while not has_ended:
                event = await events.get()
                has_ended = isinstance(event, end | Failed)
                if isinstance(event, Failed):
                    raise error_of(event)
                yield event
        finally:
            del self._requests[key]
            if not has_ended:
                self._engine.submit(Cancel(*key))

    def _receive(self, event: Event) -> None:
        """The worker's thread: keep the event and wake the loop, unless that is under way."""
        with self._lock:
            self._arrived.append(event)
            if self._wake_is_posted:
                return
            self._wake_is_posted = True
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            arrived, self._arrived = self._arrived, deque()
            self._wake_is_posted = False
        for event in arrived:
            for listener in tuple(self._listeners):
                try:
                    listener(event)
                except Exception:
                    log.exception("a listener fails at an event, which the others still get")
            waiting = self._requests.get((event.session_id, event.request_id))
            if waiting is not None:
                waiting.put_nowait(event)


def error_of(failed: Failed) -> MedusaError:
    """What a failure was before it became an event."""
    kind = getattr(errors, failed.kind, EngineError)
    is_ours = isinstance(kind, type) and issubclass(kind, MedusaError)
    error: MedusaError = (kind if is_ours else EngineError)(
        failed.message, failed.hint, **failed.data
    )
    return error
