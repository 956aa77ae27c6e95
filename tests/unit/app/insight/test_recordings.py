"""The ring buffer and the tracks in it."""

from app.insight.recordings import Recordings
from app.insight.token_card import card_of
from medusa_core.messages import (
    GIVEN,
    TARGET,
    StepDone,
    StepTimes,
)
from tests.support.window.engine_events import LEGEND
from tests.support.window.traces import made_track, named, trace


def first_of(request_id: str, num_given: int = 0) -> StepDone:
    sources = (*[GIVEN] * num_given, TARGET)
    ids, pieces = tuple(range(num_given + 1)), (b"",) * (num_given + 1)
    return StepDone(
        "s", request_id, 0, ids, pieces, sources, 0, 9, (TARGET,), StepTimes(0, 0, 0, 0), 0, 9
    )


def test_tokens_are_mapped_to_their_steps() -> None:
    track = made_track(4, num_given=2)
    assert track.num_tokens == 2 + 1 + 3 * 3
    assert [track.step_of(token) for token in range(13)] == [
        None, None, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, None,
    ]  # fmt: skip
    assert [track.first_token(index) for index in range(4)] == [2, 3, 6, 9]


def test_a_full_buffer_drops_the_oldest_steps_and_tokens_are_still_found() -> None:
    recorder = Recordings(max_steps=5)
    for name in ("a", "b"):
        recorder.begin(first_of(name), "Fake", "greedy")
        recorder.add(named(trace(number), name) for number in range(4))
    assert [len(recorder.tracks[name]) for name in ("a", "b")] == [1, 4]
    old = recorder.tracks["a"]
    assert old.num_dropped == 3
    assert old[0].step == 3
    assert (
        dict(card_of(old, 5, LEGEND))["Token"]
        == "its step left the buffer: newer ones needed the room"
    )
    assert (old.step_of(6), old.step_of(7)) == (None, 0)
    recorder.add(named(trace(number), "b") for number in range(4, 9))
    assert list(recorder.tracks) == ["b"]
    assert [recorder.tracks["b"][index].step for index in range(5)] == [4, 5, 6, 7, 8]


def test_steps_of_answers_that_were_not_recorded_from_their_start_are_ignored() -> None:
    recorder = Recordings()
    recorder.add([named(trace(1), "foreign")])
    assert recorder.tracks == {}
    recorder.begin(first_of("mine", num_given=3), "Fake", "greedy")
    assert recorder.tracks["mine"].num_tokens == 3
    recorder.forget("mine")
    assert recorder.tracks == {}
