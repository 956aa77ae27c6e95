"""What heads of every kind are checked for before a tensor is read; without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from medusa_core.errors import HeadsError
from medusa_core.models.config import ModelConfig

# Vocabularies are padded to rounder numbers: 32000, 32001 and 32064 are one.
MOST_PADDING = 128
_MOST_LISTED, _MOST_CHARS = 16, 80


def listed(names: Iterable[str]) -> str:
    """The first of some names for a message: a damaged file may have any number, of any length."""
    first = [name[:_MOST_CHARS] for name in islice(names, _MOST_LISTED + 1)]
    return ", ".join(first[:_MOST_LISTED]) + (", ..." if len(first) > _MOST_LISTED else "")


def flag(settings: Mapping[str, Any], key: str, default: bool) -> bool:
    """A switch of `config.json`; the default where it isn't there.

    Raises:
        HeadsError: It is neither true nor false.
    """
    value = settings.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_setting(key)
    return value


def bad_setting(key: str) -> HeadsError:
    """What to raise of a value of `config.json` that heads can't have."""
    return HeadsError(f"config.json: {key} makes no sense.", "Download the heads again.")


def check_sizes(
    hidden: int, vocabulary: int, config: ModelConfig, padding: int = MOST_PADDING
) -> None:
    """Refuse heads for a target of other sizes.

    Args:
        hidden: Their width.
        vocabulary: The tokens that they draft from.
        config: Sizes of the target.
        padding: By how many tokens the vocabularies may differ.

    Raises:
        HeadsError: They are for another target.
    """
    if hidden != config.hidden_size:
        raise HeadsError(
            f"The heads are for a hidden size of {hidden}, the model has {config.hidden_size}.",
            "Choose the heads that were trained for this model.",
            heads=hidden,
            model=config.hidden_size,
        )
    if abs(vocabulary - config.vocab_size) > padding:
        raise HeadsError(
            f"The heads have a vocabulary of {vocabulary}, the model {config.vocab_size}.",
            "Choose the heads that were trained for this model.",
            heads=vocabulary,
            model=config.vocab_size,
        )
