"""Positions in a prompt where the states of recurrent layers are saved.

Keys and values of a prefix can be reused up to any token, states only where they were saved.
Prompts usually diverge at the start of a user's turn: after the system prompt and the tools, or at
an edited question. A checkpoint is correct at any position; a bad choice only saves less work.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.engine.transcript import transcribe
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Role
from medusa_core.speculation.drafters.source import num_common

_PROBES = ("a", "1")  # questions that begin with different tokens
_MIN_DISTANCE = 64


def checkpoint_positions(
    prompt_ids: Sequence[int],
    messages: Sequence[ChatMessage],
    target: Target,
    thinks: bool | None,
    tools: tuple[str, ...],
    max_positions: int,
) -> tuple[int, ...]:
    """Choose where to save states while a prompt is read.

    Args:
        prompt_ids: The prompt's tokens.
        messages: The prompt's messages; empty for a prompt that was given as tokens.
        target: The loaded target.
        thinks: Whether to reason before the answer; None for the template's default.
        tools: Functions that the model may call, as in `Generate`.
        max_positions: Maximum number of positions, apart from the prompt's end.

    Returns:
        Ascending lengths of prefixes: up to the first question, then up to the last questions.
        Without messages, positions at ever shorter distances from the prompt's end.
    """
    if max_positions < 1:
        return ()
    first = _first_question(prompt_ids, messages, target, thinks, tools)
    if not first:
        distances = (_MIN_DISTANCE * 4**power for power in reversed(range(max_positions)))
        return tuple(len(prompt_ids) - n for n in distances if n < len(prompt_ids))
    later = _later_questions(prompt_ids, first, target)
    return (first, *later[max(0, len(later) - max_positions + 1) :])


def _first_question(
    prompt_ids: Sequence[int],
    messages: Sequence[ChatMessage],
    target: Target,
    thinks: bool | None,
    tools: tuple[str, ...],
) -> int:
    """Return the position of the first question's text; 0 if it can't be found."""
    place = next((n for n, turn in enumerate(messages) if turn.role is Role.USER), None)
    if place is None:
        return 0
    before = tuple(messages[:place])
    probes = [
        transcribe((*before, ChatMessage(Role.USER, text)), None, target, thinks, tools).token_ids
        for text in _PROBES
    ]
    return num_common(prompt_ids, probes[0][: num_common(*probes)])


def _later_questions(prompt_ids: Sequence[int], first: int, target: Target) -> list[int]:
    """Return the positions of later questions: after the same turn header as the first one."""
    special = {token_id for token_id, _ in target.tokenizer.special_tokens}
    opening = next((n for n in range(first - 1, 0, -1) if prompt_ids[n] in special), None)
    if opening is None:
        return []
    header = list(prompt_ids[opening:first])
    return [
        end
        for end in range(first + len(header), len(prompt_ids))
        if prompt_ids[end - len(header)] == header[0]
        and list(prompt_ids[end - len(header) : end]) == header
    ]
