"""What typical acceptance gains and costs, for several values of ε.

The agreement is the share of an answer's tokens that exact sampling would have put at the same
place behind the same text with the same seed: 1 for an exact rule, and the less, the more often a
draft was taken that would not have been drawn. The other measure is how likely the target itself
finds the text: the mean log-probability of its tokens, at temperature 1 and without filters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.bench.contestant import OwnMode
from medusa_core.bench.divergence import prompt_ids_of
from medusa_core.bench.race import RaceConversation, Totals, run_race
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.prompts import BenchPrompt

EPSILONS = (0.02, 0.05, 0.09, 0.15, 0.25, 0.4, 0.6, 0.9)
_EXACT = "exact"


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """Measurements of one rule.

    Attributes:
        epsilon: The bound; 0 for exact sampling.
        mean_acceptance_length: Tokens per step.
        tokens_per_s: Of decoding alone.
        agreement: Share of tokens that exact sampling would have chosen too.
        mean_log_probability: Of the tokens, by the target's own scores; nats.
        num_tokens: How many tokens were looked at.
    """

    epsilon: float
    mean_acceptance_length: float
    tokens_per_s: float
    agreement: float
    mean_log_probability: float
    num_tokens: int


@dataclass(frozen=True, slots=True)
class EpsilonSweep:
    """Measurements of all values of epsilon, and of exact sampling.

    Attributes:
        points: One for each ε.
        exact: What exact sampling gave with the same drafter.
    """

    points: tuple[SweepPoint, ...]
    exact: SweepPoint


def sweep_epsilon(
    target: Target,
    prompts: Sequence[BenchPrompt],
    settings: GenerateSettings,
    epsilons: Sequence[float],
    on_prompt: Callable[[int, int], None],
) -> EpsilonSweep:
    """Answer all prompts by typical acceptance under every ε, in turns, prompt by prompt.

    Args:
        target: A loaded target.
        prompts: What to ask.
        settings: All but the rule and ε; δ follows as its square root.
        epsilons: The bounds to try.
        on_prompt: Called with how many prompts of how many are done.
    """
    tried = {
        f"{epsilon:g}": replace(settings, rule="typical", epsilon=epsilon, delta=0.0)
        for epsilon in epsilons
    }
    tried[_EXACT] = replace(settings, rule="sample")
    contestants = {
        name: OwnMode(target, chosen, RowPolicy(target)) for name, chosen in tried.items()
    }
    race = run_race(contestants, prompts, 1, on_prompt)
    points = {name: _point(target, race.results[name][0], chosen) for name, chosen in tried.items()}
    exact = replace(points.pop(_EXACT), epsilon=0.0)
    return EpsilonSweep(tuple(points.values()), exact)


def sweep_table(sweep: EpsilonSweep) -> str:
    """The figures for people."""
    lines = [" epsilon     tau  tokens/s  agreement  log-prob."]
    named = [(f"{point.epsilon:g}", point) for point in sweep.points] + [(_EXACT, sweep.exact)]
    lines += [
        f"{name:>8}{p.mean_acceptance_length:8.2f}{p.tokens_per_s:10.1f}{p.agreement:11.3f}"
        f"{p.mean_log_probability:11.3f}"
        for name, p in named
    ]
    return "\n".join(lines)


def _point(
    target: Target, conversations: Sequence[RaceConversation], settings: GenerateSettings
) -> SweepPoint:
    turns = [turn for conversation in conversations for turn in conversation.answers]
    totals = Totals.of(conversations)
    judged = [_judged(target, c, settings) for c in conversations]
    num_tokens = max(1, sum(len(turn.token_ids) for turn in turns))
    return SweepPoint(
        epsilon=settings.epsilon,
        mean_acceptance_length=totals.mean_acceptance_length,
        tokens_per_s=totals.tokens_per_s,
        agreement=sum(one.num_equal for one in judged) / num_tokens,
        mean_log_probability=sum(one.log_probability for one in judged) / num_tokens,
        num_tokens=num_tokens,
    )


class _Judged(NamedTuple):
    """The target's judgement of answers.

    Attributes:
        num_equal: Tokens that exact sampling would have chosen behind the same text.
        log_probability: Of all tokens together.
    """

    num_equal: int
    log_probability: float


@torch.inference_mode()
def _judged(target: Target, conversation: RaceConversation, settings: GenerateSettings) -> _Judged:
    rule = rule_registry().get("sample").build(settings)
    equal, log_probability = 0, 0.0
    for turn, answered in enumerate(conversation.answers):
        prompt = prompt_ids_of(target, conversation, turn)
        text = [*prompt, *answered.token_ids]
        kv = target.runner.new_cache(len(text))
        logits = target.runner.logits(target.runner.extend(text, kv)[len(prompt) - 1 :])
        log_probability += _log_probability(logits, answered.token_ids)
        for place, token_id in enumerate(answered.token_ids, start=len(prompt)):
            tree = TokenTree(TreeShape.root_only(), (text[place - 1],))
            row = logits[place - len(prompt)].unsqueeze(0)
            context = WalkContext(text[:place], len(prompt))
            equal += rule.walk(tree, row, context).bonus_id == token_id
    return _Judged(equal, log_probability)


def _log_probability(logits: Tensor, token_ids: Sequence[int]) -> float:
    """Return the summed log-probability of tokens, each by the logits before it. [at least as many,
    vocabulary]
    """
    ids = torch.tensor(token_ids, device=logits.device)
    scores = torch.log_softmax(logits[: len(ids)].float(), dim=-1)
    return float(scores.gather(1, ids[:, None]).sum())
