"""What the panels are drawn from: tracks, layouts, cards, figures, forecasts. No window."""

import subprocess
import sys
from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.insight.agreement import AGREES, DIFFERS, OPEN, agreement, say
from app.insight.card import as_html, as_text, card_of
from app.insight.layout import State, lay_out_plan, lay_out_step
from app.insight.plan_bar import forecast
from app.insight.recordings import Recordings
from app.insight.steps_figures import StepFigures
from app.insight.trace_files import LOADED
from app.insight.track import Track
from app.insight.tree_style import badges_of, look_of, note_of, words_of
from app.insight.verifications import Verifications
from app.insight.words import as_typed, origin, percent, show_token
from app.theme.tokens import DARK, LIGHT, Theme
from app.tour import _telling_step
from medusa_core.api import Recording, demo_model, write_trace
from medusa_core.generate.direct import generate
from medusa_core.messages import (
    GIVEN,
    TARGET,
    Alternative,
    BestNode,
    ChatMessage,
    GenerateSettings,
    Planned,
    Role,
    StepDone,
    StepTimes,
    StepTrace,
    TokenSource,
    Verified,
    VerifiedToken,
    Verify,
)
from medusa_core.target import LoadOptions, load_target
from tests.app.traces import PARENTS, named, told_by, trace


def track_of(num_steps: int, num_given: int = 0) -> Track:
    track = Track("r", "Fake", "greedy", num_given)
    for number in range(num_steps):
        track.add(trace(number))
    return track


def first_of(request_id: str, num_given: int = 0) -> StepDone:
    sources = (*[GIVEN] * num_given, TARGET)
    ids, pieces = tuple(range(num_given + 1)), (b"",) * (num_given + 1)
    return StepDone(
        "s", request_id, 0, ids, pieces, sources, 0, 9, (TARGET,), StepTimes(0, 0, 0, 0), 0, 9
    )


# Tracks -------------------------------------------------------------------------------------------


def test_tokens_find_their_steps() -> None:
    track = track_of(4, num_given=2)
    assert track.num_tokens == 2 + 1 + 3 * 3
    assert [track.step_of(token) for token in range(13)] == [
        None, None, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, None,
    ]  # fmt: skip
    assert [track.first_token(index) for index in range(4)] == [2, 3, 6, 9]


def test_a_full_buffer_gives_up_the_oldest_steps_and_tokens_stay_found() -> None:
    recorder = Recordings(max_steps=5)
    for name in ("a", "b"):
        recorder.begin(first_of(name), "Fake", "greedy")
        recorder.add(named(trace(number), name) for number in range(4))
    assert [len(recorder.tracks[name]) for name in ("a", "b")] == [1, 4]
    old = recorder.tracks["a"]
    assert old.num_dropped == 3
    assert old[0].step == 3
    assert dict(card_of(old, 5))["Token"] == "its step left the buffer: newer ones needed the room"
    assert (old.step_of(6), old.step_of(7)) == (None, 0)
    recorder.add(named(trace(number), "b") for number in range(4, 9))
    assert list(recorder.tracks) == ["b"]
    assert [recorder.tracks["b"][index].step for index in range(5)] == [4, 5, 6, 7, 8]


def test_steps_of_answers_that_were_not_begun_are_left_out() -> None:
    recorder = Recordings()
    recorder.add([named(trace(1), "foreign")])
    assert recorder.tracks == {}
    recorder.begin(first_of("mine", num_given=3), "Fake", "greedy")
    assert recorder.tracks["mine"].num_tokens == 3
    recorder.forget("mine")
    assert recorder.tracks == {}


# Layouts ------------------------------------------------------------------------------------------


