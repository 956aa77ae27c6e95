"""Turns of a conversation, sentences of an answer, and what is remembered."""

import json
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.messages.announcer import SentenceStream
from app.settings.preferences import (
    FILE_NAME,
    Preferences,
    load_preferences,
    save_preferences,
)
from medusa_core.chats.conversation import (
    Conversation,
)
from medusa_core.messages import ChatMessage, GenerateSettings, Role

PLAIN = GenerateSettings()


def counted() -> Conversation:
    ids = count()
    return Conversation(lambda: str(next(ids)))


def test_the_model_reads_all_turns_with_the_last_prompt_at_the_end() -> None:
    talk = counted()
    talk.ask("one", PLAIN).answer.content.finish("first")
    talk.ask("two", PLAIN)
    assert talk.messages() == (
        ChatMessage(Role.USER, "one"),
        ChatMessage(Role.ASSISTANT, "first"),
        ChatMessage(Role.USER, "two"),
    )


def test_a_turn_stopped_before_its_first_word_is_omitted() -> None:
    talk = counted()
    talk.ask("stopped", PLAIN)
    talk.ask("two", PLAIN)
    assert talk.messages() == (ChatMessage(Role.USER, "two"),)


def test_asking_again_keeps_the_prompt_and_both_answers() -> None:
    talk = counted()
    first = talk.ask("one", PLAIN)
    first.answer.content.finish("old")
    again = talk.retry(GenerateSettings(seed=7))
    assert again.prompt is first.prompt
    assert (again.answer.text, again.answer.settings.seed) == ("", 7)
    assert talk.turns == [again]
    assert again.prompt.answers == [first.answer, again.answer]
    talk.choose_answer(0, first.answer)
    assert talk.whole()[-1].text == "old"


def test_an_edited_prompt_keeps_the_old_version_with_all_that_followed() -> None:
    talk = counted()
    for text in ("one", "two", "three"):
        talk.ask(text, PLAIN).answer.content.finish(f"to {text}")
    talk.edit(1, "deux", PLAIN).answer.content.finish("à deux")
    assert [turn.prompt.text for turn in talk.turns] == ["one", "deux"]
    old, new = talk.prompt_versions(1)
    assert (old.text, new.text) == ("two", "deux")
    talk.choose_prompt(1, old)
    assert [turn.prompt.text for turn in talk.turns] == ["one", "two", "three"]
    talk.choose_prompt(1, new)
    assert [message.text for message in talk.whole()] == ["one", "to one", "deux", "à deux"]


def test_a_branch_begins_after_an_earlier_answer_and_changes_no_other_turn() -> None:
    talk = counted()
    for text in ("one", "two", "three"):
        talk.ask(text, PLAIN).answer.content.finish(f"to {text}")
    talk.go_back_to(0)
    talk.ask("other", PLAIN)
    assert [prompt.text for prompt in talk.prompt_versions(1)] == ["two", "other"]


def test_a_failed_question_leaves_no_turn() -> None:
    talk = counted()
    kept = talk.ask("one", PLAIN)
    talk.remove_last_round(talk.retry(PLAIN))
    assert talk.turns == [kept]
    talk.remove_last_round(talk.ask("two", PLAIN))
    assert talk.turns == [kept]
    talk.remove_last_round(talk.edit(0, "other", PLAIN))
    assert talk.turns == [kept]


def test_a_stored_conversation_opens_at_its_last_path() -> None:
    talk = counted()
    for text in ("one", "two"):
        talk.ask(text, PLAIN).answer.content.finish(f"to {text}")
    leaf = talk.leaf_id
    talk.edit(1, "deux", PLAIN).answer.content.finish("à deux")
    prompts = (*talk.prompt_versions(0), *talk.prompt_versions(1))
    opened = counted()
    opened.restore(prompts, leaf)
    assert [turn.prompt.text for turn in opened.turns] == ["one", "two"]
    unknown = counted()
    unknown.restore(prompts, "gone")
    assert [turn.prompt.text for turn in unknown.turns] == ["one", "deux"]


def test_sentences_are_announced_whole_however_tokens_split_them() -> None:
    stream = SentenceStream()
    received = [
        s
        for piece in ("Hello the", "re. How are", " you? I am fi", "ne")
        for s in stream.feed(piece)
    ]
    assert received == ["Hello there.", "How are you?"]
    assert stream.finish() == "I am fine"
    assert stream.finish() == ""


def test_a_number_with_a_point_is_not_the_end_of_a_sentence() -> None:
    assert SentenceStream().feed("It is 3.5 metres long. ") == ("It is 3.5 metres long.",)


@given(st.text(alphabet='ab.!?\n "', max_size=40), st.lists(st.integers(0, 40)))
def test_no_word_is_lost_between_sentences(text: str, cuts: list[int]) -> None:
    stream = SentenceStream()
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    received = [s for a, b in pairwise(edges) for s in stream.feed(text[a:b])]
    letters = "".join([*received, stream.finish()])
    assert [c for c in letters if c in "ab.!?"] == [c for c in text if c in "ab.!?"]


def test_saved_preferences_are_loaded_again(tmp_path: Path) -> None:
    chosen = Preferences("dark", 1.3, marking="accepted", has_read_hint=True)
    save_preferences(chosen, tmp_path / "new")
    assert load_preferences(tmp_path / "new") == chosen
    assert [path.name for path in (tmp_path / "new").iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "\x00", '{"zoom": ' + "9" * 5000 + "}", "[" * 100_000, '{"a":' * 50_000],
    ids=lambda content: content[:12],
)
def test_broken_preferences_are_set_aside_and_defaults_are_used(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    assert load_preferences(tmp_path) == Preferences()
    assert (tmp_path / FILE_NAME).with_suffix(".damaged").read_text() == content
    save_preferences(Preferences("dark"), tmp_path)
    assert load_preferences(tmp_path) == Preferences("dark")


NONSENSE = (
    ("theme", "pink"),
    ("theme", ["dark"]),
    ("zoom", "wide"),
    ("zoom", None),
    ("marking", 3),
    ("unload_minutes", -1),
    ("unload_minutes", 1e300),
    ("unload_minutes", "soon"),
    ("device", "toaster"),
    ("model", 7),
    ("model", {"name": "x"}),
)


def test_one_invalid_preference_affects_no_other(tmp_path: Path) -> None:
    save_preferences(
        Preferences("dark", 1.3, has_read_hint=True, unload_minutes=9.0, device="cpu"), tmp_path
    )
    saved = json.loads((tmp_path / FILE_NAME).read_text())
    kept = load_preferences(tmp_path)
    for name, value in NONSENSE:
        for broken in ({**saved, name: value}, {k: v for k, v in saved.items() if k != name}):
            (tmp_path / FILE_NAME).write_text(json.dumps(broken))
            default = getattr(Preferences(), name)
            assert load_preferences(tmp_path) == replace(kept, **{name: default}), (name, value)


def test_an_absurd_zoom_is_clamped(tmp_path: Path) -> None:
    save_preferences(Preferences(), tmp_path)
    saved = json.loads((tmp_path / FILE_NAME).read_text())
    (tmp_path / FILE_NAME).write_text(json.dumps({**saved, "zoom": 90}))
    assert load_preferences(tmp_path).zoom == 2.0


def test_preferences_that_cannot_be_written_affect_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    save_preferences(Preferences(), tmp_path / "file" / "below")
    assert load_preferences(tmp_path) == Preferences()
