"""Batch generation: answer many conversations at once, in the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from medusa_core.engine.generation import Generation
from medusa_core.engine.prefix_cache import PrefixCache
from medusa_core.engine.scheduler import MAX_BATCH, Scheduler, StepResult
from medusa_core.engine.session import Session
from medusa_core.engine.sessions import Sessions
from medusa_core.engine.start import start_generation
from medusa_core.errors import MedusaError, OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.messages import Event, Generate, GenerationDone, StepDone
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.row_policy import RowPolicy

OnTokens = Callable[[int], None]
DrafterOf = Callable[[Generate], DrafterSpec | None]


def named_drafter(_: Generate) -> DrafterSpec | None:
    """Use the drafter that the settings name."""
    return None


class Answered(NamedTuple):
    """A finished request.

    Attributes:
        request: The request.
        prompt_ids: Tokens of the prompt; empty if the request was refused.
        done: The answer, or the error.
    """

    request: Generate
    prompt_ids: tuple[int, ...]
    done: GenerationDone | MedusaError


def answer_all(
    target: Target,
    requests: Iterable[Generate],
    row_policy: RowPolicy,
    max_batch: int = MAX_BATCH,
    on_tokens: OnTokens = lambda _: None,
    drafter_of: DrafterOf = named_drafter,
) -> Generator[Answered, None, None]:
    """Answer independent conversations, several at a time.

    Args:
        target: A loaded target with room for several conversations.
        requests: The requests, started one after the other as others end.
        row_policy: The target's row policy.
        max_batch: Maximum number of answers at once.
        on_tokens: Called after each step with its number of tokens; its errors end all answers.
        drafter_of: Returns the drafter of a request; None for the one that its settings name.

    Yields:
        Answers, as they end.
    """
    with closing(_Batch(target, requests, row_policy, max_batch, drafter_of)) as batch:
        while True:
            yield from batch.fill()
            if batch.is_empty:
                return
            ended: list[Answered] = []
            while not ended:
                ended, num_tokens = batch.step()
                yield from ended
                on_tokens(num_tokens)


class _Batch:
    """Running answers, and the requests that start next."""

    def __init__(
        self,
        target: Target,
        requests: Iterable[Generate],
        row_policy: RowPolicy,
        max_batch: int,
        drafter_of: DrafterOf,
    ) -> None:
        self._target, self._row_policy, self._drafter_of = target, row_policy, drafter_of
        self._max_batch = max_batch
        self._scheduler = Scheduler(max_batch, target.pass_rows, target.chunk_rows)
        self._running: list[Generation] = []
        self._ids: dict[Generation, str] = {}  # of their sessions
        self._sessions = Sessions(lambda: self._ids.values())
        self._prefixes = PrefixCache(self._sessions)
        self._num_begun = 0
        self._evict, target.caches.evict = target.caches.evict, self._sessions.evict
        self._requests = iter(requests)
        self._waiting: list[Generate] = []  # without room so far

    @property
    def is_empty(self) -> bool:
        """Whether no answer is running."""
        return not self._running

    def fill(self) -> Iterator[Answered]:
        """Start answers while there is room; yields refused requests."""
        while len(self._running) < self._max_batch:
            request = self._waiting.pop() if self._waiting else next(self._requests, None)
            if request is None:
                return
            refused = self._begin(request)
            if refused is None:
                continue
            if isinstance(refused.done, OutOfMemoryError) and self._running:
                self._waiting.append(request)
                return
            yield refused

    def step(self) -> tuple[list[Answered], int]:
        """Run a step; returns the answers that ended, and the number of decided tokens."""
        results = self._scheduler.step(self._running)
        events = [event for result in results for event in result.events]
        num_tokens = sum(len(event.token_ids) for event in events if isinstance(event, StepDone))
        ended = [self._end(result) for result in results if result.has_ended]
        return ended, num_tokens

    def close(self) -> None:
        """Release all caches."""
        self._target.caches.evict = self._evict
        for session_id in tuple(self._sessions):
            self._sessions.close(session_id)

    def _begin(self, request: Generate) -> Answered | None:
        """Start an answer; returns the refused request if that fails."""
        try:
            session = Session(self._target, has_one_answer=True)
        except MedusaError as error:
            return Answered(request, (), error)
        drafter = self._drafter_of(request)
        try:
            generation = start_generation(
                request, self._target, session, self._row_policy, drafter, prefixes=self._prefixes
            )
        except MedusaError as error:
            session.close()
            return Answered(request, (), error)
        self._running.append(generation)
        self._num_begun += 1
        self._ids[generation] = session_id = str(self._num_begun)
        self._sessions[session_id] = session
        return None

    def _end(self, result: StepResult) -> Answered:
        """The answer that has ended.

        Raises:
            BaseException: It failed unexpectedly.
        """
        done: Event | BaseException = result.error or result.events[-1]
        if isinstance(done, GenerationDone | MedusaError):
            session_id = self._ids.pop(result.generation)
            session = self._sessions.pop(session_id)  # a busy session isn't evicted
            num_prompt = done.num_prompt_tokens if isinstance(done, GenerationDone) else 0
            prompt_ids = tuple(session.token_ids[:num_prompt])
            # The last session stays, for prompts with the same prefix.
            while self._sessions.evict_idle():
                pass
            if isinstance(done, GenerationDone):
                self._sessions[session_id] = session
            else:
                session.close()
            return Answered(result.generation.request, prompt_ids, done)
        assert isinstance(done, BaseException)
        raise done
