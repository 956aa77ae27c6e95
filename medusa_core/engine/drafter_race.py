"""Race of drafters: compare their speeds on the same questions, step by step, in spare time."""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from medusa_core.engine.generation import Generation
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import MedusaError, OutOfMemoryError, RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    DrafterSpeed,
    Generate,
    GenerateSettings,
    GenerationDone,
    Role,
    StepDone,
)
from medusa_core.speculation.drafters.lineup import raced_drafters
from medusa_core.speculation.tuning.forms import RaceSums
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import prompts_dir

log = logging.getLogger(__name__)

PLAIN = "none"
# Few and short questions, as it delays requests.
_NUM_QUESTIONS, _MAX_NEW_TOKENS, _MAX_S = 8, 48, 120.0
_ROOM = 512  # rows for a short question, its answer and the widest trees of a draft model


@dataclass(slots=True)
class _Answer:
    """A running answer of one drafter."""

    name: str
    generation: Generation
    session: Session
    sums: RaceSums = field(default_factory=RaceSums)


class DrafterRace:
    """Lets all drafters answer the same questions greedily, each with its own row policy.

    Only questions that all have answered count. A drafter that fails leaves the race.

    Attributes:
        is_done: All questions are answered, or the time is up.
        num_answered: Number of questions that count.
    """

    def __init__(
        self,
        target: Target,
        costs: StepCosts,
        questions: Sequence[str],
        max_new_tokens: int,
        max_s: float = float("inf"),
    ) -> None:
        """Prepare the race.

        Args:
            target: The loaded target.
            costs: Its costs of steps, for the row policies of all drafters.
            questions: The questions.
            max_new_tokens: Maximum length of an answer.
            max_s: Seconds of decoding after which no question but the first is begun.
        """
        self.is_done = not questions
        self.num_answered = 0
        self._target, self._costs, self._max_s = target, costs, max_s
        self._row_policies = {
            spec.name: RowPolicy(target, costs) for spec in raced_drafters(target)
        }
        self._questions = list(questions)
        self._max_new_tokens = max_new_tokens
        # A first round doesn't count, so that all drafters have learned from one answer, as the
        # drafter of a chat has after its first answer.
        self._index = -1
        self._left = self._order()
        self._round: dict[str, RaceSums] = {}
        self._sums: defaultdict[str, RaceSums] = defaultdict(RaceSums)
        self._spent_s = 0.0
        self._answer: _Answer | None = None
        self._scheduler = Scheduler()

    def advance(self) -> None:
        """Run one step of one answer.

        Raises:
            OutOfMemoryError: Other sessions hold the rows; call it again once some are free.
        """
        if self.is_done:
            return
        name = self._left[0]
        try:
            if self._answer is None:
                # Heads and draft models without room draft nothing, and would seem slow.
                for pool in self._target.cache_pools:
                    pool.make_room(_ROOM)
                self._answer = self._begin(name)
            self._step(self._answer)
        except RequestError as error:
            log.info("a question is left out: %s", error.message)
            self.pause()
            self._next_question(counts=False)
        except MedusaError as error:
            self.pause()
            if isinstance(error, OutOfMemoryError) and self._others_hold_rows:
                raise
            log.exception("the drafter %s leaves the race", name)
            del self._row_policies[name]
            self._left = [other for other in self._left if other != name]
            self._round.pop(name, None)
            if not self._left:
                self._next_question(counts=True)

    def _step(self, answer: _Answer) -> None:
        """Run one step of an answer, and add its tokens and times to the drafter's sums."""
        (result,) = self._scheduler.step([answer.generation])
        if result.error is not None:
            raise result.error
        for event in result.events:
            if isinstance(event, StepDone):
                answer.sums.add_step(event)
            elif isinstance(event, GenerationDone):
                answer.sums.add_answer(event)
        if answer.generation.is_done:
            self._end_answer(answer)

    def pause(self) -> None:
        """Release the cache of the running answer, which will start again."""
        if self._answer is not None:
            self._answer.session.close()
            self._answer = None

    @property
    def speeds(self) -> tuple[DrafterSpeed, ...]:
        """The drafters' speeds, by name; empty before a question counts."""
        plain = self._sums.get(PLAIN)
        if plain is None or not self.num_answered:
            return ()
        plain_speed = plain.tokens / max(1e-9, plain.decode_s)
        return tuple(
            sums.speed(name, plain_speed, self._costs)
            for name, sums in sorted(self._sums.items())
            if name in self._row_policies
        )

    @property
    def _others_hold_rows(self) -> bool:
        """Whether conversations hold rows of a cache pool."""
        return any(pool.free_rows < pool.num_rows for pool in self._target.cache_pools)

    def _begin(self, name: str) -> _Answer:
        """Start a drafter's answer to the current question."""
        settings = GenerateSettings(drafter=name, max_new_tokens=self._max_new_tokens)
        messages = (ChatMessage(Role.USER, self._questions[max(0, self._index)]),)
        session = Session(self._target, has_one_answer=True)
        try:
            request = Generate("race", "race", messages, settings)
            return _Answer(
                name,
                start_generation(request, self._target, session, self._row_policies[name]),
                session,
            )
        except BaseException:
            session.close()
            raise

    def _end_answer(self, answer: _Answer) -> None:
        """Count a complete answer, and go on to the next drafter or question."""
        self._round[answer.name] = answer.sums
        self._spent_s += answer.sums.decode_s
        self.pause()
        self._left.pop(0)
        if not self._left:
            self._next_question(counts=True)

    def _next_question(self, counts: bool) -> None:
        """Begin the next question.

        Args:
            counts: Add the times of this one to the result; False if it can't be answered.
        """
        if counts and self._index >= 0:
            for name, sums in self._round.items():
                self._sums[name].add(sums)
            self.num_answered += 1
        if not counts and self._index < 0:
            self._questions.pop(0)  # the next one is the first round
        else:
            self._index += 1
        self._round = {}
        self._left = self._order()
        is_late = self._spent_s > self._max_s and self.num_answered > 0
        self.is_done = is_late or max(0, self._index) >= len(self._questions) or not self._left

    def _order(self) -> list[str]:
        """Random order: a drafter may find weights in the processor's cache from the one before."""
        names = sorted(self._row_policies)
        random.Random(self._index).shuffle(names)
        return names


def default_race(target: Target, costs: StepCosts) -> DrafterRace:
    """The race on shipped questions that the window runs in spare time."""
    prompts = read_prompts(prompts_dir() / "general.jsonl", _NUM_QUESTIONS)
    questions = [prompt.turns[0] for prompt in prompts]
    return DrafterRace(target, costs, questions, _MAX_NEW_TOKENS, _MAX_S)
