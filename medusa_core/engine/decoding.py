"""An answer that is decoded: what its steps draft, how large their trees are, what they bring."""

from __future__ import annotations

import time
from collections.abc import Sequence

from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.answer_tuning import PRICED_STEPS, AnswerTuning
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import Session
from medusa_core.messages import TARGET
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.runtime.tree.step import Proposal, WalkContext
from medusa_core.speculation.drafters.drafter import Drafter, WeighsPrices
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import ReadsCache
from medusa_core.speculation.rules.rule import Rule, RuleNumbers
from medusa_core.speculation.tuning.costs import Sharers


class Decoding:
    """See `DecodingSequence`.

    Attributes:
        context: As `DecodingSequence` has it, and so are the next three.
        drafter: It.
        rule: It.
        max_rows: It.
        tuning: The tuner's part.
        accept_lengths: How many tokens each step brought.
        seconds: Of all steps.
    """

    def __init__(
        self,
        session: Session,
        answer: AnswerBuffer,
        context: WalkContext,
        drafter: Drafter,
        rule: Rule,
        tuning: AnswerTuning,
        most_rows: int,
    ) -> None:
        """Prepare the steps of an answer.

        Args:
            session: The conversation.
            answer: Takes the tokens.
            context: The session's tokens.
            drafter: Drafts.
            rule: Picks paths.
            tuning: Says when to draft, and learns.
            most_rows: Most rows of a tree.
        """
        self.context = context
        self.drafter = drafter
        self.rule = rule
        self.max_rows = most_rows
        self.tuning = tuning
        self.accept_lengths: list[int] = []
        self.seconds = 0.0
        self._session, self._answer = session, answer
        self._awake, self._resting = drafter, Resting(drafter)
        self._looking = drafter if isinstance(drafter, ReadsCache) else None
        self._most_rows = most_rows
        self._is_shared = False
        self._started = 0.0
        self._step: Step | None = None

    @property
    def kv(self) -> KvCache:
        return self._session.kv

    def begin(self, sharers: Sharers, is_shared: bool) -> None:
        """Begin a step.

        Args:
            sharers: Which answers decode a step in the pass, this one among them.
            is_shared: There are other rows in the pass, be it of a prompt.
        """
        self._started = time.perf_counter()
        self._is_shared = is_shared
        self.drafter = self._resting if self.tuning.rests and not is_shared else self._awake
        if self._looking is not None:  # the cache may be another one than before
            self._looking.look_into(self.kv)
        # A path longer than the budget could not be kept: no rows for it near the end.
        length = self.kv.length
        self.max_rows = min(self._most_rows, self.kv.most_rows, self.kv.capacity - length)
        if is_shared:
            self.max_rows = min(self.max_rows, self.tuning.shared_rows(length, sharers))

    def append(self, step: Step) -> bool:
        numbers: tuple[RuleNumbers, ...] = ()
        decides_by_more = self.rule.has_numbers or self.context.grammar is not None
        if self.context.traces and decides_by_more:  # while the context is the rule's
            path = (0, *step.acceptance.nodes)
            numbers = self.rule.numbers(step.logits, path, self.context, step.token_ids)
        kept = self._answer.take(step.token_ids)
        decided = step.token_ids[: len(kept.pieces)]
        self._session.token_ids.extend(decided)
        if self.context.grammar is not None:
            self.context.grammar.advance(decided)
        self._step = step._replace(kept=kept, numbers=numbers)
        return kept.stop_reason is None

    def take_step(self) -> Step | None:
        """Return the last step, once; None if there is no new one."""
        step, self._step = self._step, None
        return step

    def finish_step(self, step: Step) -> float:
        """Count a step, and let the tuner learn from it. Returns its seconds."""
        num_kept = step.num_kept
        place = len(self._session.token_ids) - num_kept
        self.accept_lengths.append(num_kept)
        step_s = time.perf_counter() - self._started
        self.seconds += step_s
        self.tuning.learn_guesses(step, place)
        if not self._is_shared:
            rested = self.drafter is self._resting
            self.tuning.learn_time(step, num_kept, place, step_s, rested)
            is_due = len(self.accept_lengths) % PRICED_STEPS == 0
            if is_due and isinstance(self._awake, WeighsPrices):
                self._awake.price(self.tuning.price_share)
        return step_s


class Resting:
    """A drafter that proposes nothing for a while; it observes, to propose again later."""

    _SHAPE = TreeShape.root_only()

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter

    def begin(self, token_ids: Sequence[int]) -> None:
        self._drafter.begin(token_ids)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        return Proposal(TokenTree(self._SHAPE, (root_id,)), (TARGET,))

    def observe(self, observation: Observation) -> None:
        self._drafter.observe(observation)

    def truncate(self, length: int) -> None:
        self._drafter.truncate(length)
