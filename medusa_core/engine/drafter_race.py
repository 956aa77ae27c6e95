"""Lets all drafters of a model answer the same questions in turns, step by step, in spare time."""

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
# Few and short questions: somebody may be waiting to ask.
_USUAL, _USUAL_TOKENS, _USUAL_S = 8, 48, 120.0
_ROOM = 512  # rows for a short question, its answer and the widest trees of a draft model


@dataclass(slots=True)
class _Answer:
    """One answer of one drafter, under way."""

    name: str
    generation: Generation
    session: Session
    sums: RaceSums = field(default_factory=RaceSums)


class DrafterRace:
    """All drafters, the same questions, greedily; each learns for itself.

    Only questions that all have answered count. Who fails leaves the race.

    Attributes:
        is_done: All questions are answered, or time is over.
        num_answered: Questions that count.
    """

    def __init__(
        self,
        target: Target,
        costs: StepCosts,
        questions: Sequence[str],
        max_new_tokens: int,
        most_s: float = float("inf"),
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            target: The loaded target.
            costs: Its step costs: all drafters choose their trees by the same.
            questions: What they are asked.
            max_new_tokens: Length of an answer.
            most_s: After so many seconds of answering no further question is begun, but the first.
        """
        self.is_done = not questions
        self.num_answered = 0
        self._target, self._costs, self._most_s = target, costs, most_s
        self._row_policies = {
            spec.name: RowPolicy(target, costs) for spec in raced_drafters(target)
        }
        self._questions = list(questions)
        self._max_new_tokens = max_new_tokens
        # Everyone answers the first question once before it counts: what a chat's drafter has
        # learned after its first answer, all of the race have learned too.
        self._place = -1
        self._left = self._order()
        self._round: dict[str, RaceSums] = {}
        self._sums: defaultdict[str, RaceSums] = defaultdict(RaceSums)
        self._spent_s = 0.0
        self._answer: _Answer | None = None
        self._scheduler = Scheduler()

    def advance(self) -> None:
        """One piece of work of one answer.

        Raises:
            OutOfMemoryError: Other sessions hold the rows; call it again when they have freed some.
        """
        if self.is_done:
            return
        name = self._left[0]
        try:
            if self._answer is None:
                # Heads and draft models that find no room draft nothing, and would seem slow.
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
        (turn,) = self._scheduler.step([answer.generation])
        if turn.error is not None:
            raise turn.error
        for event in turn.events:
            self._count(answer.sums, event)
        if answer.generation.is_done:
            self._end_answer(answer)

    def pause(self) -> None:
        """Give back the room of the answer under way, which will be begun again."""
        if self._answer is not None:
            self._answer.session.close()
            self._answer = None

    @property
    def speeds(self) -> tuple[DrafterSpeed, ...]:
        """How fast each was, by name; empty before a question counts."""
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
        return any(pool.free_rows < pool.num_rows for pool in self._target.cache_pools)

    def _begin(self, name: str) -> _Answer:
        settings = GenerateSettings(drafter=name, max_new_tokens=self._max_new_tokens)
        messages_of = (ChatMessage(Role.USER, self._questions[max(0, self._place)]),)
        session = Session(self._target, has_one_answer=True)
        try:
            request = Generate("race", "race", messages_of, settings)
            return _Answer(
                name,
                start_generation(request, self._target, session, self._row_policies[name]),
                session,
            )
        except BaseException:
            session.close()
            raise

    def _count(self, sums: RaceSums, event: object) -> None:
        if isinstance(event, StepDone):
            sums.add_step(event)
        if isinstance(event, GenerationDone):
            sums.add_answer(event)

    def _end_answer(self, answer: _Answer) -> None:
        self._round[answer.name] = answer.sums
        self._spent_s += answer.sums.decode_s
        self.pause()
        self._left.pop(0)
        if not self._left:
            self._next_question(counts=True)

    def _next_question(self, counts: bool) -> None:
        if counts and self._place >= 0:
            for name, sums in self._round.items():
                self._sums[name].add(sums)
            self.num_answered += 1
        if not counts and self._place < 0:
            self._questions.pop(0)  # the next one warms up
        else:
            self._place += 1
        self._round = {}
        self._left = self._order()
        late = self._spent_s > self._most_s and self.num_answered > 0
        self.is_done = late or max(0, self._place) >= len(self._questions) or not self._left

    def _order(self) -> list[str]:
        """Whoever comes behind another finds its weights in the processor's cache: by chance."""
        names = sorted(self._row_policies)
        random.Random(self._place).shuffle(names)
        return names


def usual_race(target: Target, costs: StepCosts) -> DrafterRace:
    """The race that the window runs in spare time, on shipped questions."""
    prompts = read_prompts(prompts_dir() / "general.jsonl", _USUAL)
    messages_of = [prompt.turns[0] for prompt in prompts]
    return DrafterRace(target, costs, messages_of, _USUAL_TOKENS, _USUAL_S)
