"""Texts as a search compares them, and pieces of them as it shows them."""

import random
import sqlite3
import unicodedata
from contextlib import closing

import pytest

from medusa_core.chats.history.folding import (
    as_query,
    fold,
    snippet,
    unfold,
    words_of,
)

ODD = "aÀéß ñ\u0301\u0323İıﬁ東京한글ไทย🙂\u200d\n\t\0-_'\"*"


def anything(chance: random.Random) -> str:
    """A text of any characters, and often of those that are folded."""

    def char() -> str:
        found = chr(chance.randrange(0x110000)) if chance.random() < 0.5 else chance.choice(ODD)
        return " " if unicodedata.category(found) == "Cs" else found

    return "".join(char() for _ in range(chance.randint(0, 60)))


def test_folded_pieces_are_of_the_text_and_their_marks_within_it() -> None:
    chance = random.Random(1)
    for _ in range(200):
        check_piece(anything(chance), anything(chance)[:9])
    check_piece("ﬁnd ß", "s")
    check_piece("İstanbul", "i")


def check_piece(text: str, requested: str) -> None:
    shown, spans = snippet(text, words_of(requested))
    for begin, end in spans:
        assert 0 <= begin < end <= len(shown)
    flat = " ".join(unicodedata.normalize("NFC", text).split())
    assert " ".join(shown.strip("…").split()) in flat or "…" in flat


def test_the_search_index_finds_parts_between_spaces() -> None:
    chance = random.Random(2)
    for text in ("𑌾0", *(anything(chance) for _ in range(60))):
        for part in text.replace("\0", " ").split():
            if as_query(words_of(part)):
                check_found(text.replace("\0", " "), part)


def check_found(text: str, part: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(
            "CREATE VIRTUAL TABLE t USING fts5 (w, tokenize = 'unicode61 remove_diacritics 0')"
        )
        db.execute("INSERT INTO t VALUES (?)", (fold(text),))
        found = db.execute("SELECT 1 FROM t WHERE t MATCH ?", (as_query(words_of(part)),))
        assert found.fetchone() is not None


@pytest.mark.parametrize(
    ("text", "requested", "marked"),
    [
        ("Grüße aus Köln", "koln", ["Köln"]),
        ("Gru\u0308ße", "grus", ["Grüß"]),  # a letter of two characters; s is half of ß
        ("Straße", "strasse", ["Straße"]),
        ("die Krankenhäuser", "haus", ["häus"]),
        ("東京の天気", "天気", ["天気"]),
        ("tea, TEA and teapot", "tea", ["tea", "TEA", "tea"]),
        ("a b c", "c a", ["a", "c"]),
        ("a long way " * 20 + "to Köln", "koln", ["Köln"]),  # only its end is shown
    ],
)
def test_search_marks_are_at_the_words(text: str, requested: str, marked: list[str]) -> None:
    shown, spans = snippet(text, words_of(requested))
    assert [shown[a:b] for a, b in spans] == marked


def test_folded_ideographs_can_be_unfolded() -> None:
    assert unfold(fold("東京の天気 Is FINE 한글")) == "東京の天気 is fine 한글"