def test_a_step_says_what_became_of_every_node() -> None:
    layout = lay_out_step(trace(1, (0, 1)))
    assert [node.state for node in layout.nodes] == [
        State.ROOT,
        State.ACCEPTED,
        State.PASSED,
        State.MISMATCH,
        State.PASSED,
        State.UNREACHED,
        State.GHOST,
    ]
    ghost = layout.nodes[-1]
    assert (ghost.parent, ghost.depth, ghost.text) == (1, 2, "‹F0 9F›")
    assert ghost.probability == pytest.approx(0.5)
    assert layout.nodes[1].text == "␣cat"
    assert layout.nodes[1].probability == pytest.approx(0.25)
    assert layout.nodes[0].probability is None


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(*[st.integers(0, i) for i in range(n)])))
def test_no_two_nodes_lie_on_each_other_and_children_lie_to_the_right(
    parents: tuple[int, ...],
) -> None:
    nodes = tuple(BestNode(parent, 1, 0, 0.5) for parent in parents)
    layout = lay_out_plan(nodes, len(nodes) + 1)
    places = {(node.depth, node.row) for node in layout.nodes}
    assert len(places) == len(layout.nodes)
    for depth in range(layout.num_columns):
        rows = sorted(node.row for node in layout.nodes if node.depth == depth)
        assert all(b - a >= 1 for a, b in pairwise(rows))
        column = sorted((n for n in layout.nodes if n.depth == depth), key=lambda n: n.row)
        above = [layout.nodes[n.parent].row for n in column if n.depth]
        assert above == sorted(above), "lines cross"
    assert all(0 <= node.row < layout.num_rows for node in layout.nodes)
    for node in layout.nodes[1:]:
        assert node.depth == layout.nodes[node.parent].depth + 1


def test_a_tree_takes_no_more_rows_than_its_fullest_column() -> None:
    parents = (0, 0, 1, 1, 2, 3, 3)  # two below the root, two and one below them, two below one
    nodes = tuple(BestNode(parent, 1, 0, 0.5) for parent in parents)
    layout = lay_out_plan(nodes, len(nodes) + 1)
    assert [node.row for node in layout.nodes] == [0, 0, 2, 0, 1, 2, 0, 1]
    assert layout.num_rows == 3


@pytest.mark.parametrize("path", [(0,), (0, 2), (0, 1), (0, 1, 4), (0, 1, 3), (0, 1, 3, 5)])
def test_the_accepted_path_is_one_straight_line_at_the_top(path: tuple[int, ...]) -> None:
    layout = lay_out_step(trace(1, path))
    rows = {layout.nodes[node].row for node in (*path, len(PARENTS))}
    assert rows == {0.0}


def test_a_planned_tree_has_the_rows_that_were_asked_for() -> None:
    best = (BestNode(0, 1, 0, 0.7), BestNode(1, 2, 0, 0.4), BestNode(0, 1, 1, 0.1))
    assert len(lay_out_plan(best, 1).nodes) == 1
    layout = lay_out_plan(best, 3)
    assert [node.probability for node in layout.nodes] == [1.0, 0.7, 0.4]
    assert len(lay_out_plan(best, 64).nodes) == 4


def test_a_forecast_is_the_sum_of_chances_over_the_measured_time() -> None:
    best = (BestNode(0, 1, 0, 0.5), BestNode(1, 2, 0, 0.25))
    planned = Planned("", "", 0.0, 0, ((0.5,), (0.5,)), 2, best, (0.0015, 0.0035))
    assert forecast(planned, 0.001, 1).factor == pytest.approx(1)
    two = forecast(planned, 0.001, 2)
    assert (two.tokens, two.tokens_per_s) == (pytest.approx(1.5), pytest.approx(1000))
    assert forecast(planned, 0.001, 3).factor == pytest.approx(1.75 / 3.5)


def test_a_saved_trace_shows_the_same_in_a_fresh_process(tmp_path: Path) -> None:
    pebble = load_target(*demo_model(), LoadOptions(device="cpu"))
    steps: list[StepTrace] = []
    settings = GenerateSettings(drafter="composite", rule="sample", seed=5, max_new_tokens=90)
    prompt = [ChatMessage(Role.USER, "Write a bedtime story about a small bear.")]
    done = generate(pebble, prompt, settings, on_trace=steps.append)
    path = tmp_path / "trace.json"
    write_trace(path, Recording("Fake", tuple(steps), done))
    program = "import sys; from tests.app.traces import shown_of; print(shown_of(sys.argv[1]))"
    shown = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    ).stdout
    track = Track(LOADED, "Fake", "sample")
    for step in steps:
        track.add(step)
    assert shown.strip() == told_by(track)
    assert "lookup" in shown
    assert shown.count("Noise drawn") == track.num_tokens == len(done.token_ids)


# How trees look ---------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_and_lines_tell_the_states_apart(theme: Theme) -> None:
    looks = {state: look_of(state, None, theme) for state in State}
    lines = {(look.frame.color().name(), look.frame.style()) for look in looks.values()}
    states = set(State) - {State.PASSED}  # grey as what was decided before, which is the root
    assert len(lines) == len(states)
    assert looks[State.PASSED].fill != looks[State.ROOT].fill
    assert looks[State.ACCEPTED].frame.color().name() == theme.agreed.line
    assert looks[State.ACCEPTED].fill.name() == theme.agreed.tint
    assert looks[State.MISMATCH].frame.color().name() == theme.danger
    for look in looks.values():
        assert look.line.color() == look.frame.color()
    assert looks[State.ACCEPTED].line.widthF() == max(look.line.widthF() for look in looks.values())


