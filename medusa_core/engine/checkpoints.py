"""Positions in a prompt where the states of recurrent layers are saved.

Keys and values of a prefix can be reused up to any token, states only where they were saved. Other
prompts branch off where a user's turn begins: behind the system prompt and the tools, or at an
edited question. A saved state is right wherever it is; a badly chosen position only saves less.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.engine.transcript import transcribe
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Role
from medusa_core.speculation.drafters.source import num_common

_PROBES = ("a", "1")  # questions that begin with different tokens
_LEAST_APART = 64


def checkpoint_positions(
    prompt_ids: Sequence[int],
    messages: Sequence[ChatMessage],
    target: Target,
    thinks: bool | None,
    tools: tuple[str, ...],
    most: int,
) -> tuple[int, ...]:
    """Choose where to save states while a prompt is read.

    Args:
        prompt_ids: The prompt.
        messages: Its turns; empty for a prompt that was given as tokens.
        target: The loaded target.
        thinks: As in the request's settings.
        tools: As in the request.
        most: Number of positions, beside the prompt's end.

    Returns:
        Ascending lengths of prefixes: where the first question begins, then where the last ones do.
        Without turns, ever shorter distances to the prompt's end.
    """
    if most < 1:
        return ()
    first = _first_question(prompt_ids, messages, target, thinks, tools)
    if not first:
        distances = (_LEAST_APART * 4**power for power in reversed(range(most)))
        return tuple(len(prompt_ids) - each for each in distances if each < len(prompt_ids))
    later = _later_questions(prompt_ids, first, target)
    return (first, *later[max(0, len(later) - most + 1) :])


def _first_question(
    prompt_ids: Sequence[int],
    messages: Sequence[ChatMessage],
    target: Target,
    thinks: bool | None,
    tools: tuple[str, ...],
) -> int:
    """Where the text of the first question begins; 0 where that isn't known."""
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
    """Where later turns begin: behind the same tokens, from a special one on, as the first."""
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
