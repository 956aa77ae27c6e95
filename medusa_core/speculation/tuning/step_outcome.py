"""Outcomes of decoding steps, and the kinds of answers whose outcomes are counted together."""

from __future__ import annotations

from typing import NamedTuple

from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.tables import temperature_bucket
from medusa_core.speculation.rules.rule import rule_registry, with_greedy_at_zero


class StepOutcome(NamedTuple):
    """Expected and accepted drafts of one step, and its duration.

    Attributes:
        expected_accepted: Expected number of accepted drafts, by the drafter's probabilities.
        num_accepted: Number of accepted drafts.
        num_rows: Rows of the tree, root included.
        seconds: Duration of the step.
        levels: Depth of the tree.
        draft_s: Part of it spent drafting; 0 if unknown.
    """

    expected_accepted: float
    num_accepted: int
    num_rows: int
    seconds: float
    levels: int = 0
    draft_s: float = 0.0


class AnswerKind(NamedTuple):
    """Answers whose steps are counted together.

    Attributes:
        drafter: Name of the drafter.
        temperature: Bucket of temperatures; 0 for deterministic rules.
        growth: One of `GROWTHS`.
    """

    drafter: str
    temperature: float
    growth: str

    @classmethod
    def of(cls, settings: GenerateSettings) -> AnswerKind:
        """The kind of answers with such settings."""
        return cls(settings.drafter, temperature_of(settings), settings.growth)


def temperature_of(settings: GenerateSettings) -> float:
    """The bucket of temperatures of an answer; 0 under a deterministic rule."""
    draws = rule_registry().get(with_greedy_at_zero(settings).rule).choice.draws
    return bucket_of(settings, draws)


def bucket_of(settings: GenerateSettings, draws: bool) -> float:
    """The bucket of temperatures; 0 if the rule doesn't draw."""
    return temperature_bucket(settings.temperature) if draws else 0.0
