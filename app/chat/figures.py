"""The figures under an answer, each with the words that define it."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.messages import GenerationDone, StopReason

UNKNOWN = "—"
NUM_FIGURES = 5  # at most
LEAST_STEP_S = 0.002  # what lies around a shorter step takes as long as itself
TOKENS_PER_STEP = (
    "Mean acceptance length τ: tokens from decode steps ÷ decode steps, "
    "the token that the model adds itself in each step included. Plain decoding has 1."
)

STOP_WORDS = {
    StopReason.EOS: "end of answer",
    StopReason.STOP_STRING: "stop string",
    StopReason.MAX_TOKENS: "token limit",
    StopReason.CONTEXT: "context full",
    StopReason.CANCELLED: "stopped",
}

STOP_MEANINGS = {
    StopReason.EOS: "The model ended the answer itself.",
    StopReason.STOP_STRING: "The answer reached a text at which it was asked to stop.",
    StopReason.MAX_TOKENS: "The answer reached the largest number of tokens it may have.",
    StopReason.CONTEXT: "Conversation and answer fill the model's context.",
    StopReason.CANCELLED: "You stopped the answer.",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure to show.

    Attributes:
        name: What it is called, for those who can't see where it stands.
        text: The figure with its unit.
        meaning: Its definition.
    """

    name: str
    text: str
    meaning: str


def speed_up(done: GenerationDone) -> float | None:
    """How many times faster than plain decoding an answer was.

    Returns:
        Mean acceptance length × T(1) ÷ mean time of a step, where T(1) is the time of a plain step
        at this length, as it was measured when the answer ended. None where that isn't known, where
        nothing was drafted, or where a step is too short for the comparison to mean anything.
    """
    if done.plain_step_s < LEAST_STEP_S or not done.num_steps or done.decode_s <= 0:
        return None
    return done.mean_acceptance_length * done.plain_step_s / (done.decode_s / done.num_steps)


def figures(done: GenerationDone) -> tuple[Figure, ...]:
    """What is said under an answer, in order."""
    return (
        Figure(
            "Speed",
            f"{done.decode_tokens_per_s:,.0f} tokens/s" if done.num_steps else UNKNOWN,
            "Tokens from decode steps ÷ seconds of decoding. "
            f"With prefill: {done.tokens_per_s:,.0f} tokens/s."
            if done.token_ids
            else "Tokens from decode steps ÷ seconds of decoding.",
        ),
        Figure(
            "Tokens per step",
            f"{done.mean_acceptance_length:.2f} tokens/step" if done.num_steps else UNKNOWN,
            TOKENS_PER_STEP,
        ),
        *_speed_up(done),
        Figure(
            "Time to first token",
            f"{_seconds(done.time_to_first_token_s)} to first token",
            "From the start of the request to the first token of the answer: "
            f"{done.num_prompt_tokens:,} prompt tokens, of which {done.num_cached_tokens:,} "
            "were still in the cache.",
        ),
        Figure("Stop reason", STOP_WORDS[done.stop_reason], STOP_MEANINGS[done.stop_reason]),
    )


def _speed_up(done: GenerationDone) -> tuple[Figure, ...]:
    """The comparison with plain decoding, where there is one that can be believed."""
    factor = speed_up(done)
    if factor is None:
        return ()
    return (
        Figure(
            "Speed-up",
            f"{factor:.2f}× plain" + (" (drafts rested)" if done.num_rested else ""),
            "τ × T(1) ÷ mean time of a step. T(1) is the time of a step of plain decoding at this "
            "length, measured on this machine." + _rested(done),
        ),
    )


def _rested(done: GenerationDone) -> str:
    if not done.num_rested:
        return ""
    return (
        f" In {done.num_rested:,} of {done.num_steps:,} steps nothing was drafted: "
        "drafting gained less than 5 % just then. It is tried again from time to time."
    )


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
