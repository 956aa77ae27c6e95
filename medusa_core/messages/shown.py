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
