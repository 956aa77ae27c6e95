"""The figures under an answer, with their definitions."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.messages import GenerationDone, StopReason

UNKNOWN = "—"
NUM_FIGURES = 5  # at most
_HARDLY_DRAFTED = 1.02  # tokens per step
LEAST_STEP_S = 0.002  # what lies around a shorter step takes as long as itself
TOKENS_PER_STEP = QT_TRANSLATE_NOOP(
    "Figures",
    "Mean acceptance length τ: tokens from decode steps ÷ decode steps, the token that the model "
    "adds itself in each step included. Plain decoding has 1.",
)

STOP_WORDS = {
    StopReason.EOS: QT_TRANSLATE_NOOP("Figures", "end of answer"),
    StopReason.STOP_STRING: QT_TRANSLATE_NOOP("Figures", "stop string"),
    StopReason.MAX_TOKENS: QT_TRANSLATE_NOOP("Figures", "token limit"),
    StopReason.CONTEXT: QT_TRANSLATE_NOOP("Figures", "context full"),
    StopReason.REPETITION: QT_TRANSLATE_NOOP("Figures", "repeats itself"),
    StopReason.CANCELLED: QT_TRANSLATE_NOOP("Figures", "stopped"),
}

STOP_MEANINGS = {
    StopReason.EOS: QT_TRANSLATE_NOOP("Figures", "The model ended the answer itself."),
    StopReason.STOP_STRING: QT_TRANSLATE_NOOP(
        "Figures", "The answer reached a text at which it was asked to stop."
    ),
    StopReason.MAX_TOKENS: QT_TRANSLATE_NOOP(
        "Figures", "The answer reached the largest number of tokens it may have."
    ),
    StopReason.CONTEXT: QT_TRANSLATE_NOOP(
        "Figures", "Conversation and answer fill the model's context."
    ),
    StopReason.REPETITION: QT_TRANSLATE_NOOP(
        "Figures", "The answer only repeated itself, so it was ended."
    ),
    StopReason.CANCELLED: QT_TRANSLATE_NOOP("Figures", "You stopped the answer."),
}

# The model ended its round, but not the answer.
_STOPPED_AT_CALL = (
    QT_TRANSLATE_NOOP("Figures", "stopped at a tool call"),
    QT_TRANSLATE_NOOP(
        "Figures", "The answer stopped before the model read the results of its tool calls."
    ),
)

# What is said in place of an answer without a word.
_EMPTY = {
    StopReason.EOS: QT_TRANSLATE_NOOP(
        "Figures",
        "The model ended its answer without a word. Regenerate asks again; or ask in other words.",
    ),
    StopReason.STOP_STRING: QT_TRANSLATE_NOOP(
        "Figures",
        "The answer began with a stop string, so nothing of it is left. Stop strings are under "
        "Settings of this chat (Ctrl+Shift+P).",
    ),
    StopReason.MAX_TOKENS: QT_TRANSLATE_NOOP(
        "Figures",
        "The token limit was reached before the first word. Continue goes on; Longest answer under "
        "Settings of this chat (Ctrl+Shift+P) is the limit.",
    ),
    StopReason.CONTEXT: QT_TRANSLATE_NOOP(
        "Figures",
        "The model's context was full before the first word. Continue goes on with the oldest "
        "messages left out; a new chat has all of the context.",
    ),
    StopReason.REPETITION: QT_TRANSLATE_NOOP(
        "Figures",
        "The model only repeated itself and wrote no word, so the answer was ended. Regenerate "
        "asks again.",
    ),
    StopReason.CANCELLED: QT_TRANSLATE_NOOP("Figures", "No text. Regenerate asks again."),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure.

    Attributes:
        name: Name for screen readers.
        text: The figure with its unit.
        meaning: Definition, shown as a tooltip.
    """

    name: str
    text: str
    meaning: str


def speed_up(done: GenerationDone) -> float | None:
    """Return the speed-up of an answer over plain decoding.

    Returns:
        Mean acceptance length × T(1) ÷ mean time of a step, where T(1) is the time of a plain step
        at this length, as it was measured when the answer ended. None where that isn't known or
        can't be true, where nothing was drafted, or where a step is too short for the comparison
        to mean anything.
    """
    return None if done.plain_step_s < LEAST_STEP_S else done.speed_up


def figures(done: GenerationDone, *, stops_at_call: bool = False) -> tuple[Figure, ...]:
    """Return the figures of an answer in display order.

    Args:
        done: Its last event, with the figures of all rounds.
        stops_at_call: Whether the model hasn't read the results of its last calls.
    """
    stop = stop_figure(done, stops_at_call=stops_at_call)
    if not done.token_ids and done.stop_reason is StopReason.CANCELLED and not done.is_remote:
        return (
            Figure(
                QCoreApplication.translate("Figures", "Stop reason"),
                QCoreApplication.translate("Figures", "Stopped before the first word"),
                QCoreApplication.translate("Figures", STOP_MEANINGS[StopReason.CANCELLED]),
            ),
        )
    if done.is_remote:
        return (*_remote_speed(done), *_remote_drafts(done), _first_token(done), stop)
    speed = QCoreApplication.translate("Figures", "{number} tokens/s").format(
        number=f"{Number(done.decode_tokens_per_s):,.0f}"
    )
    length = f"{Number(done.mean_acceptance_length):.2f}"
    mean = QCoreApplication.translate("Figures", "{number} tokens/step").format(number=length)
    with_prefill = QCoreApplication.translate("Figures", "With prefill: {number} tokens/s.").format(
        number=f"{Number(done.tokens_per_s):,.0f}"
    )
    meaning = QCoreApplication.translate(
        "Figures", "Tokens from decode steps ÷ seconds of decoding."
    )
    return (
        Figure(
            QCoreApplication.translate("Figures", "Speed"),
            speed if done.num_steps else UNKNOWN,
            f"{meaning} {with_prefill}" if done.token_ids else meaning,
        ),
        Figure(
            QCoreApplication.translate("Figures", "Tokens per step"),
            mean if done.num_steps else UNKNOWN,
            QCoreApplication.translate("Figures", TOKENS_PER_STEP),
        ),
        *_speed_up(done),
        _first_token(done),
        stop,
    )


