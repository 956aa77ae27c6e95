"""Prompts that a model writes itself, by completing the beginning of a user's turn.

Source: Xu et al., "Magpie: Alignment Data Synthesis from Scratch by Prompting Aligned LLMs with
Nothing" (2024), section 2.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace

from medusa_core.engine.batch_generate import answer_all
from medusa_core.errors import MedusaError, TemplateError
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    Role,
    StopReason,
)
from medusa_core.models.text.raw_text import RawText
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.prompts import TrainingPrompt

log = logging.getLogger(__name__)

CATEGORY = "own"
_MARK = "⁂"  # occurs in no template
_MOST_TOKENS = 96
_LEAST_CHARS, _MOST_CHARS, _LEAST_WORDS = 12, 400, 3
_MOST_ODD = 0.1  # share of a prompt's characters
_SAME_WORDS = 6  # characters by which duplicates are recognised
_ROLES = ("user:", "assistant:", "system:", "human:", "<|", "[inst")


def opening_of_user_turn(target: Target) -> str:
    """Return the chat template's text before a user's first message.

    Raises:
        TemplateError: It can't be determined.
    """
    text = target.template.render((ChatMessage(Role.USER, _MARK),))
    opening, mark, _ = text.partition(_MARK)
    if not mark or not opening.strip():
        raise TemplateError(
            tr("{0} has no opening of a user's turn.", target.name), "Name prompts with --data."
        )
    return opening


def own_prompts(
    target: Target, number: int, seed: int, is_over: Callable[[], bool]
) -> list[TrainingPrompt]:
    """Yield distinct prompts that a target writes, without incomplete or unusual requests.

    Args:
        target: A chat model with room for several conversations.
        number: Number of prompts; about twice as many are generated at most.
        seed: Seed of the sampling.
        is_over: Called after each prompt; True stops.

    Raises:
        TemplateError: The template has no beginning of a user's turn.
    """
    opening = opening_of_user_turn(target)
    found: dict[str, str] = {}
    num_written = 0
    with closing(_written(target, opening, 2 * number, seed)) as texts:
        for text in texts:
            num_written += 1
            if is_good(text):
                found.setdefault(_beginning(text), text)
            if len(found) >= number or is_over():
                break
    log.info("%d of %d prompts that the model wrote are kept", len(found), num_written)
    return [TrainingPrompt((ChatMessage(Role.USER, text),), CATEGORY) for text in found.values()]


def _written(target: Target, opening: str, number: int, seed: int) -> Generator[str, None, None]:
    """Return what the target writes in a user's turn; empty if the turn doesn't end."""
    raw = replace(target, template=RawText())
    settings = GenerateSettings(
        drafter="none", rule="sample", temperature=1.0, max_new_tokens=_MOST_TOKENS
    )
    messages = (ChatMessage(Role.USER, opening),)
    requests = (
        Generate(str(n), "", messages, replace(settings, seed=seed * number + n + 1))
        for n in range(number)
    )
    with closing(answer_all(raw, requests, RowPolicy(raw))) as ended:
        for _, _, done in ended:
            if isinstance(done, MedusaError):
                raise done
            ends = done.stop_reason is StopReason.EOS
            yield target.tokenizer.decode(done.token_ids[:-1]).strip() if ends else ""


def is_good(text: str) -> bool:
    """Whether a text is a complete, plain request of moderate length."""
    if not _LEAST_CHARS <= len(text) <= _MOST_CHARS or len(text.split()) < _LEAST_WORDS:
        return False
    if any(role in text.casefold() for role in _ROLES):
        return False
    odd = sum(not (char.isalnum() or char.isspace() or char in ".,;:!?'\"()-") for char in text)
    return odd <= _MOST_ODD * len(text)


def _beginning(text: str) -> str:
    """Return the first words in lower case, by which similar prompts are recognised."""
    return " ".join(text.casefold().split()[:_SAME_WORDS])
