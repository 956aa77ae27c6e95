"""Texts about a plan: expected speed, and notes before loading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QCoreApplication

from app.models.subject import Subject
from app.widgets.sizes import speed
from medusa_core.api import Budget, Forecast, ModelConfig, Recommendation, rate_limiting_format
from medusa_core.messages import DrafterSpeed


def forecast_words(text: Forecast, has_heads: bool, draft_model: ModelConfig | None = None) -> str:
    """Describe the expected speed of a model, and its drafter."""
    if draft_model is not None:
        return QCoreApplication.translate(
            "Library",
            "About {0} tokens/s here without drafts (an estimate). How much faster the draft "
            "model makes it is measured once it is loaded.",
        ).format(speed(text.plain_tokens_per_s))
    if not has_heads:
        return QCoreApplication.translate(
            "Library",
            "About {0} tokens/s here (an estimate). No drafter chosen: it drafts from the chat's "
            "own text.",
        ).format(speed(text.plain_tokens_per_s))
    return QCoreApplication.translate(
        "Library", "About {0} tokens/s here with its heads, {1} without (an estimate)."
    ).format(speed(text.tokens_per_s), speed(text.plain_tokens_per_s))


def measured_words(speeds: Sequence[DrafterSpeed]) -> str:
    """Describe the measured speed of a model; empty if it wasn't measured."""
    # Plain decoding is what all are compared with.
    plain = [one.tokens_per_s for one in speeds if one.x_plain == 1]
    drafted = [one.tokens_per_s for one in speeds if one.x_plain != 1]
    if not plain or not drafted:
        return ""
    return QCoreApplication.translate(
        "Library", "{0} tokens/s here with drafts, {1} without (measured)."
    ).format(speed(max(drafted)), speed(plain[0]))


def estimate_failed_words(error: Exception) -> str:
    """Message about an unexpected error; its traceback is in the log."""
    return QCoreApplication.translate(
        "Library",
        "The speed can't be estimated: an unexpected error occurred ({0}). You can load the model "
        "all the same; the details are in the log (Help, Diagnostics).",
    ).format(f"{type(error).__name__}: {error}".removesuffix(": "))


def plan_notes(
    subject: Subject | None, choice: Recommendation | None, budget: Budget | None, cluster: str
) -> Iterator[str]:
    """Notes beside a plan, a line each.

    Args:
        subject: The model.
        choice: Weight format and context.
        budget: Memory of the device.
        cluster: Cluster that computes the layers, as HOST:PORT; empty for none.
    """
    if cluster:
        yield QCoreApplication.translate(
            "Library",
            "Its layers go to the machines at {0}. What is planned here is the rest: token "
            "vectors, the projection to the vocabulary, and heads.",
        ).format(cluster)
    config = None if subject is None else subject.config
    if config is None:
        return
    if config.is_multimodal:
        yield QCoreApplication.translate(
            "Library", "Its text part is loaded; pictures can't be shown to it here."
        )
    if choice is not None and budget is not None and _is_made_anew(config, choice, budget):
        yield QCoreApplication.translate(
            "Library",
            "On a graphics card its weights are requantized to nf4, which loses a little more: "
            "2 % more bits per byte than the file, measured on the demo model.",
        )


def _is_made_anew(config: ModelConfig, choice: Recommendation, budget: Budget) -> bool:
    """Whether the weights are requantized because the card has no kernels for their format."""
    is_saved = not config.holds_blocks or bool(config.stored.card)
    if budget.hardware.device == "cpu" or is_saved:
        return False
    return rate_limiting_format(choice.formats, config, budget).startswith("nf4")
