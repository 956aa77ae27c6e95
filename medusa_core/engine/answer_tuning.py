"""The row policy's part in one answer: when it drafts, and what is learned from its steps."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.engine.sequence import Step
from medusa_core.messages import AUTO_GROWTH, GenerateSettings
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.acceptance_model import TopTokens
from medusa_core.speculation.tuning.baseline import Baseline
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import PassMix
from medusa_core.speculation.tuning.step_outcome import StepOutcome

UPDATE_STEPS = 8  # interval at which the costs of drafts are updated


class AnswerTuning:
    """Applies a row policy to one answer.

    Attributes:
        num_plain_steps: Steps without drafts while drafting was paused.
        drafts: Whether the drafter ever drafts.
    """

    def __init__(
        self,
        row_policy: RowPolicy,
        settings: GenerateSettings,
        drafter: DrafterSpec,
        num_prompt_tokens: int,
    ) -> None:
        """Begin an answer.

        Args:
            row_policy: The target's row policy.
            settings: The requested settings; 0 rows leave the size of trees to the policy.
            drafter: The drafter.
            num_prompt_tokens: Length of the prompt.
        """
        self.num_plain_steps = 0
        self.drafts = drafter.drafts
        self._policy, self._settings, self._drafter = row_policy, settings, drafter
        self._num_prompt_tokens = num_prompt_tokens
        may_pause = settings.tree_rows == 0 and drafter.drafts
        self._governor = row_policy.governor(settings, num_prompt_tokens) if may_pause else None
        self._ratios = row_policy.acceptance_ratios(settings, drafter)
        self._top_tokens: list[tuple[int, TopTokens]] = []
        self._outcomes: list[StepOutcome] = []
        self._baseline = Baseline()
        self._num_appended, self._seconds = 0, 0.0
        self._first_tokens_per_s = row_policy.tokens_per_s(settings, num_prompt_tokens)

    @property
    def cost_factor(self) -> float:
        """Current costs of drafts over those at the answer's start.

        It stays 1 if the form of trees is given, so that steps are reproducible.
        """
        if self._settings.growth != AUTO_GROWTH:
            return 1.0
        tokens_per_s = self._policy.tokens_per_s(self._settings, self._num_prompt_tokens)
        return tokens_per_s / self._first_tokens_per_s

    @property
    def is_paused(self) -> bool:
        """Whether drafting is paused, as it isn't profitable."""
        return self._governor is not None and not self._governor.drafts

    def shared_rows(self, length: int, mix: PassMix) -> int:
        """Maximum rows of a tree after `length` cached rows in a shared pass."""
        return self._policy.shared_rows(self._settings, length, mix)

    def learn_drafts(self, step: Step, position: int) -> None:
        """Count accepted drafts, and keep the heads' tokens until the answer's tokens are known.

        Args:
            step: The step.
            position: Position of the first token after its root.
        """
        if self._ratios is not None:
            self._ratios.learn(step.proposal, step.acceptance.nodes)
        if step.proposal.top_tokens:
            self._top_tokens.append((position, step.proposal.top_tokens))

    def learn_time(
        self, step: Step, num_appended: int, position: int, step_s: float, was_paused: bool
    ) -> None:
        """Learn from a step that didn't share its pass.

        Args:
            step: The step.
            num_appended: Number of tokens appended to the answer.
            position: Position of the first token after its root.
            step_s: Seconds of the whole step.
            was_paused: Drafting was paused.
        """
        proposal, verified_s = step.proposal, step.times.verify_s + step.times.accept_s
        self._baseline.add(proposal.num_rows, position, verified_s, step_s)
        self._num_appended += num_appended
        self._seconds += step_s
        if self._governor is not None:
            self.num_plain_steps += not self._governor.drafts
            self._governor.add(num_appended, step_s)
        if was_paused:
            return
        outcome = StepOutcome(
            proposal.expected_accepted,
            len(step.acceptance.nodes),
            proposal.num_rows,
            step_s,
            proposal.tree.shape.depths[-1],
            step.times.draft_s,
        )
        self._outcomes.append(outcome)
        if len(self._outcomes) == UPDATE_STEPS:
            self._observe()

    def finish(self, token_ids: Sequence[int]) -> None:
        """Hand the rest of what was learned to the policy.

        Args:
            token_ids: Prompt and answer.
        """
        self._policy.learn_heads(self._settings, self._top_tokens, token_ids)
        self._observe()

    def _observe(self) -> None:
        """Hand the outcomes of the last steps to the row policy."""
        settings, length = self._settings, self._num_prompt_tokens
        self._policy.observe(settings, length, self._outcomes, self._drafter)
        self._outcomes = []

    def plain_step_s(self, num_tokens: int) -> float:
        """Seconds of a plain step in the middle of the answer; 0 if it can't be compared.

        Only plain steps of the same answer can show that drafts made it slower: what was measured
        earlier may be of a less busy computer.

        Args:
            num_tokens: Length of the answer.
        """
        if not self.drafts:
            return 0.0
        length = self._num_prompt_tokens + num_tokens // 2
        plain_s = self._baseline.plain_s(self._policy.costs, length)
        is_slower = self._num_appended * plain_s < self._seconds
        return 0.0 if is_slower and not self._baseline.has_plain_steps else plain_s
