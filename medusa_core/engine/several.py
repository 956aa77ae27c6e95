"""Answering many conversations at once, in the calling thread: their steps share passes."""

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


def _nothing(num_tokens: int) -> None:
    """Nobody counts."""


def named_drafter(_: Generate) -> DrafterSpec | None:
    """The one that the settings name."""
    return None


class Answered(NamedTuple):
    """The end of one answer.

    Attributes:
        request: What was asked.
        prompt_ids: Tokens of the prompt; empty where the request was refused.
        done: The answer, or why there is none.
    """

    request: Generate
    prompt_ids: tuple[int, ...]
    done: GenerationDone | MedusaError


def answer_all(
    target: Target,
    requests: Iterable[Generate],
    row_policy: RowPolicy,
    most: int = MAX_BATCH,
    on_tokens: OnTokens = _nothing,
    drafter_of: DrafterOf = named_drafter,
) -> Generator[Answered, None, None]:
    """Answer conversations, several at a time, each on its own.

    Args:
        target: A loaded target with room for several conversations.
        requests: Taken one after the other, as others end.
        row_policy: The target's row policy.
        most: How many are answered at once.
        on_tokens: Called after each step with how many tokens it decided. What it raises ends all
            of them.
        drafter_of: The drafter of a request; None for the one that its settings name.

    Yields:
        Answers, as they end.
    """
    with closing(_Block(target, requests, row_policy, most, drafter_of)) as block:
        while True:
            yield from block.fill()
            if block.is_empty:
                return
            ended: list[Answered] = []
            while not ended:
                ended, num_tokens = block.step()
                yield from ended
                on_tokens(num_tokens)


class _Block:
    """Answers under way at the same time, and the requests that come next."""

    def __init__(
        self,
        target: Target,
        requests: Iterable[Generate],
        row_policy: RowPolicy,
        most: int,
        drafter_of: DrafterOf,
    ) -> None:
        self._target, self._row_policy, self._drafter_of = target, row_policy, drafter_of
        self._most = most
        self._scheduler = Scheduler(most, target.pass_rows, target.chunk_rows)
        self._running: list[Generation] = []
        self._ids: dict[Generation, str] = {}  # of the sessions of answers under way
        self._sessions = Sessions(lambda: self._ids.values())
        self._prefixes = PrefixCache(self._sessions)
        self._num_begun = 0
        self._evict, target.caches.evict = target.caches.evict, self._sessions.evict
        self._coming = iter(requests)
        self._waiting: list[Generate] = []  # for which there was no room

    @property
    def is_empty(self) -> bool:
        """No answer is under way."""
        return not self._running

    def fill(self) -> Iterator[Answered]:
        """Begin answers while there is room; yields those that can't be given."""
        while len(self._running) < self._most:
            request = self._waiting.pop() if self._waiting else next(self._coming, None)
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
        """Take a step; returns what ended by it, and how many tokens were decided."""
        results = self._scheduler.step(self._running)
        events = [event for result in results for event in result.events]
        num_tokens = sum(len(event.token_ids) for event in events if isinstance(event, StepDone))
        ended = [self._end(result) for result in results if result.has_ended]
        return ended, num_tokens

    def close(self) -> None:
        """Give all caches back."""
        self._target.caches.evict = self._evict
        for session_id in self._sessions.ids:
            self._sessions.close(session_id)

    def _begin(self, request: Generate) -> Answered | None:
        """Begin an answer; returns its end where it can't be given."""
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
        self._sessions.put(session_id, session)
        return None

    def _end(self, result: StepResult) -> Answered:
        """The answer of who has ended.

        Raises:
            BaseException: It failed, and not by an error of ours.
        """
        done: Event | BaseException = result.error or result.events[-1]
        if isinstance(done, GenerationDone | MedusaError):
            session_id = self._ids.pop(result.generation)
            session = self._sessions.pop(session_id)
            assert session is not None  # nobody evicts it while it is answered
            num_prompt = done.num_prompt_tokens if isinstance(done, GenerationDone) else 0
            prompt_ids = tuple(session.token_ids[:num_prompt])
            # The last one that ended stays, for prompts that begin alike.
            while self._sessions.evict_idle():
                pass
            if isinstance(done, GenerationDone):
                self._sessions.put(session_id, session)
            else:
                session.close()
            return Answered(result.generation.request, prompt_ids, done)
        assert isinstance(done, BaseException)
        raise done
