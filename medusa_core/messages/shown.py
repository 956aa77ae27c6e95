"""What of an answer can be read while it is written."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.messages.events import StepDone


def shown_text(steps: Sequence[StepDone]) -> str:
    """The text that may be shown after these steps of an answer, from its first on."""
    if not steps:
        return ""
    whole = b"".join(piece for step in steps for piece in step.pieces)
    return whole[: steps[-1].num_visible_bytes].decode("utf-8", "ignore")


def shown_tokens(steps: Sequence[StepDone]) -> tuple[int, ...]:
    """The tokens of the text that may be shown after these steps; none of another machine's."""
    token_ids: list[int] = []
    num_left = steps[-1].num_visible_bytes if steps else 0
    for step in steps:
        if not step.token_ids:
            return ()
        for token_id, piece in zip(step.token_ids, step.pieces, strict=True):
            num_left -= len(piece)
            if num_left < 0:
                return tuple(token_ids)
            token_ids.append(token_id)
    return tuple(token_ids)
