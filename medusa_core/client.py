"""The engine's interface for coroutines.

```
async with Client() as client:
    await client.load(LoadModel("", new_id(), demo_model_dir(), demo_heads_dir()))
    async with aclosing(client.answer("chat", messages, settings)) as events:
        async for event in events:
            ...
```

Any number of requests may run at once; those of one conversation run one after the other. Leaving
a request before its end cancels it. Command line and server are adapters over this; the window has
its own bridge, which collects the events between two frames.
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
    Embed,
    Embedded,
    EmbedderUnloaded,
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
    UnloadEmbedder,
    Verified,
    Verify,
)

log = logging.getLogger(__name__)

Listener = Callable[[Event], None]
StartEngine = Callable[[EventSink], Engine]
_SESSION = "client"
_E = TypeVar("_E", bound=Message)


@dataclass(slots=True)
class _SessionLock:
    """Lock of a conversation, and the number of its open requests."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    num_users: int = 0


class Client:
    """Client of an engine, for the coroutines of one event loop."""

    def __init__(self, start: StartEngine = start_engine) -> None:
        """Make a client; `async with` starts and ends its engine.

        Args:
            start: Starts an engine.
        """
        self._start = start
        self._lock = threading.Lock()
        self._arrived: deque[Event] = deque()
        self._wake_is_posted = False
        self._requests: dict[tuple[str, str], asyncio.Queue[Event]] = {}
        self._session_locks: dict[str, _SessionLock] = {}
        self._listeners: list[Listener] = []
        self._calibration: asyncio.Task[None] | None = None

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
        if self._calibration is not None:
            self._calibration.cancel()
            await asyncio.gather(self._calibration, return_exceptions=True)
        await asyncio.to_thread(self._engine.close)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with every event, in the loop's thread; returns a function to stop."""
        self._listeners.append(listener)

        def stop() -> None:
            with suppress(ValueError):  # stopped before
                self._listeners.remove(listener)

        return stop

    async def load(
        self,
        command: LoadModel | LoadRemote,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> ModelLoaded:
        """Load a model in place of the loaded one, which is restored if that fails.

        Args:
            command: The command.
            on_progress: Called with the progress.

        Raises:
            MedusaError: The model can't be loaded.
        """
        return await self._last(command, ModelLoaded, on_progress)

    async def calibrate(self, *, is_anew: bool = False) -> Calibrated:
        """Measure step costs, or return saved measurements.

        Args:
            is_anew: Whether to discard saved measurements.

        Raises:
            MedusaError: No model is loaded, or the engine failed.
        """
        return await self._last(Calibrate(_SESSION, new_id(), is_anew), Calibrated)

    def calibrate_when_idle(self) -> None:
        """Measure step costs while no answer runs, unless they are known; failures are logged."""

        async def measure() -> None:
            """Wait for the measurement."""
            try:
                await self.calibrate()
            except MedusaError:
                log.info("the costs of steps aren't measured", exc_info=True)

        if self._calibration is None or self._calibration.done():
            self._calibration = self._loop.create_task(measure())

    async def finish_calibration(self, session_id: str) -> None:
        """Measure step costs, unless they are known, after the only answer of a program.

        Args:
            session_id: Session of the answer; its cached rows are freed for the measurement.
        """
        await self.close_session(session_id)
        self.calibrate_when_idle()
        if self._calibration is not None:
            await self._calibration

    async def verify(self, command: Verify) -> Verified:
        """Predict the next token at each position of a text.

        Raises:
            MedusaError: There is no text, it is too long, or the engine failed.
        """
        return await self._last(command, Verified)

    async def count(self, command: Count) -> Counted:
        """Count the tokens of a conversation and of its prompt; interrupts no answer.

        Raises:
            MedusaError: No model is loaded, or its template fails.
        """
        return await self._last(command, Counted)

    async def tokenize(self, command: Tokenize) -> Tokenized:
        """Tokenize a text, or detokenize tokens; interrupts no answer.

        Raises:
            MedusaError: No model is loaded, or a token isn't in its vocabulary.
        """
        return await self._last(command, Tokenized)

    async def embed(self, command: Embed) -> Embedded:
        """Embed texts; answers continue meanwhile.

        Raises:
            MedusaError: The embedding model can't be loaded, or a text is empty or too long.
        """
        return await self._last(command, Embedded)

    async def unload_embedder(self) -> EmbedderUnloaded:
        """Unload the embedding model; the next `embed` loads it again."""
        return await self._last(UnloadEmbedder(_SESSION, new_id()), EmbedderUnloaded)

    async def unload(self) -> Unloaded:
        """Unload the model, with the caches of all conversations."""
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
            session_id: Id of the conversation, whose cached rows are reused.
            messages: The conversation, oldest message first.
            settings: Generation settings.
            keep_tokens: Tokens of a continued answer to keep; None for all.
            records: Whether to yield a `StepTrace` after every step.

        Yields:
            `AnswerStarted`, `Progress` during prefill, `StepDone` and maybe `StepTrace` for every
            step, and at the end `GenerationDone`. Closing the generator earlier cancels the answer;
            use `aclosing`.

        Raises:
            MedusaError: The answer fails.
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
        """Execute a `Generate`; see `answer`.

        Raises:
            MedusaError: The answer fails.
        """
        events = self._events(request, GenerationDone)
        async with self._lock_session(request.session_id), aclosing(events):
            async for event in events:
                yield event

    def cancel(self, request: Generate) -> None:
        """Stop an answer within a step; its last events follow, with the partial text."""
        self._engine.submit(Cancel(*request.ids))

    async def close_session(self, session_id: str) -> None:
        """Free the cache of a conversation after its answers."""
        async with self._lock_session(session_id):
            self._engine.submit(CloseSession(session_id, new_id()))

    @asynccontextmanager
    async def _lock_session(self, session_id: str) -> AsyncIterator[None]:
        """Wait for the earlier requests of a conversation; the last one removes the lock."""
        session = self._session_locks.setdefault(session_id, _SessionLock())
        session.num_users += 1
        try:
            async with session.lock:
                yield
        finally:
            session.num_users -= 1
            if not session.num_users:
                del self._session_locks[session_id]

    async def _last(
        self,
        command: Command,
        end: type[_E],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> _E:
        """Wait for the last event of a request."""
        async with aclosing(self._events(command, end)) as events:
            async for event in events:
                if isinstance(event, end):
                    return event
                if isinstance(event, Progress) and on_progress is not None:
                    on_progress(event)
        raise EngineError("The engine ended a request without an answer.", "Try again.")

    async def _events(self, command: Command, end: type[Message]) -> AsyncGenerator[Event, None]:
        """Submit a command and yield its events; closing the generator earlier cancels it."""
        key = command.ids
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
        """Queue an event and wake the loop once; runs in the worker's thread."""
        with self._lock:
            self._arrived.append(event)
            if self._wake_is_posted:
                return
            self._wake_is_posted = True
        with suppress(RuntimeError):  # the loop is closed, so nobody waits for events
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
                    log.exception("a listener failed at an event; the others still get it")
            waiting = self._requests.get((event.session_id, event.request_id))
            if waiting is not None:
                waiting.put_nowait(event)


def error_of(failed: Failed) -> MedusaError:
    """Convert a failure event back to its error."""
    kind = getattr(errors, failed.kind, EngineError)
    is_ours = isinstance(kind, type) and issubclass(kind, MedusaError)
    error: MedusaError = (kind if is_ours else EngineError)(
        failed.message, failed.hint, **failed.data
    )
    return error