def cut_figures() -> tuple[Figure, ...]:
    """Return the figures of an incomplete answer."""
    return (
        Figure(
            QCoreApplication.translate("Figures", "Stop reason"),
            QCoreApplication.translate("Figures", "interrupted"),
            QCoreApplication.translate(
                "Figures",
                "The program ended or the engine failed while this was written. What there was "
                "of it is kept; Continue goes on with it.",
            ),
        ),
    )


def _first_token(done: GenerationDone) -> Figure:
    meaning = QCoreApplication.translate(
        "Figures",
        "From the start of the request to the first token of the answer: {prompt} prompt tokens, "
        "of which {cached} were still in the cache.",
    ).format(
        prompt=f"{Number(done.num_prompt_tokens):,}", cached=f"{Number(done.num_cached_tokens):,}"
    )
    if not done.num_prompt_tokens:  # another machine needn't say
        meaning = QCoreApplication.translate(
            "Figures", "From the start of the request to the first word of the answer."
        )
    wait = QCoreApplication.translate("Figures", "{time} to first token").format(
        time=_seconds(done.time_to_first_token_s)
    )
    return Figure(QCoreApplication.translate("Figures", "Time to first token"), wait, meaning)


def stop_figure(done: GenerationDone, *, stops_at_call: bool) -> Figure:
    """Return the stop reason of an answer as a figure; see `figures`."""
    words, meaning = STOP_WORDS[done.stop_reason], STOP_MEANINGS[done.stop_reason]
    if stops_at_call:
        words, meaning = _STOPPED_AT_CALL
    return Figure(
        QCoreApplication.translate("Figures", "Stop reason"),
        QCoreApplication.translate("Figures", words),
        QCoreApplication.translate("Figures", meaning),
    )


def empty_words(done: GenerationDone) -> str:
    """Explain why an answer has no text and what the user can do."""
    return QCoreApplication.translate("Figures", _EMPTY[done.stop_reason])


def _remote_speed(done: GenerationDone) -> tuple[Figure, ...]:
    """Return the speed of a remote model if it reports its tokens."""
    if not done.decode_tokens_per_s:
        return ()
    speed = QCoreApplication.translate("Figures", "{number} tokens/s").format(
        number=f"{Number(done.decode_tokens_per_s):,.0f}"
    )
    meaning = QCoreApplication.translate(
        "Figures", "{tokens} tokens, as the other machine counts them, ÷ seconds of decoding."
    ).format(tokens=f"{Number(done.num_remote_tokens):,}")
    return (Figure(QCoreApplication.translate("Figures", "Speed"), speed, meaning),)


def _remote_drafts(done: GenerationDone) -> tuple[Figure, ...]:
    """Return the draft acceptance of a remote model if it reports that."""
    if not done.num_drafted:
        return ()
    share = f"{Number(done.num_draft_accepted / done.num_drafted):.0%}"
    text = QCoreApplication.translate("Figures", "{share} of drafts accepted").format(share=share)
    meaning = QCoreApplication.translate(
        "Figures", "The other machine drafted {drafted} tokens and accepted {accepted} of them."
    ).format(
        drafted=f"{Number(done.num_drafted):,}", accepted=f"{Number(done.num_draft_accepted):,}"
    )
    return (Figure(QCoreApplication.translate("Figures", "Drafts accepted"), text, meaning),)


def _speed_up(done: GenerationDone) -> tuple[Figure, ...]:
    """Return the speed-up over plain decoding, if it is reliable."""
    if done.num_plain_steps and done.mean_acceptance_length < _HARDLY_DRAFTED:
        return (_hardly_drafted(done),)
    factor = speed_up(done)
    if factor is None:
        return ()
    meaning = QCoreApplication.translate(
        "Figures",
        "τ × T(1) ÷ mean time of a step. T(1) is the time of a step of plain decoding at this "
        "length, measured in this answer or while the computer was as busy; else nothing is "
        "compared.",
    )
    words = (
        QCoreApplication.translate("Figures", "{factor}× plain")
        if factor >= 1
        else QCoreApplication.translate("Figures", "slower than plain ({factor}×)")
    )
    text = words.format(factor=f"{Number(factor):.2f}")
    if done.num_plain_steps:
        text += QCoreApplication.translate("Figures", "; drafting was paused")
        meaning += _paused_words(done)
    return (Figure(QCoreApplication.translate("Figures", "Speed-up"), text, meaning),)


def _hardly_drafted(done: GenerationDone) -> Figure:
    """Say that almost nothing was drafted, so there is no speed-up."""
    return Figure(
        QCoreApplication.translate("Figures", "Speed-up"),
        QCoreApplication.translate("Figures", "Drafts didn't pay here; written without them"),
        _paused_words(done).strip(),
    )


def _paused_words(done: GenerationDone) -> str:
    return QCoreApplication.translate(
        "Figures",
        " In {rested} of {all} steps nothing was drafted: drafting gained less than 5 % just "
        "then. It is tried again from time to time.",
    ).format(rested=f"{Number(done.num_plain_steps):,}", all=f"{Number(done.num_steps):,}")


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{Number(seconds):.1f} s"
