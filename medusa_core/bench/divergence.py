"""Find the first difference of two answers, and whether the target's scores tie there.

Under `sample` the scores are filtered logits plus the Gumbel noise of the position.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from medusa_core.bench.race import RaceConversation
from medusa_core.engine.overflow import fit
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Role
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.rules.rule import with_greedy_at_zero
from medusa_core.speculation.rules.sampling import (
    Sampler,
    gumbel_noise,
)
from medusa_core.speculation.rules.shaping import Shaping

# Units in the last place of the best score: rounding differs with the number of rows computed.
_TIE_ULPS = 16


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first token in which an answer differs from plain decoding.

    Attributes:
        prompt_id: The prompt.
        turn: Index of the turn.
        place: Index of the token in the answer.
        gap: Difference of the target's scores of the two tokens, in float32 or better.
        is_tie: The gap is within the rounding of the compute dtype.
    """

    prompt_id: str
    turn: int
    place: int
    gap: float
    is_tie: bool

    def __str__(self) -> str:
        kind = "a tie" if self.is_tie else "NOT a tie"
        return (
            f"{self.prompt_id}, turn {self.turn + 1}, token {self.place + 1}: "
            f"scores {self.gap:.2g} apart, {kind}"
        )


def find_divergence(
    target: Target, found: RaceConversation, plain: RaceConversation, settings: GenerateSettings
) -> Divergence | None:
    """Compare a conversation with plain decoding's.

    Args:
        target: Target of both.
        found: The conversation.
        plain: Conversation with the same prompt by plain decoding.
        settings: Settings of both, except for the drafter.

    Returns:
        The first difference, or None.
    """
    for turn, (a, b) in enumerate(zip(found.answers, plain.answers, strict=True)):
        if a.token_ids != b.token_ids:
            place = next(
                (
                    i
                    for i, (x, y) in enumerate(zip(a.token_ids, b.token_ids, strict=False))
                    if x != y
                ),
                min(len(a.token_ids), len(b.token_ids)),
            )
            prompt = prompt_ids_of(target, plain, turn)
            context = WalkContext([*prompt, *b.token_ids[:place]], len(prompt))
            tokens = [ids[place] for ids in (a.token_ids, b.token_ids) if place < len(ids)]
            gap, ulp = _gap(target, context, tokens, settings)
            is_tie = len(tokens) == 2 and gap <= _TIE_ULPS * ulp
            return Divergence(found.prompt.prompt_id, turn, place, gap, is_tie)
    return None


def prompt_ids_of(target: Target, conversation: RaceConversation, turn: int) -> list[int]:
    """Return the prompt tokens of a turn."""
    messages: list[ChatMessage] = []
    for index in range(turn + 1):
        messages.append(ChatMessage(Role.USER, conversation.prompt.turns[index]))
        if index < turn:
            answered = conversation.answers[index]
            messages.append(ChatMessage(Role.ASSISTANT, answered.text, answered.token_ids))
    return fit(messages, None, target, GenerateSettings()).transcript.prompt_ids


@torch.inference_mode()
def _gap(
    target: Target, context: WalkContext, tokens: list[int], settings: GenerateSettings
) -> tuple[float, float]:
    """Return the difference of two tokens' scores, and the rounding unit of the best score."""
    kv = target.runner.new_cache(len(context.history))
    row = target.runner.logits(target.runner.extend(context.history, kv)[-1:])[0]
    # Peers round to the requested dtype; this engine's step may be more precise.
    ulp = float(row.double().abs().max()) * torch.finfo(target.precision.compute).eps
    settings = with_greedy_at_zero(settings)
    scores = Shaping(settings)(row, context, ()).double().cpu()
    if settings.rule == "sample":
        noise = gumbel_noise(settings.seed, context.position, len(row))
        scores = Sampler(settings).filtered(scores) + noise
        ulp /= settings.temperature
    chosen = scores[torch.tensor(tokens)]
    return float(chosen.max() - chosen.min()), ulp
