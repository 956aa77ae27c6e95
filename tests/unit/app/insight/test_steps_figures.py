"""The figures of an answer's steps."""

import numpy as np
import pytest

from app.insight.step_parts import part_words
from app.insight.steps_facts import describe_answer
from app.insight.steps_figures import StepFigures
from medusa_core.messages import TARGET, StepTimes, TokenSource
from tests.support.window.engine_events import LEGEND
from tests.support.window.traces import chain, made_track, trace


def test_figures_are_sums_of_the_traces() -> None:
    track, figures = made_track(3), StepFigures(LEGEND)
    figures.follow(track)
    track.add(trace(3, (0, 2), num_appended=1))
    figures.follow(track)
    figures.follow(track)
    assert figures.numbers.tolist() == [1, 2, 3]
    assert figures.tokens.tolist() == [3, 3, 1]
    assert figures.seconds.tolist() == pytest.approx([2.5e-4] * 3)
    assert figures.times.shape == (6, 3)
    assert figures.parts == (0, 1, 4, 5), "no layer was waited for"
    assert figures.times[1].tolist() == pytest.approx([2e-4] * 3)
    assert figures.context.tolist() == [16, 19, 20]
    assert figures.rows.tolist() == [len(track[index].token_ids) for index in (1, 2, 3)]
    assert figures.forms == [0, 0, 3]
    assert "Draft tokens by step: tree 3." in describe_answer(figures, None, None)
    rates = {rate.name: (rate.num_accepted, rate.num_steps) for rate in figures.rates()}
    assert rates == {"head 1": (3, 3), "head 2": (2, 3), "head 3": (0, 3)}
    track.add(trace(4, (0, 1, 3), num_appended=1))  # the answer ended inside the run
    cut = StepFigures(LEGEND)
    cut.follow(track)
    assert [rate.num_accepted for rate in cut.rates()] == [4, 2, 0]
    assert np.allclose(figures.speeds(), [6 / 5e-4, 7 / 7.5e-4, 4 / 5e-4])


def test_steps_are_counted_by_the_form_of_their_drafts() -> None:
    track, figures = made_track(1), StepFigures(LEGEND)
    bare = chain((0,), num_drafts=0)
    for step in (bare, chain(), chain(num_drafts=1), trace()):
        track.add(step)
    figures.follow(track)
    assert figures.forms == [1, 2, 1]
    assert "Draft tokens by step: tree 1, chain 2, nothing 1." in describe_answer(
        figures, None, None
    )
    plain, nothing = StepFigures(LEGEND), made_track(1)
    nothing.add(bare)
    plain.follow(nothing)
    assert "Draft tokens by step" not in describe_answer(plain, None, None)


def test_a_token_drafted_by_heads_and_suffix_counts_for_both() -> None:
    step = trace(1, (0, 1, 3))
    both, deeper = TokenSource("medusa+suffix", 1), TokenSource("suffix", 2)
    sources = [TARGET, *[TokenSource("medusa", source.head) for source in step.sources[1:]]]
    sources[1], sources[3] = both, deeper
    figures, track = StepFigures(LEGEND), made_track(0)
    track.add(step._replace(sources=tuple(sources)))
    track.add(trace(2, (0,))._replace(sources=tuple(sources)))
    sources[3] = TokenSource("medusa", 2)  # what it found then, a head guessed, too
    track.add(trace(3, (0, 1))._replace(sources=tuple(sources)))
    figures.follow(track)
    rates = {rate.name: (rate.num_accepted, rate.num_steps) for rate in figures.rates()}
    assert rates["head 1"] == (2, 3)
    assert rates["suffix"] == (2, 3), "its two tokens of one step count once"
    assert list(rates) == [*sorted(set(rates) - {"suffix"}), "suffix"]
    assert all(0 <= rate.share <= 1 for rate in figures.rates())


def test_figures_of_a_track_remain_when_its_first_steps_are_dropped() -> None:
    track, figures = made_track(3), StepFigures(LEGEND)
    figures.follow(track)
    for number in range(3, 6):
        track.add(trace(number))
        track.drop_first()
    figures.follow(track)
    assert figures.numbers.tolist() == [1, 2, 3, 4, 5]


def test_no_steps_have_no_figures() -> None:
    figures = StepFigures(LEGEND)
    assert figures.speeds().tolist() == []
    assert figures.rates() == ()


def test_waiting_is_a_component_of_its_own_and_verification_is_the_rest() -> None:
    figures, track = StepFigures(LEGEND), made_track(2)
    waited = StepTimes(0.01, 0.5, 0.02, 0.001, transfer_s=0.3, remote_s=0.1)
    track.add(trace(2)._replace(times=waited, step_s=0.54))
    figures.follow(track)
    assert figures.times[:, -1].tolist() == pytest.approx([0.01, 0.1, 0.3, 0.1, 0.02, 0.001])
    assert figures.parts == tuple(range(6))
    words = part_words(figures.times[:, -1])
    assert "transfer 300.00 ms" in words
    assert "other machines 100.00 ms" in words
    assert "transfer" not in part_words(figures.times[:, 0])
    assert waited._replace(transfer_s=0.6).parts[1] == 0, "on a card it may go on behind the pass"
