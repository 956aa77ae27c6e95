"""Tokens in words, shown and typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.insight.words import as_typed, origin, percent, show_token
from medusa_core.messages import TokenSource
from tests.support.window.engine_events import LEGEND


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
def test_invisible_characters_of_tokens_are_shown(text: bytes, shown: str) -> None:
    assert show_token(text, 7) == shown


def test_signs_for_white_space_can_be_typed() -> None:
    text = " a\n\tb\r"
    assert as_typed(show_token(text.encode(), 1)) == text


@given(st.text(max_size=20))
def test_every_token_can_be_typed_as_it_is_shown(text: str) -> None:
    shown = show_token(text.encode(errors="surrogatepass"), 1)
    if text and not shown.endswith("…") and "‹U+" not in text and text.isprintable():
        assert as_typed(shown) == text


@pytest.mark.parametrize("text", ["␣", "⏎⇥", "·", "\u200b", "a\u202eb", "\x00"])
def test_signs_and_hidden_characters_of_a_text_are_typed_as_they_are_shown(text: str) -> None:
    assert as_typed(show_token(text.encode(), 1)) == text


def test_tokens_without_a_text_are_shown_by_their_names() -> None:
    specials = {7: "<|im_start|>", 8: "", 9: "<\u202e" + "x" * 40}
    assert show_token(b"", 7, specials) == "‹<|im_start|>›"
    assert show_token(b"", 8, specials) == "‹end›"
    assert show_token(b"", 9, specials) == "‹<‹U+202E›" + "x" * 14 + "…›"
    assert show_token(b"a", 1, specials) == "a"


def test_unknown_character_names_are_kept_as_typed() -> None:
    assert as_typed("‹U+D800›‹U+110000›‹U+41›") == "‹U+D800›‹U+110000›‹U+41›"


def test_sources_and_probabilities_are_written_in_words() -> None:
    assert origin(TokenSource("medusa", 2), LEGEND) == "head 2"
    assert origin(TokenSource("of another engine", 2), LEGEND) == "of another engine, 2 ahead"
    assert origin(TokenSource("suffix", 3), LEGEND) == "suffix, 3 ahead"
    assert origin(TokenSource("medusa+suffix", 1), LEGEND) == "head 1 and suffix"
    assert origin(TokenSource("phrases", 4), LEGEND) == "phrases, 4 ahead"
    assert origin(TokenSource("phrases+suffix", 2), LEGEND) == "phrases and suffix, 2 ahead"
    assert (
        origin(TokenSource("medusa+phrases+suffix", 1), LEGEND) == "head 1 and phrases and suffix"
    )
    assert (percent(None), percent(0.0), percent(1e-5)) == ("—", "0.0 %", "< 0.1 %")
