"""Where two greedy answers part, and whether the target's scores were as good as equal there."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from medusa_core.bench.race import Conversation
from medusa_core.engine.transcript import transcribe
from medusa_core.messages import ChatMessage, Role
from medusa_core.target import Target

# Units in the last place of the best score: rounding differs with the number of rows computed.
_TIE_ULPS = 16


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first token in which an answer differs from plain decoding.

    Attributes:
        prompt_id: In which prompt.
        turn: In which turn, from 0.
        place: At which token of the answer, from 0.
        gap: How much worse the target scores the worse of the two tokens, in float32 or better.
        is_tie: The gap is within rounding in the dtype that was used.
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


def find_divergence(target: Target, found: Conversation, plain: Conversation) -> Divergence | None:
    """Compare an answer with plain decoding's.

    Args:
        target: What both ran on.
        found: The conversation to judge.
        plain: The same prompt by plain decoding.

    Returns:
        The first difference, or None if there is none.
    """
    for turn, (a, b) in enumerate(zip(found.turns, plain.turns, strict=True)):
        if a.token_ids != b.token_ids:
            place = next(
                (
                    i
                    for i, (x, y) in enumerate(zip(a.token_ids, b.token_ids, strict=False))
                    if x != y
                ),
                min(len(a.token_ids), len(b.token_ids)),
            )
            prefix = _prompt_ids(target, plain, turn) + list(b.token_ids[:place])
            tokens = [ids[place] for ids in (a.token_ids, b.token_ids) if place < len(ids)]
            gap, ulp = _gap(target, prefix, tokens)
            is_tie = len(tokens) == 2 and gap <= _TIE_ULPS * ulp
            return Divergence(found.prompt.prompt_id, turn, place, gap, is_tie)
    return None


def _prompt_ids(target: Target, conversation: Conversation, turn: int) -> list[int]:
    messages: list[ChatMessage] = []
    for index in range(turn + 1):
        messages.append(ChatMessage(Role.USER, conversation.prompt.turns[index]))
        if index < turn:
            answered = conversation.turns[index]
            messages.append(ChatMessage(Role.ASSISTANT, answered.text, answered.token_ids))
    return transcribe(messages, None, target).prompt_ids


@torch.inference_mode()
def _gap(target: Target, prefix: list[int], tokens: list[int]) -> tuple[float, float]:
    """Difference of two tokens' scores behind a prefix, and the rounding unit of the better."""
    kv = target.runner.new_cache(len(prefix))
    logits = target.runner.logits(target.runner.extend(prefix, kv)[-1:])[0]
    scores = logits[torch.tensor(tokens, device=logits.device)].double()
    best = float(scores.abs().max())
    ulp = best * torch.finfo(logits.dtype).eps
    return float(scores.max() - scores.min()), ulp
