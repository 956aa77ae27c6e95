"""The figures under an answer and in the strip, by hand-made steps."""

from dataclasses import replace

import pytest

from app.chat.figures import NUM_FIGURES, STOP_MEANINGS, STOP_WORDS, figures, speed_up
from app.chat.strip_painting import DEPTHS_MEANING, HEADS_MEANING, HeadBars
from app.chat.tally import HeadTally, StepTally
from app.markdown.tokens import LOOKUP
from app.theme.appearance import Appearance
from medusa_core.messages import (
    TARGET,
    Calibrated,
    ChatMessage,
    Generate,
    GenerateSettings,
    Role,
    StopReason,
    TokenSource,
)
from tests.app.fakes import done_of, steps_of, words

REQUEST = Generate("s", "r", (ChatMessage(Role.USER, "hi"),))
COSTS = Calibrated("s", "c", ((1, 0.0018), (8, 0.0025)), 0.002, 8)


def answer_of(text: str, accept: tuple[int, ...], **settings: str):
    request = replace(REQUEST, settings=GenerateSettings(**settings))
    steps = tuple(steps_of(request, words(text), accept))
    return steps, done_of(request, steps, StopReason.EOS)


def test_speed_up_is_acceptance_length_times_plain_step_over_mean_step() -> None:
    # After the prefill's token: two steps of three tokens each, 2.5 ms a step.
    _, done = answer_of("a b c d e f g", (2,))
    assert done.mean_acceptance_length == 3
    assert speed_up(done, COSTS) == pytest.approx(3 * 0.002 / 0.0025)


def test_speed_up_is_unknown_before_calibration_and_without_a_decode_step() -> None:
    _, done = answer_of("a b c", (2,))
    assert speed_up(done, None) is None
    _, single = answer_of("a", (2,))
    assert speed_up(single, COSTS) is None


def test_every_figure_is_shown_with_its_definition() -> None:
    _, done = answer_of("a b c d e f g", (2,))
    shown = figures(done, COSTS)
    assert len(shown) == NUM_FIGURES
    assert [figure.text for figure in shown] == [
        "1,200 tokens/s",
        "3.00 tokens/step",
        "2.40× plain",
        "12 ms to first token",
        "end of answer",
    ]
    assert all(len(figure.meaning) > 20 for figure in shown)


def test_unknown_figures_are_dashes() -> None:
    _, done = answer_of("a", (2,))
    assert [figure.text for figure in figures(done, None)][:3] == ["—", "—", "—× plain"]


def test_an_answer_without_a_token_still_has_figures() -> None:
    done = done_of(REQUEST, (), StopReason.CANCELLED)
    assert figures(replace(done, prefill_s=0.0), None)[-1].text == "stopped"


def test_every_stop_reason_has_words() -> None:
    assert set(STOP_WORDS) == set(STOP_MEANINGS) == set(StopReason)


def test_acceptance_of_a_head_is_accepted_tokens_over_steps_that_offered_its_depth() -> None:
    steps, _ = answer_of("a b c d e f g h", (2, 0, 1))
    tally = StepTally()
    for step in steps:
        tally.add(step)
    # Steps: 2 accepted, 0, 1, and 0 (the last word is a bonus token); each offered depths 1 to 3.
    assert [len(bar.marks) for bar in tally.bars] == [2, 0, 1, 0]
    assert tally.heads() == (HeadTally(1, 2, 4), HeadTally(2, 1, 4), HeadTally(3, 0, 4))
    assert tally.heads()[0].rate == 0.5


def test_the_tally_leaves_prefill_out_and_agrees_with_the_engine_on_the_mean() -> None:
    steps, done = answer_of("a b c d e f g h i j", (3, 1))
    tally = StepTally()
    for step in steps:
        tally.add(step)
    assert tally.num_steps == done.num_steps == len(steps) - 1
    assert tally.mean_acceptance_length == done.mean_acceptance_length


def test_plain_decoding_offers_no_head() -> None:
    steps, _ = answer_of("a b c d", (2,), drafter="none")
    tally = StepTally()
    for step in steps:
        tally.add(step)
    assert tally.heads() == ()
    assert tally.lookup() is None
    assert tally.mean_acceptance_length == 1


def test_what_lookup_found_is_counted_by_itself() -> None:
    tally = StepTally()
    step = next(s for s in steps_of(REQUEST, words("a b c d e"), (2,)) if s.step == 1)
    found = (TokenSource("ngram", 1), TokenSource("medusa+ngram", 2), TARGET)
    tally.add(replace(step, sources=found))
    assert tally.bars[0].marks == (LOOKUP, 2)
    assert tally.lookup() == HeadTally(LOOKUP, 1, 1)
    assert tally.has_others


def test_where_others_draft_too_the_bars_say_that_they_count_depths(
    appearance: Appearance,
) -> None:
    bars = HeadBars(appearance)
    bars.show_heads((HeadTally(1, 1, 2),), "head")
    assert bars.toolTip() == HEADS_MEANING
    bars.show_heads((HeadTally(1, 1, 2), HeadTally(LOOKUP, 1, 2)), "depth")
    assert bars.toolTip() == DEPTHS_MEANING
    assert "whoever drafted them" in DEPTHS_MEANING
