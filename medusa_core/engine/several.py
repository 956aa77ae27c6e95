"""Answering many conversations at once, in the calling thread: their steps share passes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from medusa_core.engine.generation import Generation
from medusa_core.engine.session import Session
from medusa_core.engine.together import MOST_TOGETHER, step_together
from medusa_core.errors import MedusaError, OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.messages import Event, Generate, GenerationDone, StepDone
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.tuner import Tuner

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
    tuner: Tuner,
    most: int = MOST_TOGETHER,
    on_tokens: OnTokens = _nothing,
    drafter_of: DrafterOf = named_drafter,
) -> Generator[Answered, None, None]:
    """Answer conversations, several at a time, each on its own.

    Args:
        target: A loaded target with room for several conversations.
        requests: Taken one after the other, as others end.
        tuner: Of the target.
        most: How many are answered at once.
        on_tokens: Told after each piece of work how many tokens it decided. What it raises ends
            all of them.
        drafter_of: The drafter of a request; None for the one that its settings name.

    Yields:
        Answers, as they end.
    """
    running: deque[_Running] = deque()
    later: list[Generate] = []  # for which there was no room
    coming = iter(requests)
    with ExitStack() as kept:
        kept.callback(_close, running)
        while True:
            has_room = True
            while has_room and len(running) < most:
                request = later.pop() if later else next(coming, None)
                if request is None:
                    break
                started = _start(target, request, tuner, drafter_of(request))
                if isinstance(started, _Running):
                    running.append(started)
                elif isinstance(started.done, OutOfMemoryError) and running:
                    later.append(request)
                    has_room = False
                else:
                    yield started
            if not running:
                return
            ended: list[Answered] = []
            while not ended:
                ended, num_tokens = _work(target, running, most)
                yield from ended
                on_tokens(num_tokens)


def _close(running: Iterable[_Running]) -> None:
    for one in running:
        one.session.close()


class _Running(NamedTuple):
    generation: Generation
    session: Session


def _start(
    target: Target, request: Generate, tuner: Tuner, drafter: DrafterSpec | None
) -> _Running | Answered:
    try:
        session = Session(target)
    except MedusaError as error:
        return Answered(request, (), error)
    try:
        return _Running(Generation(request, target, session, tuner, drafter), session)
    except MedusaError as error:
        session.close()
        return Answered(request, (), error)


def _work(target: Target, running: deque[_Running], most: int) -> tuple[list[Answered], int]:
    """One piece of work of whose turn it is; returns what ended by it, and tokens decided."""
    ended: dict[Generation, GenerationDone | MedusaError] = {}
    num_tokens = 0

    def tell(generation: Generation, events: Sequence[Event]) -> None:
        nonlocal num_tokens
        num_tokens += sum(len(event.token_ids) for event in events if isinstance(event, StepDone))
        done = next((event for event in events if isinstance(event, GenerationDone)), None)
        if done is not None:
            ended[generation] = done

    def fail(generation: Generation, error: BaseException) -> None:
        if not isinstance(error, MedusaError):
            raise error
        ended[generation] = error

    generations = [one.generation for one in running]
    together = [one for one in generations if one.is_decoding or one.is_reading][:most]
    if len(together) > 1:
        rows = target.chunk_rows
        step_together(target.runner, together, tell, fail, prompt_rows=rows)
    else:
        try:
            tell(generations[0], generations[0].advance())
        except MedusaError as error:
            ended[generations[0]] = error
        running.rotate(-1)  # another one may go on next
    answered = []
    for one in [one for one in running if one.generation in ended]:
        running.remove(one)
        with closing(one.session):
            done = ended[one.generation]
            num_prompt = done.num_prompt_tokens if isinstance(done, GenerationDone) else 0
            prompt_ids = tuple(one.session.token_ids[:num_prompt])
        answered.append(Answered(one.generation.request, prompt_ids, done))
    return answered, num_tokens