def test_likely_nodes_are_less_pale() -> None:
    fills = [look_of(State.ACCEPTED, chance, LIGHT).fill.alphaF() for chance in (0.0, 0.1, 0.5, 1)]
    assert fills == sorted(set(fills))
    assert fills[0] > 0.2
    assert fills[-1] == 1
    assert fills[1] < look_of(State.ACCEPTED, None, LIGHT).fill.alphaF() < fills[2]


def test_badges_tell_who_drafted_and_boxes_what() -> None:
    names = [
        [badge.name for badge in badges_of(TokenSource(drafter, head))]
        for drafter, head in (("medusa", 2), ("ngram", 3), ("medusa+ngram", 1), ("target", 0))
    ]
    assert names == [["h2"], ["lookup"], ["h1", "lookup"], []]
    layout = lay_out_step(trace(1, (0, 1)))
    assert words_of(layout.nodes[1]) == "␣cat"
    assert words_of(layout.nodes[-1]) == "model chose ‹F0 9F›"
    assert [note_of(layout.nodes[k]) for k in (0, 1, -1)] == ["", "25%", "50%"]


# Edits --------------------------------------------------------------------------------------------


def verify(text: Sequence[int]) -> Verified:
    tokens = tuple(VerifiedToken(i, b"", Alternative(0, b"", 0.5)) for i in text)
    return Verified("s", "r", tokens, 0.0)


def test_edits_wait_and_move_with_what_stands_before_them() -> None:
    asked: list[Verify] = []
    verifications = Verifications(asked.append, lambda: f"r{len(asked)}")
    verifications.read(text="abcd")
    assert verifications.take(verify((1, 2, 3, 4))) is None
    for token, text in ((1, "xy"), (2, "next"), (0, "first"), (1, "again"), (3, "last")):
        verifications.replace(token, text)
    assert len(asked) == 2
    assert (asked[1].before_ids, asked[1].after_ids) == ((1,), (3, 4))
    assert verifications.answers("r1")
    assert not verifications.answers("r0")
    assert not verifications.is_reading
    assert verifications.take(verify((1, 8, 9, 3, 4))) == 1
    expected = [("next", (1, 8, 9), (4,)), ("first", (), (8, 9, 3, 4)), ("again", (1,), (3, 4))]
    firsts = []
    for text, before, after in expected:
        assert verifications.go_on()
        assert (asked[-1].text, asked[-1].before_ids, asked[-1].after_ids) == (text, before, after)
        new = verify((*before, 7, *after) if text == "again" else (1, 8, 9, 3, 4))
        firsts.append(verifications.take(new))
    assert verifications.go_on()
    assert (asked[-1].text, asked[-1].before_ids, asked[-1].after_ids) == ("last", (1, 7, 3), ())
    assert [*firsts, verifications.take(verify((1, 7, 3, 5)))] == [1, 0, 0, 0], "of all in a row"
    assert not verifications.go_on()
    verifications.replace(2, "later")
    assert verifications.take(verify((1, 7, 6, 5))) == 2, "not of those that were shown before"


def test_after_a_failure_and_with_another_text_no_edit_is_left() -> None:
    asked: list[Verify] = []
    verifications = Verifications(asked.append, lambda: f"r{len(asked)}")
    for ended in ("failed", "read"):
        verifications.read(text="ab")
        verifications.take(verify((1, 2)))
        verifications.replace(1, "x")
        verifications.replace(0, "y")
        if ended == "failed":
            verifications.give_up()
        else:
            verifications.read(text="other")
            assert verifications.is_reading
            verifications.take(verify((5, 6)))
        assert not verifications.go_on()
        assert not verifications.answers(asked[-1].request_id)


# Cards and words ----------------------------------------------------------------------------------


def test_a_card_tells_all_about_an_accepted_token() -> None:
    track = track_of(3)
    lines = dict(card_of(track, 2))
    assert lines["Token"] == "␣on"
    assert lines["Id"] == "3"
    assert lines["From"] == "head 2, accepted"
    assert lines["Its guess"] == "first guess, 25.0 %"
    assert lines["Step"] == "1, second of 3"
    assert lines["Model's probability"] == "50.0 %"
    assert lines["Instead"].count("12.5 %") == 5
    assert lines["Lead over the next best"] == "4 times as likely"
    assert lines["Time of the step"].startswith("250 µs: draft 10 µs, verify 200 µs")


