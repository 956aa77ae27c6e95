"""Whether one model can draft for another: their tokens must be the same."""

from __future__ import annotations

from medusa_core.errors import RequestError
from medusa_core.models.text.tokenizer import Tokenizer


def check_same_vocabulary(ours: Tokenizer, theirs: Tokenizer, name: str) -> None:
    """Refuse a draft model whose tokens mean something else.

    Args:
        ours: The target's tokens.
        theirs: The draft model's.
        name: Of the draft model.

    Raises:
        RequestError: They differ; the message names the first that does.
    """
    alike = range(min(ours.vocab_size, theirs.vocab_size))
    differs = next((i for i in alike if ours.bytes_of(i) != theirs.bytes_of(i)), None)
    if differs is None and ours.vocab_size == theirs.vocab_size:
        return
    what = f"token {differs} is another"
    if differs is None:
        what = f"it has {theirs.vocab_size} tokens, not {ours.vocab_size}"
    raise RequestError(
        f"{name} can't draft for this model: {what}.",
        "Choose a smaller model of the same family, which has the same tokenizer.",
    )
