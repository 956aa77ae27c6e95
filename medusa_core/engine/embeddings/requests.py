"""Embed texts with a model of its own, between the steps of answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from medusa_core.engine.embeddings.embedder import MOST_ROWS, Embedder, EmbeddingRun
from medusa_core.engine.embeddings.load import load_embedder
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.errors import Cancelled
from medusa_core.i18n import tr
from medusa_core.messages import (
    Embed,
    Embedded,
    EmbedderUnloaded,
    Event,
    LoadOptions,
    Message,
    Purpose,
    UnloadEmbedder,
)
from medusa_core.system import cuda
from medusa_core.system.garbage import collect_garbage, trim_heap

log = logging.getLogger(__name__)

# While answers run, embedding gets so many seconds for each of theirs, in passes of few rows.
_SHARE = 0.25
_ROWS_BETWEEN = 16
_MOST_CREDIT_S = 0.25
_WAIT_S = 0.05  # for a model that is being loaded, between two looks for commands


@dataclass(slots=True)
class _Job:
    """A request, and its progress; None before it begins."""

    command: Embed
    run: EmbeddingRun | None = None


class _Loading(threading.Thread):
    """Loads a model while answers continue: importing transformers alone takes seconds.

    Attributes:
        command: The request that needs the model.
        embedder: The model, once the thread has ended without an error.
        error: The error; None for none.
        is_cancelled: Whether to stop.
    """

    def __init__(self, command: Embed, options: LoadOptions) -> None:
        super().__init__(name="medusa-embedding-model", daemon=True)
        self.command, self._options = command, options
        self.embedder: Embedder | None = None
        self.error: BaseException | None = None
        self.is_cancelled = False
        self.start()

    def run(self) -> None:
        """Load the model."""
        try:
            self.embedder = load_embedder(
                self.command.model_dir, self._options, self._check_cancelled
            )
            log.info("loaded the embedding model %s", self.embedder.name)
        except BaseException as error:  # noqa: BLE001 - raised in the engine's thread
            self.error = error

    def _check_cancelled(self, *_: object) -> None:
        """Raise `Cancelled` if loading was stopped."""
        if self.is_cancelled:
            raise Cancelled(tr("Loading was stopped."))


class Embedding:
    """Owns the embedding model and its queue; one pass at a time is computed.

    Requests take turns text by text, and queries overtake documents: a collection that is being
    indexed delays a search by one text.

    Attributes:
        has_work: Requests are queued.
    """

    def __init__(
        self,
        chat: ModelSlot,
        on_event: Callable[[Event], None],
        on_error: Callable[[Message, BaseException], None],
    ) -> None:
        """Start without a model.

        Args:
            chat: The chat model, beside which the embedding model must fit.
            on_event: Receives results.
            on_error: Receives failed commands with their errors.
        """
        self._chat, self._send, self._fail = chat, on_event, on_error
        self._jobs: list[_Job] = []
        self._embedder: Embedder | None = None
        self._loaded: Embed | None = None  # the command that loaded it
        self._loading: _Loading | None = None
        self._credit_s = 0.0

    @property
    def has_work(self) -> bool:
        """Whether requests are queued."""
        return bool(self._jobs)

    def handle(self, command: Embed | UnloadEmbedder) -> None:
        """Queue a request, or unload the model."""
        if isinstance(command, Embed):
            self._jobs.append(_Job(command))
        else:
            self._send(EmbedderUnloaded(*command.ids, self.unload()))

    def step(self, max_rows: int = 0) -> None:
        """Compute one pass of the first request; any error ends that request.

        Args:
            max_rows: Maximum number of tokens; 0 for as many as delay a Cancel little enough.
        """
        job = self._jobs[0]
        try:
            self._advance(job, max_rows)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any request
            self._remove(job)
            self._fail(job.command, error)

    def step_between(self, answer_s: float) -> None:
        """Compute a small pass after a step of answers, if embedding has used less than its share.

        Args:
            answer_s: Seconds of that step.
        """
        if not self._jobs:
            self._credit_s = 0.0
            return
        self._credit_s = min(_MOST_CREDIT_S, self._credit_s + _SHARE * answer_s)
        if self._credit_s > 0:
            started = time.perf_counter()
            self.step(_ROWS_BETWEEN)
            self._credit_s -= time.perf_counter() - started

    def cancel(self, command: Message) -> bool:
        """End a queued request; returns whether there was one."""
        found = [job for job in self._jobs if job.command.ids == command.ids]
        for job in found:
            self._remove(job)
            self._fail(job.command, Cancelled(tr("This was stopped.")))
        return bool(found)

    def cancel_all(self) -> None:
        """End all requests."""
        for job in list(self._jobs):
            self.cancel(job.command)

    def drop_all(self) -> list[Embed]:
        """Forget all requests, whose failures the caller reports."""
        commands = [job.command for job in self._jobs]
        self._jobs.clear()
        return commands

    def unload(self) -> int:
        """Free the model; open requests begin again with it. Returns the freed bytes."""
        if self._loading is not None:
            self._loading.is_cancelled = True
            self._loading.join()
            self._embedder, self._loading = self._loading.embedder, None
        if self._embedder is None:
            return 0
        freed = self._embedder.nbytes
        self._embedder = self._loaded = None
        for job in self._jobs:
            job.run = None
        collect_garbage()
        cuda.release_memory()
        trim_heap()
        return freed

    def _advance(self, job: _Job, max_rows: int) -> None:
        """Compute one pass of a request, or load its model."""
        command = job.command
        embedder = self._embedder
        if embedder is None or not self._uses_loaded(command):
            self._load(command, wait_s=0.0 if max_rows else _WAIT_S)
            return
        if job.run is None:
            job.run = EmbeddingRun(
                embedder,
                command.texts,
                command.token_ids,
                dimensions=command.dimensions,
                purpose=command.purpose,
                truncates=command.truncates,
            )
        job.run.advance(max_rows or MOST_ROWS)
        if job.run.is_done:
            self._jobs.remove(job)
            vectors = np.stack(job.run.vectors)
            numbers = vectors.astype("<f4").tobytes()
            self._send(Embedded(*command.ids, numbers, vectors.shape[1], tuple(job.run.num_tokens)))
        if not embedder.is_within_text:
            self._take_turns(job)

    def _take_turns(self, last: _Job) -> None:
        """Put the next request at the head: a query if there is one.

        Requests for another model wait until no other is left, since it replaces the loaded one.
        """
        if last in self._jobs:
            self._jobs.remove(last)
            self._jobs.append(last)
        same = [job for job in self._jobs if self._uses_loaded(job.command)]
        queries = [job for job in same if job.command.purpose is Purpose.QUERY]
        if same:
            following = (queries or same)[0]
            self._jobs.remove(following)
            self._jobs.insert(0, following)

    def _uses_loaded(self, command: Embed) -> bool:
        """Whether a request uses the loaded model."""
        return self._loaded is not None and _is_same_model(self._loaded, command)

    def _remove(self, job: _Job) -> None:
        """Remove a failed request; a text of it that was read in part is dropped."""
        if job in self._jobs:
            if job is self._jobs[0] and self._embedder is not None:
                self._embedder.reset()
            self._jobs.remove(job)

    def _load(self, command: Embed, wait_s: float) -> None:
        """Begin to load the model of a request in place of the loaded one, or continue.

        Args:
            command: The request.
            wait_s: Seconds to wait.

        Raises:
            MedusaError: It can't be loaded, or has no room beside the chat model.
        """
        if self._loading is None:
            self.unload()
            self._loading = _Loading(command, self._options(command))
        loading = self._loading
        loading.join(wait_s)
        if loading.is_alive():
            return
        self._loading = None
        if not _is_same_model(loading.command, command):
            return  # of a request that was cancelled
        if loading.error is not None:
            raise loading.error
        self._embedder, self._loaded = loading.embedder, loading.command

    def _options(self, command: Embed) -> LoadOptions:
        """Options of loading: the plan counts what the chat model's cache hasn't filled yet."""
        options = LoadOptions(device=command.device, is_raw=True, takes_own_heads=False)
        if self._chat.loaded is None:
            return options
        target = self._chat.target
        if target.plan.reserved_bytes:  # counted when the chat model was loaded
            return replace(options, ignores_plan=True)
        is_on_cpu = target.precision.device.type == "cpu"  # where pages are mapped on first use
        return replace(options, reserved_bytes=target.plan.kv_bytes if is_on_cpu else 0)


def _is_same_model(first: Embed, second: Embed) -> bool:
    """Whether two requests use the same model on the same device."""
    return (first.model_dir, first.device) == (second.model_dir, second.device)