def test_a_card_tells_the_models_own_tokens_and_given_ones_apart() -> None:
    track = track_of(2, num_given=1)
    assert dict(card_of(track, 0))["Token"].startswith("given")
    assert dict(card_of(track, 1))["From"] == "the model itself"
    assert dict(card_of(track, 4))["From"] == "the model itself (bonus token)"
    assert card_of(track, 99) == ()


def test_a_greedy_card_says_where_the_best_token_was_not_allowed() -> None:
    track = track_of(2)
    assert dict(card_of(track, 1))["Rule"] == "greedy: the model's best token"
    likelier = array("f", [0.01, *[0.9] * 5]).tobytes() + array("i", range(5)).tobytes()
    banned = Track("r", "Fake", "greedy")
    banned.add(trace(0)._replace(judged=likelier))
    assert "of those allowed here" in dict(card_of(banned, 0))["Rule"]
    assert "Lead over the next best" not in dict(card_of(banned, 0))


def test_a_cards_numbers_are_the_rules() -> None:
    track = Track("r", "Fake", "sample")
    track.add(trace(0)._replace(numbers=((("probability", 0.25), ("noise", 1.5)),)))
    lines = dict(card_of(track, 0))
    assert lines["Noise drawn at this place"] == "1.5"
    assert lines["Rule"].startswith("sample")
    assert lines["Chance after temperature and filters"] == "0.25"


def test_hostile_tokens_stay_text() -> None:
    step = trace(0)
    pieces = dict.fromkeys(step.pieces, b"<img src=x onerror=alert(1)>")
    track = Track("r", "Fake", "sample")
    track.add(step._replace(pieces=pieces))
    html = as_html(card_of(track, 0))
    assert "<img" not in html
    assert "&lt;img" in html
    assert "<img" in as_text(card_of(track, 0))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b" a b", "␣a␣b"),
        (b"\n\t", "⏎⇥"),
        (b"", "‹special 7›"),
        (b"\xe2\x82", "‹E2 82›"),
        ("\u200b\u202e".encode(), "‹U+200B›‹U+202E›"),
        (b"x" * 40, "x" * 23 + "…"),
        ("é😀".encode(), "é😀"),
        ("a␣⏎·".encode(), "a‹U+2423›‹U+23CE›·"),  # no white space: signs that are in the text
    ],
)
def test_tokens_show_what_can_not_be_seen(text: bytes, shown: str) -> None:
    assert show_token(text, 7) == shown


def test_signs_for_white_space_stand_for_it_where_they_are_typed() -> None:
    text = " a\n\tb\r"
    assert as_typed(show_token(text.encode(), 1)) == text


@given(st.text(max_size=20))
def test_every_text_can_be_typed_as_it_is_shown(text: str) -> None:
    shown = show_token(text.encode(errors="surrogatepass"), 1)
    if text and not shown.endswith("…") and "‹U+" not in text and text.isprintable():
        assert as_typed(shown) == text


@pytest.mark.parametrize("text", ["␣", "⏎⇥", "·", "\u200b", "a\u202eb", "\x00"])
def test_signs_and_hidden_characters_of_a_text_are_typed_as_they_are_shown(text: str) -> None:
    assert as_typed(show_token(text.encode(), 1)) == text


def test_what_names_no_character_stays_as_it_is_typed() -> None:
    assert as_typed("‹U+D800›‹U+110000›‹U+41›") == "‹U+D800›‹U+110000›‹U+41›"


def test_origins_and_chances_in_words() -> None:
    assert origin(TokenSource("medusa", 2)) == origin(TokenSource("medusa-chain", 2)) == "head 2"
    assert origin(TokenSource("ngram", 3)) == "lookup, 3 ahead"
    assert origin(TokenSource("medusa+ngram", 1)) == "head 1 and lookup"
    assert (percent(None), percent(0.0), percent(1e-5)) == ("—", "0.0 %", "< 0.1 %")


# Figures ------------------------------------------------------------------------------------------


