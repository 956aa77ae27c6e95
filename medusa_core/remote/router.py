"""Combine the engines for local and for remote models.

Commands go to the engine whose model is loaded. During a change between the engines they are held,
so that commands after a `LoadModel` or `LoadRemote` are executed by the engine that it leads to.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from medusa_core.chats.conversation import new_id
from medusa_core.errors import Cancelled
from medusa_core.i18n import tr
from medusa_core.messages import (
    Cancel,
    Command,
    Embed,
    Event,
    Failed,
    LoadModel,
    LoadRemote,
    ModelLoaded,
    StepDone,
    StepTrace,
    Unload,
    Unloaded,
    UnloadEmbedder,
)

_SESSION = "router"


class RoutedEngine(Protocol):
    """An engine; see `medusa_core.api.Engine`."""

    @property
    def is_alive(self) -> bool: ...
    def submit(self, command: Command) -> None: ...
    def close(self, timeout_s: float = 10.0) -> None: ...


StartRouted = Callable[[Callable[[Event], None]], RoutedEngine]


class EngineRouter:
    """Sends commands to the engine whose model is loaded; see `medusa_core.api.Engine`.

    The local model is freed only after the remote one is available. If that fails, the previous
    model stays in use, and its `ModelLoaded` is sent again.

    Attributes:
        is_alive: Whether commands are still executed.
    """

    def __init__(
        self, on_event: Callable[[Event], None], start_local: StartRouted, start_remote: StartRouted
    ) -> None:
        """Start the local engine.

        Args:
            on_event: Called with every event, in the thread of the engine that sends it.
            start_local: Starts the engine for local models.
            start_remote: Starts the engine for remote models, at the first `LoadRemote`.
        """
        self._send = on_event
        self._start_remote = start_remote
        self._lock = threading.Lock()
        self._remote: RoutedEngine | None = None
        self._loaded: dict[bool, ModelLoaded] = {}  # by `is_remote`
        self._load: LoadModel | LoadRemote | None = None  # load that may change the engine
        self._held: deque[Command] = deque()
        self._cancelled: set[tuple[str, str]] = set()  # ids of held commands
        self._own_ids: set[str] = set()
        self._is_remote = False
        self._local = start_local(self._receive_local)

    @property
    def is_alive(self) -> bool:
        """Whether both engines run."""
        remote = self._remote
        return self._local.is_alive and (remote is None or remote.is_alive)

    def submit(self, command: Command) -> None:
        """Queue a command and return at once."""
        with self._lock:
            if isinstance(command, Cancel):
                self._cancel(command)
            elif self._load is not None:
                self._held.append(command)
            else:
                self._route(command)

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel all requests, free the model and end both engines; safe to call twice."""
        if self._remote is not None:
            self._remote.close(timeout_s)
        self._local.close(timeout_s)

    def _route(self, command: Command) -> None:
        """Submit a command; a load that may change the engine holds later commands."""
        if isinstance(command, Embed | UnloadEmbedder):  # embedding models are always local
            self._local.submit(command)
            return
        if isinstance(command, LoadRemote):
            self._load = command
            self._engine(is_remote=True).submit(command)
            return
        if isinstance(command, LoadModel):
            self._loaded.pop(False, None)  # freed before another one is loaded
            if self._is_remote:
                self._load = command
            self._local.submit(command)
            return
        self._engine(self._is_remote).submit(command)

    def _engine(self, is_remote: bool) -> RoutedEngine:
        """Return an engine; the remote one starts on first use."""
        if not is_remote:
            return self._local
        if self._remote is None:
            self._remote = self._start_remote(self._receive_remote)
        return self._remote

    def _cancel(self, command: Cancel) -> None:
        """Cancel a held or submitted request."""
        ids = command.ids
        if any(held.ids == ids for held in self._held):
            self._cancelled.add(ids)
            return
        self._engine(self._is_remote).submit(command)
        if self._is_remote:  # an `Embed` runs here
            self._local.submit(command)
        if self._load is not None:
            self._engine(isinstance(self._load, LoadRemote)).submit(command)

    # Events ---------------------------------------------------------------------------------------

    def _receive_local(self, event: Event) -> None:
        """Receive an event of the local engine."""
        # Steps of local models bypass the lock: they are the hot path.
        if isinstance(event, StepDone | StepTrace):
            self._send(event)
        else:
            self._receive(event, is_remote=False)

    def _receive_remote(self, event: Event) -> None:
        """Receive an event of the remote engine."""
        self._receive(event, is_remote=True)

    def _receive(self, event: Event, *, is_remote: bool) -> None:
        """Update the loaded model by an event, and pass the event on."""
        with self._lock:
            is_own = event.request_id in self._own_ids
            if isinstance(event, ModelLoaded):
                self._loaded[is_remote] = event
            elif isinstance(event, Unloaded):
                self._loaded.pop(is_remote, None)
                self._own_ids.discard(event.request_id)
            is_end = self._ends_load(event)
            before = self._loaded.get(self._is_remote) if is_end else None
        if not is_own:
            self._send(event)
        if is_end:
            if isinstance(event, Failed) and before is not None:
                self._send(before)
            self._end_load(event)

    def _ends_load(self, event: Event) -> bool:
        """Whether an event ends the load in progress."""
        load = self._load
        return (
            load is not None
            and isinstance(event, ModelLoaded | Failed)
            and (event.session_id, event.request_id) == load.ids
        )

    def _end_load(self, event: Event) -> None:
        """Change the engine if the load succeeded, and submit the held commands."""
        failed: list[Failed] = []
        with self._lock:
            is_remote = isinstance(self._load, LoadRemote)
            self._load = None
            if isinstance(event, ModelLoaded) and is_remote is not self._is_remote:
                self._free(self._is_remote)
                self._is_remote = is_remote
            while self._held and self._load is None:
                command = self._held.popleft()
                ids = command.ids
                if ids in self._cancelled:
                    self._cancelled.discard(ids)
                    stopped = Cancelled(tr("This was stopped before it began."))
                    failed.append(Failed(*ids, Cancelled.__name__, stopped.message, stopped.hint))
                else:
                    self._route(command)
        for event in failed:
            self._send(event)

    def _free(self, is_remote: bool) -> None:
        """Unload the model of the engine that is no longer used."""
        if is_remote in self._loaded:
            request_id = new_id()
            self._own_ids.add(request_id)
            self._engine(is_remote).submit(Unload(_SESSION, request_id))
