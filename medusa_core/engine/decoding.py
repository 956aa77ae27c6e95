"""The decoding state of an answer: its drafter, tree sizes and accepted tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence

from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.answer_tuning import UPDATE_STEPS, AnswerTuning
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import Session
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.drafters.drafter import Drafter, ScalesCosts
from medusa_core.speculation.drafters.none import NoDrafter
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import UsesTargetCache
from medusa_core.speculation.rules.rule import Rule, RuleNumbers, all_numbers
from medusa_core.speculation.tuning.step_costs import PassMix


class Decoding:
    """Decodes an answer; `DecodingSequence` describes its first four attributes.

    Attributes:
        tuning: Decides when to draft, and learns from the steps.
        accept_lengths: Tokens of each step.
        seconds: Duration of all steps.
    """

    def __init__(
        self,
        session: Session,
        answer: AnswerBuffer,
        context: WalkContext,
        drafter: Drafter,
        rule: Rule,
        tuning: AnswerTuning,
        max_rows: int,
    ) -> None:
        """Prepare to decode.

        Args:
            session: The conversation.
            answer: Collects the tokens.
            context: The session's tokens, and the rule's other inputs.
            drafter: The drafter.
            rule: The acceptance rule.
            tuning: Decides when to draft, and learns from the steps.
            max_rows: Maximum number of rows of a tree.
        """
        self.context = context
        self.drafter = drafter
        self.rule = rule
        self.max_rows = max_rows
        self.tuning = tuning
        self.accept_lengths: list[int] = []
        self.seconds = 0.0
        self._session, self._answer = session, answer
        self._drafter, self._plain_drafter = drafter, PlainDrafter(drafter)
        self._cache_reader = drafter if isinstance(drafter, UsesTargetCache) else None
        self._max_rows = max_rows
        self._is_shared = False
        self._started = 0.0
        self._step: Step | None = None

    @property
    def kv(self) -> KvCache:
        """The session's KV cache, which is replaced when it grows."""
        return self._session.kv

    def begin(self, mix: PassMix, is_shared: bool) -> None:
        """Prepare a step.

        Args:
            mix: The decoding answers of the pass, this one included.
            is_shared: The pass has rows of other answers, decoding or prefilling.
        """
        self._started = time.perf_counter()
        self._is_shared = is_shared
        is_paused = self.tuning.is_paused and not is_shared
        self.drafter = self._plain_drafter if is_paused else self._drafter
        if self._cache_reader is not None:  # the cache is replaced when it grows
            self._cache_reader.attach_cache(self.kv)
        length = self.kv.length
        self.max_rows = min(self._max_rows, self.kv.most_rows, self.kv.capacity - length)
        if is_shared:
            self.max_rows = min(self.max_rows, self.tuning.shared_rows(length, mix))

    def append(self, step: Step) -> bool:
        """Append a step's tokens to the answer, session and grammar; see `DecodingSequence`."""
        numbers: tuple[RuleNumbers, ...] = ()
        decides_by_more = self.rule.has_numbers or self.context.grammar is not None
        if self.context.traces and decides_by_more:  # before the tokens change the context
            path = (0, *step.acceptance.nodes)
            numbers = all_numbers(self.rule, step.logits, path, self.context, step.token_ids)
        kept = self._answer.append(step.token_ids)
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
        """Count a step, and let the row policy learn from it. Returns its seconds."""
        num_appended = step.num_appended
        place = len(self._session.token_ids) - num_appended
        self.accept_lengths.append(num_appended)
        step_s = time.perf_counter() - self._started
        self.seconds += step_s
        self.tuning.learn_drafts(step, place)
        if not self._is_shared:
            was_paused = self.drafter is self._plain_drafter
            self.tuning.learn_time(step, num_appended, place, step_s, was_paused)
            is_due = len(self.accept_lengths) % UPDATE_STEPS == 0
            if is_due and isinstance(self._drafter, ScalesCosts):
                self._drafter.scale_costs(self.tuning.cost_factor)
        return step_s


class PlainDrafter(NoDrafter):
    """Proposes the root alone while drafting is paused; the real drafter still observes."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter

    def begin(self, token_ids: Sequence[int]) -> None:
        """Let the real drafter begin its answer, which this one replaces for some tokens."""
        self._drafter.begin(token_ids)

    def observe(self, observation: Observation) -> None:
        """Show the decided tokens to the real drafter."""
        self._drafter.observe(observation)

    def truncate(self, length: int) -> None:
        """Drop the real drafter's state of the tokens from `length` on."""
        self._drafter.truncate(length)
