"""Remarks below an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.i18n.engine_texts import error_text
from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.legend import Legend
from medusa_core.chats.conversation import Turn
from medusa_core.messages import GenerationDone, StopReason

if TYPE_CHECKING:
    from medusa_core.api import Retrieved

CONTEXT = QT_TRANSLATE_NOOP(
    "Chat",
    "The answer ends here because the model's context is full. Continue goes on with it; the "
    "oldest messages are then left out, unless you chose otherwise under Context.",
)
MAX_TOKENS = QT_TRANSLATE_NOOP(
    "Chat",
    "The answer ends here because it reached its token limit. Continue goes on with it; Longest "
    "answer under Settings of this chat (Ctrl+Shift+P) is the limit.",
)
REPETITION = QT_TRANSLATE_NOOP(
    "Chat",
    "The model repeats itself, so the answer was ended. Continue goes on with it. Regenerate gets "
    "another answer; a repetition penalty of 1.1 helps small models (Settings of this chat, "
    "Ctrl+Shift+P).",
)
SAME = QT_TRANSLATE_NOOP(
    "Chat",
    "The same text again: {0} always takes the likeliest token. For another answer choose {1} "
    "under Settings of this chat (Ctrl+Shift+P).",
)
ROUNDS = QT_TRANSLATE_NOOP(
    "Chat",
    "After {0} rounds of calls the model was offered no more tools, and answered from the results "
    "so far. Ask it to go on if something is missing.",
)
_ENDS = {
    StopReason.CONTEXT: CONTEXT,
    StopReason.MAX_TOKENS: MAX_TOKENS,
    StopReason.REPETITION: REPETITION,
}


def remarks_on(
    turn: Turn, done: GenerationDone, legend: Legend, num_rounds: int = 1
) -> Iterator[str]:
    """Return the remarks in the window's language.

    Args:
        turn: The prompt with all its answers.
        done: Last event of the newest answer.
        legend: Names of the sampling rules.
        num_rounds: Number of the answer's rounds since the user asked.
    """
    from medusa_core.api import MOST_ROUNDS

    if num_rounds > MOST_ROUNDS:
        yield QCoreApplication.translate("Chat", ROUNDS).format(MOST_ROUNDS)
    # An answer without words says itself why it has none.
    if turn.answer.content.answer.strip() and done.stop_reason in _ENDS:
        yield QCoreApplication.translate("Chat", _ENDS[done.stop_reason])
    rule = legend.rule(done.settings.rule)
    if rule.draws:
        return
    drawing = next((setting_text(other.label) for other in legend.rules if other.draws), "")
    others = (answer for answer in turn.prompt.answers if answer is not turn.answer)
    if turn.answer.given is None and any(one.text == done.text for one in others):
        yield QCoreApplication.translate("Chat", SAME).format(setting_text(rule.label), drawing)


def remarks_on_passages(result: Retrieved) -> Iterator[str]:
    """Return the remarks on a search of the documents in the window's language."""
    if result.problem is not None:
        words = QCoreApplication.translate(
            "Chat", "The documents were searched by words alone: {0}"
        )
        yield words.format(error_text(result.problem))
    if result.are_removed:
        yield QCoreApplication.translate(
            "Chat", "The documents of this chat were removed, so the model read none of them."
        )
    elif result.is_empty:
        yield QCoreApplication.translate(
            "Chat", "No passage of the documents was read for this message."
        )
