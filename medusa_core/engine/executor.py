"""Executor: runs commands one at a time, and the steps of running answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from medusa_core.engine.embeddings.requests import Embedding
from medusa_core.engine.failures import Failures
from medusa_core.engine.generation import Generation
from medusa_core.engine.measurements import Measurements
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.engine.open_requests import OpenRequests
from medusa_core.engine.prefix_cache import PrefixCache, PrefixMatch, PrefixPendingError
from medusa_core.engine.scheduler import Scheduler, StepResult
from medusa_core.engine.session import Session
from medusa_core.engine.sessions import Sessions
from medusa_core.engine.start import start_generation
from medusa_core.engine.text_commands import count, tokenize
from medusa_core.engine.verification import verify
from medusa_core.errors import Cancelled, OutOfMemoryError, RequestError
from medusa_core.i18n import tr
from medusa_core.messages import (
    AnswerStarted,
    Calibrate,
    Cancel,
    CloseSession,
    Command,
    Count,
    Embed,
    Event,
    Generate,
    LoadModel,
    Message,
    Race,
    Tokenize,
    Unload,
    Unloaded,
    UnloadEmbedder,
    Verify,
)
from medusa_core.system.garbage import trim_heap

log = logging.getLogger(__name__)


class Executor:
    """Owns the model, the sessions, and the running answers.

    An answer without room in the cache waits until another one ends. Every request gets exactly one
    final event, whatever fails.

    Attributes:
        has_work: An answer is running, or work waits for the end of all answers.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        is_cancelled: Callable[[Message], bool],
    ) -> None:
        """Start without a model.

        Args:
            on_event: Receives every event.
            is_cancelled: Returns whether a Cancel of a command is queued.
        """
        self._requests = OpenRequests(on_event)
        self._send = self._requests.send
        self._is_cancelled = is_cancelled
        self._failures = Failures(self._send)
        self._model = ModelSlot(self._send, is_cancelled, self._evict)
        self._sessions = Sessions(self._busy_ids)
        self._prefixes = PrefixCache(self._sessions, self._prompts_being_read)
        self._measurements = Measurements(
            self._model, self._send, self._fail, lambda: bool(self._sessions)
        )
        self._embedding = Embedding(self._model, self._send, self._fail)
        self._scheduler = Scheduler()
        self._running: list[Generation] = []
        self._waiting: list[Generate] = []
        self._held: list[Generate] = []  # until another answer has prefilled a common prefix
        self._pending: dict[str, PrefixMatch] = {}  # that prefix, by session
        self._background: list[Generate] = []  # starts when no other answer runs
        self._lacks_room = False  # for the first of these
        self._may_evict = True
        self._ended = False  # an answer has ended since the waiting ones were last tried

    @property
    def has_work(self) -> bool:
        """Whether `work` has something to do; else the thread waits for a command."""
        has_background = bool(self._background) and not self._lacks_room
        in_spare_time = has_background or self._measurements.has_work
        has_requests = bool(self._running or self._waiting or self._held)
        has_requests = has_requests or self._embedding.has_work
        return has_requests or self._ended or in_spare_time

    def handle(self, command: Command) -> None:
        """Run a command; any error becomes a `Failed` event."""
        self._requests.begin(command)
        if self._failures.is_lost:
            self._failures.report_lost(command)
            return
        try:
            self._dispatch(command)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any command
            self._fail(command, error)

    def work(self) -> None:
        """Run a step of the answers; without any, of a background answer, or measure."""
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any step
            for generation in tuple(self._running):
                self._fail_in(generation, error)

    def _work(self) -> None:
        """Start waiting answers, then run one step of the running ones or of spare-time work."""
        if self._ended:
            self._ended = self._lacks_room = False
            self._measurements.retry()
            self._begin_waiting()
        self._begin_held()
        if not self._running:
            if self._embedding.has_work:
                self._embedding.step()
                return
            with self._without_eviction():
                if not self._begin_background():
                    self._measurements.step()
            return
        started = time.perf_counter()
        self._step_answers()
        self._embedding.step_between(time.perf_counter() - started)

    def _step_answers(self) -> None:
        """Run one step of the running answers, and send its events."""
        if self._running[0].request.is_background:
            with self._without_eviction():
                results = self._scheduler.step(self._running)
        else:
            results = self._scheduler.step(self._running)
        # Failures come last: if one has lost the device, no further events are sent.
        for result in sorted(results, key=lambda result: result.error is not None):
            if not self._requests.is_open(result.generation.request):
                continue  # the device was lost by another answer, which ended this one
            try:
                self._deliver(result)
            except BaseException as error:  # noqa: BLE001 - the thread must outlive any answer
                self._fail_in(result.generation, error)

    def close(self) -> None:
        """End all answers and free the model; a lost device isn't used any more."""
        if self._failures.is_lost:
            return
        self._cancel_all()
        self._embedding.cancel_all()
        self._free()
        self._embedding.unload()

    def _dispatch(self, command: Command) -> None:
        """Run a command by its type."""
        match command:
            case LoadModel():
                self._load(command)
            case Unload():
                self._cancel_all()
                self._send(Unloaded(*command.ids, self._free() + self._embedding.unload()))
            case Calibrate():
                self._measurements.wait(command)
            case Race():
                self._measurements.race(command)
            case Generate():
                self._generate(command)
            case Cancel():
                self._cancel(command)
            case CloseSession():
                self._close_session(command)
            case Count():
                self._send(count(command, self._model.target))
            case Tokenize():
                self._send(tokenize(command, self._model.target))
            case Embed() | UnloadEmbedder():
                self._embedding.handle(command)
            case Verify():
                self._send(verify(command, self._model.target, self._check_cancelled))

    def _check_cancelled(self, command: Message) -> None:
        """Raise `Cancelled` if a Cancel of the command is queued."""
        if self._is_cancelled(command):
            raise Cancelled(tr("This was stopped."))

    def _load(self, command: LoadModel) -> None:
        """Load a model; if that fails, load the previous one again."""
        before = self._model.loaded
        self._cancel_all()
        self._free()
        self._embedding.unload()  # the new plan keeps room for it
        try:
            self._model.open(command)
        except BaseException as error:  # noqa: BLE001 - reported, and the previous model is loaded
            self._fail(command, error)
            if self._failures.is_lost:
                return
            self._free()
            if before is not None:
                try:
                    self._model.open(before)
                except BaseException as again:  # noqa: BLE001 - the first error has been reported
                    self._fail(command, again)
                    if not self._failures.is_lost:
                        self._send(Unloaded(*before.ids, self._free()))

    def _generate(self, command: Generate) -> None:
        """Start an answer, or let it wait if other answers hold the cache.

        Raises:
            MedusaError: The request can't be served.
        """
        if any(one.session_id == command.session_id for one in (*self._waiting, *self._held)):
            raise _busy()
        if command.is_background:
            self._background.append(command)
            return
        if self._waiting:
            self._waiting.append(command)
            return
        self._interrupt_background()
        try:
            self._begin(command)
        except PrefixPendingError as error:
            self._hold(command, error.prefix)
        except OutOfMemoryError:
            if not self._running:
                raise
            log.info("an answer waits for room in the cache")
            self._waiting.append(command)

    def _hold(self, command: Generate, pending: PrefixMatch) -> None:
        """Let an answer wait until another one has prefilled their common prefix."""
        self._held.append(command)
        self._pending[command.session_id] = pending

    def _begin_held(self) -> None:
        """Start held answers whose prefix is cached by now."""
        if self._pending:  # drop the prefixes of cancelled requests
            self._pending = {one.session_id: self._pending[one.session_id] for one in self._held}
        for command in list(self._held):
            if self._prefixes.is_over(self._pending[command.session_id]):
                self._held.remove(command)
                del self._pending[command.session_id]
                try:
                    self._generate(command)
                except BaseException as error:  # noqa: BLE001 - the thread must outlive any answer
                    self._fail(command, error)

    def _prompts_being_read(self) -> dict[str, Sequence[int]]:
        """The prompts that are being prefilled, by session id."""
        return {
            one.request.session_id: one.prefill.prompt_ids
            for one in self._running
            if one.is_prefilling
        }

    def _begin_waiting(self) -> None:
        """Start waiting answers in order, as far as there is room."""
        while self._waiting:
            command = self._waiting.pop(0)
            try:
                self._begin(command)
            except PrefixPendingError as error:
                self._hold(command, error.prefix)
            except OutOfMemoryError as error:
                if self._running:
                    self._waiting.insert(0, command)
                    return
                self._fail(command, error)
            except BaseException as error:  # noqa: BLE001 - the thread must outlive any answer
                self._fail(command, error)

    def _begin_background(self) -> bool:
        """Start the first background answer; False without one, or without room."""
        if not self._background or self._lacks_room:
            return False
        command = self._background[0]
        try:
            self._begin(command)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any answer
            if isinstance(error, OutOfMemoryError) and self._sessions:
                self._lacks_room = True
                return False
            self._fail(command, error)
        del self._background[:1]  # after a lost device there are none
        return True

    def _interrupt_background(self) -> None:
        """Stop a running background answer; it starts again later."""
        for generation in list(self._running):
            if generation.request.is_background:
                self._running.remove(generation)
                self._sessions.close(generation.request.session_id)
                self._background.insert(0, generation.request)

    @contextmanager
    def _without_eviction(self) -> Iterator[None]:
        """Keep the rows of conversations while spare-time work runs."""
        self._may_evict = False
        try:
            yield
        finally:
            self._may_evict = True

    def _begin(self, command: Generate) -> None:
        """Start an answer with its session's cached rows.

        Raises:
            MedusaError: The request can't be served, or there is no room for it yet.
            PrefixPendingError: Another answer is prefilling a prefix of its prompt.
        """
        target, row_policy = self._model.target, self._model.row_policy
        self._measurements.pause()
        if not command.settings.drafter:
            first = self._model.drafters[0].name
            command = replace(command, settings=replace(command.settings, drafter=first))
        if any(one.request.session_id == command.session_id for one in self._running):
            raise _busy()
        if target.learned is not None:
            target.learned.refresh()
        if target.folder_texts is not None:
            target.folder_texts.refresh()
        known = self._sessions.pop(command.session_id, None)  # or it could evict itself
        if known is not None and known.cache_salt != command.cache_salt:
            known.close()
            known = None
        try:
            session = known or Session(target, cache_salt=command.cache_salt)
            generation = start_generation(
                command, target, session, row_policy, prefixes=self._prefixes
            )
            assert self._model.loaded is not None  # there is a target
            load_id = self._model.loaded.request_id
            self._send(AnswerStarted(*command.ids, load_id, generation.begins_inside))
            self._running.append(generation)
            known = session
        finally:
            if known is not None:
                self._sessions[command.session_id] = known

    def _deliver(self, result: StepResult) -> None:
        """Send the events of a step, and learn from an answer that has ended.

        Raises:
            BaseException: The answer failed.
        """
        if result.error is not None:
            raise result.error
        self._send_all(result.events)
        if result.generation.is_done:
            self._ended = True
            request = result.generation.request
            self._model.send_plan(request, request.settings)
            self._model.save_learned()
            result.generation.update_datastore()

    def _cancel(self, command: Cancel) -> None:
        """Stop the measurement, or the queued or running answer, of a request."""
        if self._measurements.cancel(command.request_id) or self._embedding.cancel(command):
            return
        self._fail_queued(
            lambda one: one.ids == command.ids, tr("This was stopped before it began.")
        )
        for generation in self._running:
            if generation.request.ids == command.ids:
                self._end(generation)
                return

    def _fail_queued(self, matches: Callable[[Generate], bool], message: str) -> None:
        """Fail the queued requests that match, as they were cancelled before they began."""
        for queue in (self._waiting, self._held, self._background):
            for request in [one for one in queue if matches(one)]:
                queue.remove(request)
                self._fail(request, Cancelled(message))

    def _close_session(self, command: CloseSession) -> None:
        """End all answers of a session, and free its cache."""
        self._ended = True
        self._fail_queued(
            lambda one: one.session_id == command.session_id, tr("This conversation was closed.")
        )
        for generation in list(self._running):
            if generation.request.session_id == command.session_id:
                self._end(generation, learns=False)
        self._sessions.close(command.session_id)
        if self._model.loaded is not None and self._model.target.learned is not None:
            self._model.target.learned.refresh()
        trim_heap()

    def _cancel_all(self) -> None:
        """End all queued and running answers."""
        self._fail_queued(lambda _: True, tr("This was stopped before it began."))
        while self._running:  # a lost device ends all of them
            self._end(self._running[0], learns=False)

    def _end(self, generation: Generation, learns: bool = True) -> None:
        """End a running answer as it is.

        Args:
            generation: The answer.
            learns: Add it to the datastore, if its request allows that.
        """
        self._running.remove(generation)
        self._ended = True
        try:
            self._send_all(generation.cancel())
            if learns:
                generation.update_datastore()
        except BaseException as error:  # noqa: BLE001 - the others must be ended, too
            self._fail_in(generation, error)

    def _send_all(self, events: Iterable[Event]) -> None:
        """Send events in order."""
        for event in events:
            self._send(event)

    def _evict(self) -> bool:
        """Free rows of an idle session; for spare-time work only uncommitted ones.

        Returns:
            Whether there were any.
        """
        return self._sessions.evict() if self._may_evict else self._sessions.trim()

    def _busy_ids(self) -> set[str]:
        """Ids of the sessions with running answers."""
        return {one.request.session_id for one in self._running}

    def _free(self) -> int:
        """Unload the model and its sessions. Returns the freed bytes."""
        self._measurements.clear()
        self._sessions.clear()
        self._pending.clear()
        return self._model.free()

    def _fail_in(self, generation: Generation, error: BaseException) -> None:
        """Report a failed answer, and close its session."""
        if generation in self._running:
            self._running.remove(generation)
        self._ended = True
        try:
            self._sessions.close(generation.request.session_id)
        except BaseException:
            log.exception("a session can't be closed")
        self._fail(generation.request, error)

    def _fail(self, command: Message, error: BaseException) -> None:
        """Report an error; a lost device ends all answers."""
        self._failures.report(command, error)
        if self._failures.is_lost:
            running = (one.request for one in self._running)
            answers = (*running, *self._waiting, *self._held, *self._background)
            lost: tuple[Message, ...] = (*answers, *self._embedding.drop_all())
            for queue in (self._running, self._waiting, self._held, self._background):
                queue.clear()
            for request in lost:
                self._failures.report_lost(request)
            self._measurements.clear()


def _busy() -> RequestError:
    """The error of a second request for a conversation."""
    return RequestError(
        "This conversation is still being answered.", "Wait for the answer, or stop it."
    )
