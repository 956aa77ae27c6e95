"""What a token's card tells."""

from array import array

from app.insight.token_card import as_html, as_text, card_of
from app.insight.track import Track
from medusa_core.messages import DroppedToken
from tests.support.window.engine_events import LEGEND
from tests.support.window.traces import made_track, trace, with_pruned


def test_a_card_describes_an_accepted_token() -> None:
    track = made_track(3)
    lines = dict(card_of(track, 2, LEGEND))
    assert lines["Token"] == "␣on"
    assert lines["Id"] == "3"
    assert lines["From"] == "head 2, accepted"
    assert lines["Its draft token"] == "first draft token, 25.0 %"
    assert lines["Step"] == "1, second of 3"
    assert lines["Model's probability"] == "50.0 %"
    assert lines["Instead"].count("12.5 %") == 5
    assert lines["Lead over the next best"] == "4 times as likely"
    assert lines["Time of the step"].startswith("250 µs: draft 10 µs, verify 200 µs")


def test_a_card_distinguishes_the_models_own_tokens_from_given_ones() -> None:
    track = made_track(2, num_given=1)
    assert dict(card_of(track, 0, LEGEND))["Token"].startswith("given")
    assert dict(card_of(track, 1, LEGEND))["From"] == "the model itself"
    assert dict(card_of(track, 4, LEGEND))["From"] == "the model itself (bonus token)"
    assert card_of(track, 99, LEGEND) == ()


def test_a_card_says_if_the_models_own_token_was_a_candidate_without_a_row() -> None:
    track = made_track(1)
    track.add(with_pruned(trace(), DroppedToken(3, 7, 0.25), DroppedToken(0, 7, 0.5)))
    last = track.first_token(1) + 2
    card = dict(card_of(track, last, LEGEND))
    assert card["From"] == "the model itself (bonus token)"
    assert card["Was offered"] == "25.0 %, but not verified"
    assert "Was offered" not in dict(card_of(track, last - 1, LEGEND))
    assert "Was offered" not in dict(card_of(made_track(2), last, LEGEND))


def test_a_greedy_card_says_that_the_likeliest_token_was_not_allowed() -> None:
    track = made_track(2)
    assert dict(card_of(track, 1, LEGEND))["Rule"] == "Greedy: Takes the likeliest token each time."
    likelier = array("f", [0.01, *[0.9] * 5]).tobytes() + array("i", range(5)).tobytes()
    banned = Track("r", "Fake", "greedy")
    banned.add(trace(0)._replace(judged=likelier))
    assert "not allowed here" in dict(card_of(banned, 0, LEGEND))["Rule"]
    assert "Lead over the next best" not in dict(card_of(banned, 0, LEGEND))


def test_a_cards_numbers_are_those_of_the_rule() -> None:
    track = Track("r", "Fake", "sample")
    track.add(trace(0)._replace(numbers=((("probability", 0.25), ("noise", 1.5)),)))
    lines = dict(card_of(track, 0, LEGEND))
    assert lines["Noise drawn at this place"] == "1.5"
    assert lines["Rule"].startswith("Sample")
    assert lines["Chance after temperature and filters"] == "0.25"


def test_hostile_tokens_stay_text() -> None:
    step = trace(0)
    pieces = dict.fromkeys(step.pieces, b"<img src=x onerror=alert(1)>")
    track = Track("r", "Fake", "sample")
    track.add(step._replace(pieces=pieces))
    html = as_html(card_of(track, 0, LEGEND))
    assert "<img" not in html
    assert "&lt;img" in html
    assert "<img" in as_text(card_of(track, 0, LEGEND))
