"""Card of a token: how it was drafted and accepted."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.step_parts import part_words
from app.insight.track import Track
from app.insight.words import micro, origin, percent, show_token
from app.theme.legend import Legend
from medusa_core.messages import GIVEN, TARGET, RuleChoice, StepTrace, Verdict

_ORDINALS = (
    QT_TRANSLATE_NOOP("Insight", "first"),
    QT_TRANSLATE_NOOP("Insight", "second"),
    QT_TRANSLATE_NOOP("Insight", "third"),
    QT_TRANSLATE_NOOP("Insight", "{0}th"),
)


class CardLine(NamedTuple):
    """A line of a card."""

    name: str
    text: str


def card_of(track: Track, token: int, legend: Legend) -> tuple[CardLine, ...]:
    """Return the lines of a token's card.

    Args:
        track: The answer.
        token: Index of the token in it.
        legend: Names of drafters.

    Returns:
        Lines, the token itself first; none if nothing is known about it.
    """
    index = track.step_of(token)
    if index is None:
        if token < track.num_given:
            return (
                CardLine(
                    QCoreApplication.translate("Insight", "Token"),
                    QCoreApplication.translate("Insight", "given: it was decided before"),
                ),
            )
        is_lost = token < track.num_tokens
        return (
            CardLine(
                QCoreApplication.translate("Insight", "Token"),
                QCoreApplication.translate(
                    "Insight", "its step left the buffer: newer ones needed the room"
                ),
            ),
        ) * is_lost
    step = track[index]
    place = token - track.first_token(index)
    verdict, rule = step.verdicts[place], legend.rule(track.rule)
    is_accepted = place + 1 < len(step.path)
    number = (
        f"{Number(step.step):,}"
        if step.step
        else QCoreApplication.translate("Insight", "0 (reading the prompt)")
    )
    return (
        CardLine(
            QCoreApplication.translate("Insight", "Token"),
            show_token(verdict.choice.text, verdict.choice.token_id, legend.specials),
        ),
        CardLine(QCoreApplication.translate("Insight", "Id"), f"{verdict.choice.token_id}"),
        *_drafted(step, place, is_accepted, legend),
        CardLine(
            QCoreApplication.translate("Insight", "Step"),
            QCoreApplication.translate("Insight", "{0}, {1} of {2}").format(
                number, _ordinal(place), step.num_appended
            ),
        ),
        CardLine(
            QCoreApplication.translate("Insight", "Model's probability"),
            percent(verdict.choice.probability),
        ),
        CardLine(QCoreApplication.translate("Insight", "Instead"), _alternatives(verdict, legend)),
        CardLine(QCoreApplication.translate("Insight", "Rule"), _rule(rule, verdict)),
        *_lead(rule, verdict),
        *(CardLine(_number(rule, name), f"{Number(x):.3g}") for name, x in verdict.numbers),
        CardLine(QCoreApplication.translate("Insight", "Time of the step"), _times(step)),
    )


def as_html(lines: Iterable[CardLine]) -> str:
    """Format a card as a tooltip; tokens are escaped."""
    rows = "".join(
        f"<tr><td style='padding-right:8px; white-space:nowrap'>{escape(name)}</td>"
        f"<td style='white-space:pre'><span style='font-weight:600'>{escape(text)}</span></td></tr>"
        for name, text in lines
    )
    return f"<table>{rows}</table>"


def as_text(lines: Iterable[CardLine]) -> str:
    """Format a card for screen readers."""
    return "; ".join(f"{name}: {text}" for name, text in lines)


def _drafted(
    step: StepTrace, place: int, is_accepted: bool, legend: Legend
) -> tuple[CardLine, ...]:
    if not is_accepted:
        own = QCoreApplication.translate("Insight", "the model itself") + (
            QCoreApplication.translate("Insight", " (bonus token)") if step.step else ""
        )
        return (
            CardLine(QCoreApplication.translate("Insight", "From"), own),
            *_offered(step, place),
        )
    node = step.nodes[step.path[place + 1]]
    assert node.source not in (TARGET, GIVEN)
    rank = QCoreApplication.translate("Insight", "{0} draft token, {1}").format(
        _ordinal(node.rank), percent(node.probability)
    )
    known = (
        (CardLine(QCoreApplication.translate("Insight", "Its draft token"), rank),)
        if node.probability is not None
        else ()
    )
    return (
        CardLine(
            QCoreApplication.translate("Insight", "From"),
            QCoreApplication.translate("Insight", "{0}, accepted").format(
                origin(node.source, legend)
            ),
        ),
        *known,
    )


def _offered(step: StepTrace, place: int) -> tuple[CardLine, ...]:
    """Say that a drafter had drafted the chosen token, but it wasn't verified."""
    chosen = (step.path[place], step.choice_ids[place])
    found = (g.probability for g in step.pruned if (g.node, g.token_id) == chosen)
    return tuple(
        CardLine(
            QCoreApplication.translate("Insight", "Was offered"),
            QCoreApplication.translate("Insight", "{0}, but not verified").format(percent(chance)),
        )
        for chance in found
    )


def _ordinal(place: int) -> str:
    word = _ORDINALS[min(place, len(_ORDINALS) - 1)]
    return QCoreApplication.translate("Insight", word).format(place + 1)


def _number(rule: RuleChoice, name: str) -> str:
    shown_text = setting_text(rule.number_label(name))
    return shown_text[:1].upper() + shown_text[1:]


def _lead(rule: RuleChoice, verdict: Verdict) -> tuple[CardLine, ...]:
    """Return the probabilities that a deterministic rule compared, if its margin isn't recorded."""
    choice, others = verdict.choice.probability, [o.probability for o in verdict.alternatives]
    if rule.draws or verdict.numbers or not others or not 0 < max(others) <= choice:
        return ()
    return (
        CardLine(
            QCoreApplication.translate("Insight", "Lead over the next best"),
            QCoreApplication.translate("Insight", "{0:.3g} times as likely").format(
                Number(choice / max(others))
            ),
        ),
    )


def _rule(rule: RuleChoice, verdict: Verdict) -> str:
    shown_text, choice = (
        f"{setting_text(rule.label)}: {setting_text(rule.explanation)}",
        verdict.choice,
    )
    is_likelier = any(other.probability > choice.probability for other in verdict.alternatives)
    if (
        rule.is_exact and not rule.draws and is_likelier
    ):  # its margin is told where penalties change scores
        return QCoreApplication.translate(
            "Insight", "{0} Likelier ones are not allowed here."
        ).format(shown_text)
    return shown_text


def _alternatives(verdict: Verdict, legend: Legend) -> str:
    return "   ".join(
        f"{show_token(other.text, other.token_id, legend.specials)} {percent(other.probability)}"
        for other in verdict.alternatives
    )


def _times(step: StepTrace) -> str:
    parts = part_words(step.times.parts)
    return f"{micro(step.step_s)}: {parts}"
