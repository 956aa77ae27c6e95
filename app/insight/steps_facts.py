"""Texts with the figures of an answer's curves; no Qt."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from app.chat.messages.figures import speed_up
from app.i18n.numbers import Number
from app.insight.forms import form_counts
from app.insight.step_parts import part_words
from app.insight.steps_figures import StepFigures
from app.insight.words import micro
from medusa_core.messages import GenerationDone, ModelLoaded

MIB = 2**20


class ModelMemory(NamedTuple):
    """Memory of a model, in MiB.

    Attributes:
        per_token: KV cache of one token.
        room: Allocated KV cache.
        states: States of recurrent layers.
        weights: Weights of the model and its heads.
    """

    per_token: float
    room: float
    states: float
    weights: float


def memory_of(loaded: ModelLoaded | None) -> ModelMemory | None:
    """Return the memory of the loaded model; None if none is loaded here."""
    if loaded is None or loaded.is_remote:
        return None
    plan = loaded.plan
    room, states = (plan.kv_bytes - plan.state_bytes) / MIB, plan.state_bytes / MIB
    weights = (plan.weights_bytes + plan.heads_bytes) / MIB
    return ModelMemory(room / max(1, plan.context_tokens), room, states, weights)


def describe_answer(
    figures: StepFigures,
    done: GenerationDone | None,
    loaded: ModelLoaded | None,
) -> str:
    """Describe the figures of a whole answer.

    Args:
        figures: Figures of at least one step.
        done: The answer's last event; None while it is written.
        loaded: Its model; None if another one is loaded.
    """
    tau, seconds = float(figures.tokens.mean()), float(figures.seconds.mean())
    around = max(0.0, seconds - float(figures.times.sum(axis=0).mean()))
    times = QCoreApplication.translate("Insight", "{0}, {1} of it outside these parts").format(
        micro(seconds), micro(around)
    )
    text = [
        QCoreApplication.translate(
            "Insight", "τ {0:.2f} tokens/step over {1:,} steps; a step takes {2}."
        ).format(Number(tau), Number(len(figures)), times)
    ]
    if any(figures.forms[1:]):
        text.append(form_counts(figures.forms))
    factor = None if done is None else speed_up(done)  # as under the answer
    if done is not None and factor is not None:
        text.append(
            QCoreApplication.translate(
                "Insight", "{0:.2f}× plain decoding, whose steps take {1}."
            ).format(Number(factor), micro(done.plain_step_s))
        )
    if done is not None and done.num_reread_tokens:
        text.append(
            QCoreApplication.translate(
                "Insight",
                "{0:,} prompt tokens were read again: no recurrent state was saved for their end.",
            ).format(Number(done.num_reread_tokens))
        )
    memory = memory_of(loaded)
    if memory is not None and loaded is not None:
        used = int(figures.context[-1])
        text.append(
            QCoreApplication.translate(
                "Insight",
                "Cache: {0:,} of {1:,} tokens, {2:,.1f} of {3:,.1f} MiB. "
                "Weights and heads: {4:,.0f} MiB.",
            ).format(
                *map(Number, (used, loaded.context_tokens)),
                *map(Number, (used * memory.per_token, memory.room, memory.weights)),
            )
        )
    if memory is not None and memory.states:
        text.append(
            QCoreApplication.translate(
                "Insight", "States: {0:,.1f} MiB, however long the text is."
            ).format(Number(memory.states))
        )
    return " ".join(text)


def describe_step(
    figures: StepFigures, at: int, memory: ModelMemory | None
) -> tuple[str, str, str, str]:
    """Describe the tokens, times, speed and memory of a step.

    Args:
        figures: Figures of the answer.
        at: Index of the step.
        memory: Memory of the model; None if unknown.
    """
    step = QCoreApplication.translate("Insight", "step {0:,}").format(
        Number(int(figures.numbers[at]))
    )
    used = (
        QCoreApplication.translate("Insight", "not known")
        if memory is None
        else f"{Number(figures.context[at] * memory.per_token):.2f}"
    )
    return (
        QCoreApplication.translate("Insight", "{0}: {1}, {2} of them accepted").format(
            step, int(figures.tokens[at]), int(figures.accepted[at])
        ),
        f"{step}: {part_words(figures.times[:, at])}",
        f"{step}: {Number(figures.speeds()[at]):,.0f}",
        f"{step}: {used}",
    )
