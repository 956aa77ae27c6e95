"""`medusa run` without a terminal: one question in, the plain answer out."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.system.user_folders import places
from tests.support.terminal.fixtures import OPTIONS, PEBBLE

EXACT = ("--set", "rule", "greedy")


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Tell me a story about a dog.\n"))


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["run", PEBBLE, *words, *OPTIONS, *EXACT])
    out, err = capsys.readouterr()
    return code, out, err


def test_piped_input_is_answered_once_and_nothing_else_is_printed(
    piped: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = answered(capsys, "--data-dir", str(tmp_path))
    assert (code, err) == (0, "")
    assert len(out) > 40
    assert "\x1b" not in out
    assert out.endswith("\n")
    assert not places(tmp_path).history.exists()


def test_words_after_the_model_precede_the_piped_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for piped, words in (
        ("a dog.", ("Tell me a story:",)),
        ("Tell me a story:\n\na dog.", ()),
        ("a cat.", ("Tell me a story:",)),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
        answers.append(answered(capsys, *words)[1])
    assert answers[0] == answers[1] != answers[2]


def test_the_prompt_may_follow_options_and_a_named_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("Tell me", "a story.")
    answers = []
    for words in (
        (PEBBLE, *asked, *OPTIONS, *EXACT),
        (PEBBLE, *OPTIONS, *EXACT, *asked),
        (PEBBLE, asked[0], *OPTIONS, *EXACT, asked[1]),
        ("--model", PEBBLE, *OPTIONS, *EXACT, *asked),
        (*asked, *OPTIONS, *EXACT, "--model", PEBBLE),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        assert main(["run", *words]) == 0
        answers.append(capsys.readouterr().out)
    assert len(answers[0]) > 40
    assert len(set(answers)) == 1


def test_a_system_prompt_changes_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for more in ((), ("--system", "You only speak of a red boat.")):
        monkeypatch.setattr(sys, "stdin", io.StringIO("Tell me a story."))
        answers.append(answered(capsys, *more)[1])
    assert answers[0] != answers[1]


@pytest.mark.parametrize(
    ("typed", "words", "problem"),
    [
        ("  \n", (), "There is no prompt."),
        ("hi", ("--set", "heat", "3"), "There is no setting heat."),
        ("hi", ("--set", "drafter", "mtp"), "has no drafter mtp."),
    ],
)
def test_an_unanswerable_prompt_ends_with_a_message(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    words: tuple[str, ...],
    problem: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    code, out, err = answered(capsys, *words)
    assert (code, out) == (1, "")
    assert problem in err


def test_a_missing_model_is_answered_with_how_to_get_it(
    piped: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "someone/something"]) == 1
    assert "medusa pull someone/something" in capsys.readouterr().err


def test_a_question_without_a_model_goes_to_the_default_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code = main(["run", "Tell me a story.", *OPTIONS, *EXACT])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert answered(capsys, "Tell me a story.")[1] == out
