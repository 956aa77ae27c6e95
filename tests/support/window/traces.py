"""Traces made by hand, and recorded ones."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from app.insight.layout import layout_of_step
from app.insight.steps_figures import StepFigures
from app.insight.token_card import card_of
from app.insight.trace_files import track_of
from app.insight.track import Track
from medusa_core.api import read_trace
from medusa_core.messages import (
    TARGET,
    DroppedToken,
    Odds,
    StepTrace,
    TokenSource,
    offers_with,
)
from tests.support.chats.made_traces import done_after as done_after
from tests.support.chats.made_traces import trace as trace
from tests.support.window.engine_events import LEGEND


def chain(path: Sequence[int] = (0, 1), drafter: str = "medusa", num_drafts: int = 3) -> StepTrace:
    """A step over a chain; its tokens are the nodes' indices, 7 is the bonus."""
    depths = range(num_drafts + 1)
    return trace(1, path)._replace(
        token_ids=tuple(depths),
        parents=tuple(depth - 1 for depth in depths),
        ranks=(-1, *(0 for _ in depths[1:])),
        sources=(TARGET, *(TokenSource(drafter, depth) for depth in depths[1:])),
        odds=Odds(array("f", [0.25]).tobytes(), (0,) * num_drafts),
    )


def with_pruned(step: StepTrace, *pruned: DroppedToken) -> StepTrace:
    """Return the step with pruned candidates beside its tree."""
    chances = [node.probability for node in step.nodes[1:]]
    return step._replace(offers=offers_with(step.parents, step.token_ids, chances, pruned))


def made_track(num_steps: int, num_given: int = 0) -> Track:
    """An answer of such steps."""
    track = Track("r", "Fake", "greedy", num_given)
    for number in range(num_steps):
        track.add(trace(number))
    return track


def named(step: StepTrace, request_id: str) -> StepTrace:
    """Return the step under another answer's id."""
    return step._replace(request_id=request_id)


def told_by(track: Track) -> str:
    """Return all that panels show of an answer: trees, cards and curves."""
    figures = StepFigures(LEGEND)
    figures.follow(track)
    trees = [layout_of_step(track[index]) for index in range(len(track))]
    cards = [card_of(track, token, LEGEND) for token in range(track.num_tokens)]
    curves = (figures.numbers, figures.tokens, figures.accepted, figures.context, figures.times)
    return repr((trees, cards, [curve.tolist() for curve in curves], figures.rates()))


def shown_of(path: str) -> str:
    """Return the same for a trace file, opened as by the window."""
    return told_by(track_of(read_trace(Path(path))))
