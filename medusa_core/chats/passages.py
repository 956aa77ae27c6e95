"""Passages of documents in the text of a prompt, and the numbers by which answers cite them."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.chats.attachments.attachment import fenced
from medusa_core.messages import PassagePart

_INTRODUCTION = "Passages from documents:"
# After the question rather than in the system prompt: small models follow the nearest instruction,
# and the cached beginning of conversations stays the same. Before the question, Qwen2.5 1.5B cited
# in one answer of three, after it in most; without “Question:” it cited in fewer, and it copies a
# whole sentence that is given as an example. “End every sentence of your answer with the number …”
# and a list of all numbers helped on Python's FAQ (cited in 15 of 18 answers instead of 11), but
# not on the FAQs of other programs (16 of 20 instead of 19).
_INSTRUCTION = (
    "Answer in full sentences, from the passages above. Cite the passage of each sentence by its"
    " number in square brackets, as in [{}]. If they don't say it, say so."
)


def source_of(passage: PassagePart) -> str:
    """Return document and place in one line."""
    parts = (" ".join(part.split()) for part in (passage.document, passage.place))
    return ", ".join(part for part in parts if part)


def quote_passages(text: str, passages: Sequence[PassagePart]) -> str:
    """Return a prompt with its passages, each in a fenced block under its number.

    Args:
        text: Text of the prompt with its attachments.
        passages: Passages that the model reads before it.
    """
    if not passages:
        return text
    blocks = [f"[{one.number}] {source_of(one)}\n{fenced(one.text)}" for one in passages]
    instruction = _INSTRUCTION.format(passages[0].number)
    question = [f"Question: {text}"] if text else []
    return "\n\n".join([_INTRODUCTION, *blocks, *question, instruction])
