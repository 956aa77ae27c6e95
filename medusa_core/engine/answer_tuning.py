"""What the tuner decides for one answer, and what it learns from the answer's steps."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.engine.sequence import Step
from medusa_core.messages import AUTO_GROWTH, GenerateSettings
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.baseline import Baseline
from medusa_core.speculation.tuning.costs import PassMix
from medusa_core.speculation.tuning.learning import Guesses, StepYield
from medusa_core.speculation.tuning.tuner import Tuner

UPDATE_STEPS = 8  # after so many steps it is asked again what time is worth


class AnswerTuning:
    """The tuner's part in one answer.

    Attributes:
        num_rested: Steps decoded plainly, because drafts didn't pay.
        drafts: Whether the drafter ever guesses.
    """

    def __init__(
        self, tuner: Tuner, settings: GenerateSettings, drafter: DrafterSpec, num_prompt_tokens: int
    ) -> None:
        """Begin an answer.

        Args:
            tuner: Of the target.
            settings: As they were asked for: 0 rows leave the tree's size to the tuner.
            drafter: Drafts.
            num_prompt_tokens: Length of what is read first.
        """
        self.num_rested = 0
        self.drafts = drafter.drafts
        self._tuner, self._settings, self._drafter = tuner, settings, drafter
        self._num_prompt_tokens = num_prompt_tokens
        is_open = settings.tree_rows == 0 and drafter.drafts
        self._governor = tuner.governor(settings, num_prompt_tokens) if is_open else None
        self._trust = tuner.trust(settings, drafter)
        self._guesses: list[tuple[int, Guesses]] = []
        self._yields: list[StepYield] = []
        self._baseline = Baseline()
        self._num_kept, self._seconds = 0, 0.0
        self._first_price = tuner.price(settings, num_prompt_tokens)

    @property
    def cost_factor(self) -> float:
        """What drafts cost now over what they cost when the answer began.

        Where a form is asked for, that is the same all along, so that steps are repeatable.
        """
        if self._settings.growth != AUTO_GROWTH:
            return 1.0
        return self._tuner.price(self._settings, self._num_prompt_tokens) / self._first_price

    @property
    def is_paused(self) -> bool:
        """Drafts don't pay at the moment."""
        return self._governor is not None and not self._governor.drafts

    def shared_rows(self, length: int, mix: PassMix) -> int:
        """Most rows of a tree behind so many committed rows, in a pass that others share."""
        return self._tuner.shared_rows(self._settings, length, mix)

    def learn_guesses(self, step: Step, place: int) -> None:
        """Learn what came true of the drafts, and note what else the drafter guessed.

        How much of that was right is known once the answer ends.

        Args:
            step: The step.
            place: Of the first token behind its root.
        """
        if self._trust is not None:
            self._trust.learn(step.proposal, step.acceptance.nodes)
        if step.proposal.top_tokens:
            self._guesses.append((place, step.proposal.top_tokens))

    def learn_time(
        self, step: Step, num_kept: int, place: int, step_s: float, was_paused: bool
    ) -> None:
        """Learn from a step that had its pass for itself.

        Args:
            step: The step.
            num_kept: Tokens that the answer kept.
            place: Of the first token behind its root.
            step_s: Seconds of all of it.
            was_paused: Drafting was paused.
        """
        proposal, verified_s = step.proposal, step.times.verify_s + step.times.accept_s
        self._baseline.add(proposal.num_rows, place, verified_s, step_s)
        self._num_kept, self._seconds = self._num_kept + num_kept, self._seconds + step_s
        if self._governor is not None:
            self.num_rested += not self._governor.drafts
            self._governor.add(num_kept, step_s)
        if not was_paused:
            levels, num_accepted = proposal.tree.shape.depths[-1], len(step.acceptance.nodes)
            self._yields.append(
                StepYield(
                    proposal.expected_accepted,
                    num_accepted,
                    proposal.num_rows,
                    step_s,
                    levels,
                    step.times.draft_s,
                )
            )
            if len(self._yields) == UPDATE_STEPS:
                self._judge()

    def finish(self, token_ids: Sequence[int]) -> None:
        """Hand what was learned to the tuner.

        Args:
            token_ids: The whole text.
        """
        self._tuner.learn(self._settings, self._guesses, token_ids)
        self._judge()

    def _judge(self) -> None:
        self._tuner.judge(self._settings, self._num_prompt_tokens, self._yields, self._drafter)
        self._yields = []

    def plain_step_s(self, num_tokens: int) -> float:
        """What a plain step takes in the middle of an answer; 0 where nothing can be compared.

        That drafts were slower is told by plain steps of the same answer alone: what was measured
        earlier may have had a quieter computer.

        Args:
            num_tokens: Of the answer.
        """
        if not self.drafts:
            return 0.0
        length = self._num_prompt_tokens + num_tokens // 2
        plain_s = self._baseline.plain_s(self._tuner.costs, length)
        is_slower = self._num_kept * plain_s < self._seconds
        return 0.0 if is_slower and not self._baseline.has_plain_steps else plain_s
