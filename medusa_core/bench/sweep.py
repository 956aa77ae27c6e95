"""What typical acceptance gains and costs, for several values of ε.

The agreement is the share of an answer's tokens that exact sampling would have put at the same
place behind the same text with the same seed: 1 for an exact rule, and the less, the more often a
draft was taken that would not have been drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from medusa_core.bench.contestant import OwnMode
from medusa_core.bench.divergence import prompt_ids_of
from medusa_core.bench.race import Conversation, Totals, run_race
from medusa_core.messages import GenerateSettings
from medusa_core.pace.tuner import Tuner
from medusa_core.prompts import Prompt
from medusa_core.rules.rule import rule_registry
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import WalkContext

EPSILONS = (0.02, 0.05, 0.09, 0.15, 0.25, 0.4, 0.6, 0.9)


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """What one ε gave.

    Attributes:
        epsilon: The bound.
        mean_acceptance_length: Tokens per step.
        tokens_per_s: Of decoding alone.
        agreement: Share of tokens that exact sampling would have chosen too.
        num_tokens: How many tokens were looked at.
    """

    epsilon: float
    mean_acceptance_length: float
    tokens_per_s: float
    agreement: float
    num_tokens: int


def sweep_epsilon(
    target: Target,
    prompts: Sequence[Prompt],
    settings: GenerateSettings,
    epsilons: Sequence[float],
    on_prompt: Callable[[int, int], None],
) -> list[SweepPoint]:
    """Answer all prompts by typical acceptance under every ε, in turns, prompt by prompt.

    Args:
        target: A loaded target.
        prompts: What to ask.
        settings: All but the rule and ε.
        epsilons: The bounds to try; δ follows as its square root, as the paper has it.
        on_prompt: Told how many prompts of how many are done.
    """
    tried = {
        f"{epsilon:g}": replace(settings, rule="typical", epsilon=epsilon, delta=0.0)
        for epsilon in epsilons
    }
    contestants = {name: OwnMode(target, chosen, Tuner(target)) for name, chosen in tried.items()}
    race = run_race(contestants, prompts, 1, on_prompt)
    return [_point(target, race.results[name][0], chosen) for name, chosen in tried.items()]


def sweep_table(points: Sequence[SweepPoint]) -> str:
    """The figures for people."""
    lines = [" epsilon     tau  tokens/s  agreement"]
    lines += [
        f"{p.epsilon:8g}{p.mean_acceptance_length:8.2f}{p.tokens_per_s:10.1f}{p.agreement:11.3f}"
        for p in points
    ]
    return "\n".join(lines)


def _point(
    target: Target, conversations: Sequence[Conversation], settings: GenerateSettings
) -> SweepPoint:
    turns = [turn for conversation in conversations for turn in conversation.turns]
    totals = Totals.of(conversations)
    num_equal = sum(_num_equal(target, c, settings) for c in conversations)
    num_tokens = sum(len(turn.token_ids) for turn in turns)
    return SweepPoint(
        epsilon=settings.epsilon,
        mean_acceptance_length=totals.mean_acceptance_length,
        tokens_per_s=totals.tokens_per_s,
        agreement=num_equal / num_tokens if num_tokens else 0.0,
        num_tokens=num_tokens,
    )


@torch.inference_mode()
def _num_equal(target: Target, conversation: Conversation, settings: GenerateSettings) -> int:
    """Tokens of all answers that exact sampling would have chosen behind the same text."""
    rule = rule_registry().get("sample").build(settings)
    equal = 0
    for turn, answered in enumerate(conversation.turns):
        prompt = prompt_ids_of(target, conversation, turn)
        text = [*prompt, *answered.token_ids]
        kv = target.runner.new_cache(len(text))
        logits = target.runner.logits(target.runner.extend(text, kv)[len(prompt) - 1 :])
        for place, token_id in enumerate(answered.token_ids, start=len(prompt)):
            tree = TokenTree(TreeShape.root_only(), (text[place - 1],))
            row = logits[place - len(prompt)].unsqueeze(0)
            context = WalkContext(text[:place], len(prompt))
            equal += rule.walk(tree, row, context).bonus_id == token_id
    return equal
