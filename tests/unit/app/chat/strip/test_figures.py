"""The figures under an answer and in the strip, by hand-made steps."""

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from app.chat.messages.figures import (
    NUM_FIGURES,
    STOP_MEANINGS,
    STOP_WORDS,
    figures,
    speed_up,
)
from app.chat.strip.acceptance import (
    AcceptanceRate,
    AcceptanceTally,
)
from app.chat.strip.steps_strip import StepsStrip
from app.chat.strip.tally import StepTally
from app.theme.appearance import Appearance
from app.theme.legend import Mark
from medusa_core.messages import (
    TARGET,
    ChatMessage,
    Generate,
    GenerateSettings,
    Role,
    StopReason,
    TokenSource,
)
from tests.support.window.engine_events import LEGEND
from tests.support.window.fakes import done_of, steps_of, words

REQUEST = Generate("s", "r", (ChatMessage(Role.USER, "hi"),))


def answer_of(text: str, accept: tuple[int, ...], **settings: str):
    request = replace(REQUEST, settings=GenerateSettings(**settings))
    steps = tuple(steps_of(request, words(text), accept))
    return steps, done_of(request, steps, StopReason.EOS)


def test_speed_up_is_acceptance_length_times_plain_step_over_mean_step() -> None:
    # After the prefill's token: two steps of three tokens each, 2.5 ms a step.
    _, done = answer_of("a b c d e f g", (2,))
    assert done.mean_acceptance_length == 3
    assert speed_up(done) == pytest.approx(3 * 0.002 / 0.0025)


def test_speed_up_is_unknown_before_calibration_and_without_a_decode_step() -> None:
    _, done = answer_of("a b c", (2,))
    assert speed_up(replace(done, plain_step_s=0.0)) is None
    _, single = answer_of("a", (2,))
    assert speed_up(single) is None


def test_every_figure_is_shown_with_its_definition() -> None:
    _, done = answer_of("a b c d e f g", (2,))
    shown = figures(done)
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
    assert [figure.text for figure in figures(done)][:2] == ["—", "—"]


def test_an_implausible_speed_up_is_not_shown() -> None:
    def names(**changes: float) -> list[str]:
        return [figure.name for figure in figures(replace(done, **changes))]

    _, done = answer_of("a b c d e f g", (2,))
    assert "Speed-up" in names()
    assert "Speed-up" not in names(plain_step_s=0.0)  # not measured, or decoded plainly
    assert "Speed-up" not in names(plain_step_s=0.0019)  # too small a model to gain


def test_an_answer_slower_than_plain_says_so_and_why() -> None:
    _, done = answer_of("a b c d e f g", (0,))
    assert figures(replace(done, num_plain_steps=0))[2].text == "slower than plain (0.80×)"
    unguessed = figures(replace(done, num_plain_steps=2))[2]
    assert unguessed.text == "Drafts didn't pay here; written without them"
    assert "nothing was drafted" in unguessed.meaning
    _, some = answer_of("a b c d e f g", (1,))
    slow = replace(
        some,
        num_plain_steps=2,
        decode_s=10 * some.decode_s,
        plain_step_s=8 / some.decode_tokens_per_s,
    )
    assert figures(slow)[2].text == "slower than plain (0.80×); drafting was paused"


def test_an_impossible_speed_up_is_not_shown() -> None:
    _, done = answer_of("a b c d e f g", (2,))
    busy = replace(done, plain_step_s=1.4 * done.plain_step_s)
    assert busy.speed_up is None
    assert "Speed-up" not in [figure.name for figure in figures(busy)]


def test_an_answer_without_a_token_still_has_figures() -> None:
    done = done_of(REQUEST, (), StopReason.CANCELLED)
    assert [one.text for one in figures(done)] == ["Stopped before the first word"]


def test_an_answer_whose_call_was_not_read_is_stopped_there() -> None:
    done = done_of(REQUEST, (), StopReason.EOS)
    assert figures(done)[-1].text == "end of answer"
    assert figures(done, stops_at_call=True)[-1].text == "stopped at a tool call"


def test_every_stop_reason_has_words() -> None:
    assert set(STOP_WORDS) == set(STOP_MEANINGS) == set(StopReason)


def test_a_heads_rate_is_its_share_of_steps_with_an_accepted_draft() -> None:
    steps, _ = answer_of("a b c d e f g h", (2, 0, 1))
    tally = StepTally(LEGEND)
    for step in steps:
        tally.add(step)
    # Steps: 2 accepted, 0, 1, and 0 (the last word is a bonus token); heads 1 to 3 draft in each.
    assert [len(bar.marks) for bar in tally.bars] == [2, 0, 1, 0]
    assert tally.rates() == (
        AcceptanceRate(Mark("medusa", 1), "head 1", 2, 4),
        AcceptanceRate(Mark("medusa", 2), "head 2", 1, 4),
        AcceptanceRate(Mark("medusa", 3), "head 3", 0, 4),
    )
    assert tally.rates()[0].share == 0.5


def test_the_tally_excludes_prefill_and_agrees_with_the_engines_mean() -> None:
    steps, done = answer_of("a b c d e f g h i j", (3, 1))
    tally = StepTally(LEGEND)
    for step in steps:
        tally.add(step)
    assert tally.num_steps == done.num_steps == len(steps) - 1
    assert tally.mean_acceptance_length == done.mean_acceptance_length


def test_plain_decoding_shows_no_heads() -> None:
    steps, _ = answer_of("a b c d", (2,), drafter="none")
    tally = StepTally(LEGEND)
    for step in steps:
        tally.add(step)
    assert tally.rates() == ()
    assert tally.mean_acceptance_length == 1


def test_a_token_drafted_by_heads_and_suffix_counts_for_both_sources_once() -> None:
    tally = AcceptanceTally(LEGEND)
    head, both, found = (TokenSource(name, 1) for name in ("medusa", "medusa+suffix", "suffix"))
    deeper = TokenSource("suffix", 2)
    tally.add((TARGET, both, deeper), (both, deeper))
    tally.add((TARGET, head, found, deeper), (found, deeper))
    tally.add((TARGET, head), (head,))
    tally.add((TARGET, head), ())
    tally.add((TARGET, both), (both,))
    assert tally.rates() == (
        AcceptanceRate(Mark("medusa", 1), "head 1", 3, 5),
        AcceptanceRate(Mark("suffix", 0), "suffix", 3, 3),
    )


def test_the_strip_counts_like_the_steps_panel_and_shows_paused_heads(
    qtbot: QtBot, appearance: Appearance
) -> None:
    strip = StepsStrip(appearance)
    qtbot.addWidget(strip)
    strip.set_heads("medusa", 2)
    assert strip._heads.accessibleDescription() == "Head 1: —, Head 2: —"
    strip.set_heads("hydra", 1)
    assert strip._heads.accessibleDescription() == "Head 1: —"
    strip.set_heads("medusa", 2)
    step = next(s for s in steps_of(REQUEST, words("a b c d e"), (2,)) if s.step == 1)
    found = (TokenSource("suffix", 1), TokenSource("medusa+suffix", 2), TARGET)
    strip.add((step._replace(sources=found, node_sources=(TARGET, *found[:2])),))
    assert strip.tally.bars[0].marks == (Mark("suffix", 1), Mark("medusa", 2))
    assert strip._heads.accessibleDescription() == ("Head 1: —, Head 2: 100%, From the text: 100%")
