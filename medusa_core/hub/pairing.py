"""Which heads fit which model, and why the others don't. From sizes alone."""

from __future__ import annotations

from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig

# Vocabularies are padded to rounder numbers: 32000, 32001 and 32064 are one.
_MOST_PADDING = 128


def misfit(config: ModelConfig, heads: HeadsShape) -> str:
    """Why heads can't be used with a model, for people; empty if they can.

    That the sizes agree doesn't mean that they were trained for it: then few drafts are accepted,
    and the text is right all the same.
    """
    if not heads.num_heads:
        return "these are no Medusa heads"
    if heads.hidden_size and heads.hidden_size != config.hidden_size:
        return f"hidden size {heads.hidden_size:,} ≠ {config.hidden_size:,}"
    if heads.columns and not heads.is_reduced:
        if abs(heads.columns - config.vocab_size) > _MOST_PADDING:
            return f"vocabulary {heads.columns:,} ≠ {config.vocab_size:,}"
    elif heads.columns > config.vocab_size:
        return f"vocabulary {heads.columns:,} > {config.vocab_size:,}"
    return ""