def test_figures_are_the_traces_sums() -> None:
    track, figures = track_of(3), StepFigures()
    figures.follow(track)
    track.add(trace(3, (0, 2), num_kept=1))
    figures.follow(track)
    figures.follow(track)
    assert figures.numbers.tolist() == [1, 2, 3]
    assert figures.tokens.tolist() == [3, 3, 1]
    assert figures.seconds.tolist() == pytest.approx([2.5e-4] * 3)
    assert figures.times.shape == (4, 3)
    assert figures.times[1].tolist() == pytest.approx([2e-4] * 3)
    assert figures.context.tolist() == [16, 19, 20]
    rates = {rate.name: (rate.num_accepted, rate.num_steps) for rate in figures.rates()}
    assert rates == {"head 1": (3, 3), "head 2": (2, 3), "head 3": (0, 3)}
    track.add(trace(4, (0, 1, 3), num_kept=1))  # the answer ended inside the run
    cut = StepFigures()
    cut.follow(track)
    assert [rate.num_accepted for rate in cut.rates()] == [4, 2, 0]
    assert np.allclose(figures.speeds(), [6 / 5e-4, 7 / 7.5e-4, 4 / 5e-4])


def test_a_token_that_heads_and_lookup_guessed_counts_for_both() -> None:
    step = trace(1, (0, 1, 3))
    both, deeper = TokenSource("medusa+ngram", 1), TokenSource("ngram", 2)
    sources = [TARGET, *[TokenSource("medusa", source.head) for source in step.sources[1:]]]
    sources[1], sources[3] = both, deeper
    figures, track = StepFigures(), track_of(0)
    track.add(step._replace(sources=tuple(sources)))
    track.add(trace(2, (0,))._replace(sources=tuple(sources)))
    sources[3] = TokenSource("medusa", 2)  # what it found then, a head guessed, too
    track.add(trace(3, (0, 1))._replace(sources=tuple(sources)))
    figures.follow(track)
    rates = {rate.name: (rate.num_accepted, rate.num_steps) for rate in figures.rates()}
    assert rates["head 1"] == (2, 3)
    assert rates["lookup"] == (2, 3), "its two tokens of one step count once"
    assert list(rates) == [*sorted(set(rates) - {"lookup"}), "lookup"]
    assert all(0 <= rate.share <= 1 for rate in figures.rates())


def test_figures_of_a_track_that_loses_its_first_steps_go_on() -> None:
    track, figures = track_of(3), StepFigures()
    figures.follow(track)
    for number in range(3, 6):
        track.add(trace(number))
        track.drop_first()
    figures.follow(track)
    assert figures.numbers.tolist() == [1, 2, 3, 4, 5]


def test_no_steps_have_no_figures() -> None:
    figures = StepFigures()
    assert figures.speeds().tolist() == []
    assert figures.rates() == ()


# Agreement ----------------------------------------------------------------------------------------


def verified(*pairs: tuple[int, int]) -> Verified:
    tokens = tuple(
        VerifiedToken(i, b" %d" % i, Alternative(out, b" %d" % out, 0.5)) for i, out in pairs
    )
    return Verified("s", "r", tokens, 0.01)


def test_outputs_are_compared_with_the_next_input() -> None:
    table = agreement(verified((1, 2), (2, 9), (3, 4), (4, 5)))
    assert [cell.mark for cell in table.cells] == [AGREES, DIFFERS, AGREES, OPEN]
    assert (table.num_agreeing, table.num_judged, table.bonus) == (2, 3, None)
    assert say(table).startswith("2 of 3 outputs")


def test_after_an_edit_the_first_output_that_differs_is_the_bonus() -> None:
    table = agreement(verified((1, 7), (2, 3), (8, 4), (4, 5)), edited=2)
    assert table.bonus == 1  # what stands before the edit was there already
    assert "behind “␣2” (token 2)" in say(table)
    assert "goes on with “␣3”" in say(table)
    whole = agreement(verified((1, 2), (2, 3), (3, 4)), edited=1)
    assert whole.bonus == 2  # all agree: the bonus comes behind the end


def test_one_token_is_not_compared() -> None:
    assert say(agreement(verified((1, 2)))) == "One token: the model goes on with “␣2”."


def test_nothing_verified_says_so() -> None:
    assert say(agreement(verified())) == "Nothing verified yet."


def test_the_tours_step_is_the_nearest_to_the_middle_with_accepted_tokens() -> None:
    track = Track("r", "Fake", "greedy")
    for number in range(9):
        accepts = number in (2, 7)
        track.add(trace(number, (0, 1, 3) if accepts else (0,)))
    assert [track[index].num_kept for index in (2, 4)] == [3, 1]
    assert _telling_step(track) == 2
    bare = Track("r", "Fake", "greedy")
    bare.add(trace(0))
    bare.add(trace(1, (0,)))
    assert _telling_step(bare) == 1
