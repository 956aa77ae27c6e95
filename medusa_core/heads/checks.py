"""Checks that all kinds of heads share; they need no tensor data and no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from medusa_core.errors import HeadsError
from medusa_core.models.config import ModelConfig

# Vocabularies are padded differently: 32000, 32001 and 32064 may be the same.
MOST_PADDING = 128
_MOST_LISTED, _MOST_CHARS = 16, 80


def listed(names: Iterable[str]) -> str:
    """Join the first few names for a message; a damaged file may have any number, of any length."""
    first = [name[:_MOST_CHARS] for name in islice(names, _MOST_LISTED + 1)]
    return ", ".join(first[:_MOST_LISTED]) + (", ..." if len(first) > _MOST_LISTED else "")


def flag(settings: Mapping[str, Any], key: str, default: bool) -> bool:
    """Read a boolean of `config.json`.

    Raises:
        HeadsError: The value is neither true nor false.
    """
    value = settings.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_setting(key)
    return value


def bad_setting(key: str) -> HeadsError:
    """Return the error for an invalid value of `config.json`."""
    return HeadsError(f"config.json: {key} makes no sense.", "Download the heads again.")


def check_sizes(
    hidden: int, vocabulary: int, config: ModelConfig, padding: int = MOST_PADDING
) -> None:
    """Check that heads have the target's sizes.

    Args:
        hidden: Width of the heads.
        vocabulary: Size of their draft vocabulary.
        config: Sizes of the target.
        padding: Allowed difference of the vocabularies.

    Raises:
        HeadsError: The heads are for another target.
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
