"""A token's card: everything that is known about how it came to be."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from app.insight.track import Track
from app.insight.words import micro, origin, percent, show_token
from app.markdown.legend import Legend
from medusa_core.messages import GIVEN, TARGET, RuleChoice, StepTrace, Verdict

_NUMBERS = {
    "margin": "lead over the next best",
    "probability": "chance after temperature and filters",
    "noise": "noise drawn at this place",
    "entropy": "entropy (nats)",
    "threshold": "needed to be accepted",
}
_ORDINALS = ("first", "second", "third")


class Line(NamedTuple):
    """A line of a card."""

    name: str
    text: str


def card_of(track: Track, token: int, legend: Legend) -> tuple[Line, ...]:
    """The lines of a token's card.

    Args:
        track: The answer.
        token: The token's place in it.
        legend: Says who drafted it.

    Returns:
        The first line is the token itself; no lines where nothing is known of it.
    """
    index = track.step_of(token)
    if index is None:
        if token < track.num_given:
            return (Line("Token", "given: it was decided before"),)
        is_lost = token < track.num_tokens
        return (Line("Token", "its step left the buffer: newer ones needed the room"),) * is_lost
    step = track[index]
    place = token - track.first_token(index)
    verdict = step.verdicts[place]
    is_accepted = place + 1 < len(step.path)
    number = f"{step.step:,}" if step.step else "0 (reading the prompt)"
    return (
        Line("Token", f"{show_token(verdict.choice.text, verdict.choice.token_id)}"),
        Line("Id", f"{verdict.choice.token_id}"),
        *_drafted(step, place, is_accepted, legend),
        Line("Step", f"{number}, {_ordinal(place)} of {step.num_kept}"),
        Line("Model's probability", percent(verdict.choice.probability)),
        Line("Instead", _alternatives(verdict)),
        Line("Rule", _rule(legend.rule(track.rule), verdict)),
        *_lead(legend.rule(track.rule), verdict),
        *(Line(_NUMBERS.get(name, name).capitalize(), f"{x:.3g}") for name, x in verdict.numbers),
        Line("Time of the step", _times(step)),
    )


def as_html(lines: Iterable[Line]) -> str:
    """A card for a tooltip: what tokens hold is text, never markup."""
    rows = "".join(
        f"<tr><td style='padding-right:8px; white-space:nowrap'>{escape(name)}</td>"
        f"<td style='white-space:pre'><span style='font-weight:600'>{escape(text)}</span></td></tr>"
        for name, text in lines
    )
    return f"<table>{rows}</table>"


def as_text(lines: Iterable[Line]) -> str:
    """A card to be read aloud."""
    return "; ".join(f"{name}: {text}" for name, text in lines)


def _drafted(step: StepTrace, place: int, is_accepted: bool, legend: Legend) -> tuple[Line, ...]:
    if not is_accepted:
        own = "the model itself" + (" (bonus token)" if step.step else "")
        return (Line("From", own),)
    node = step.nodes[step.path[place + 1]]
    assert node.source not in (TARGET, GIVEN)
    rank = f"{_ordinal(node.rank)} guess, {percent(node.probability)}"
    known = (Line("Its guess", rank),) if node.probability is not None else ()
    return (Line("From", f"{origin(node.source, legend)}, accepted"), *known)


def _ordinal(place: int) -> str:
    return _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"


def _lead(rule: RuleChoice, verdict: Verdict) -> tuple[Line, ...]:
    """What a rule without chance decided by, where its own margin isn't told: the probabilities."""
    choice, others = verdict.choice.probability, [o.probability for o in verdict.alternatives]
    if rule.draws or verdict.numbers or not others or not 0 < max(others) <= choice:
        return ()
    return (Line("Lead over the next best", f"{choice / max(others):.3g} times as likely"),)


def _rule(rule: RuleChoice, verdict: Verdict) -> str:
    told, choice = f"{rule.label}: {rule.explanation}", verdict.choice
    is_likelier = any(other.probability > choice.probability for other in verdict.alternatives)
    if not rule.draws and is_likelier:  # its margin is told where penalties change scores
        return f"{told} Likelier ones are not allowed here."
    return told


def _alternatives(verdict: Verdict) -> str:
    return "   ".join(
        f"{show_token(other.text, other.token_id)} {percent(other.probability)}"
        for other in verdict.alternatives
    )


def _times(step: StepTrace) -> str:
    parts = (
        ("draft", step.times.draft_s),
        ("verify", step.times.verify_s),
        ("accept", step.times.accept_s),
        ("commit", step.times.commit_s),
    )
    return f"{micro(step.step_s)}: " + ", ".join(f"{name} {micro(s)}" for name, s in parts)
