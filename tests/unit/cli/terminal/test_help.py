"""What the command line says of itself: it fits a screen, and opens with what must be given."""

from __future__ import annotations

import pytest

from medusa_core import __version__
from medusa_core.__main__ import COMMANDS, main

SCREEN = 24, 80


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(SCREEN[1]))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


def test_the_first_page_fits_a_screen_and_names_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys)
    assert len(lines) < SCREEN[0]  # the prompt stands below it
    assert max(map(len, lines)) < SCREEN[1]
    named = {word for line in lines for word in line.split()}
    assert named >= set(COMMANDS)
    assert lines[-1] == (
        "Exit status: 0 done, 1 failed, 2 wrong arguments, 3 batch paused, 130 stopped."
    )


def test_help_of_each_command_begins_with_one_line_of_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in COMMANDS:
        lines = printed(capsys, command)
        assert lines[0].startswith(f"usage: medusa {command}")
        assert lines[1] == "", command
        assert lines[2].endswith((".", "?")), command  # what it does
        assert max(map(len, lines)) < SCREEN[1], command


@pytest.mark.parametrize("command", ["generate", "serve", "bench", "batch", "run"])
def test_formats_are_listed_once_and_options_by_subject(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, command)
    assert sum("iq4_nl" in line for line in lines) == 1
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert {"model:", "weight formats:", "memory and device:"} <= set(titles)
    assert len(titles) == len(set(titles))


def test_without_a_command_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: medusa COMMAND")


def test_a_wrong_command_or_option_is_answered_with_a_suggestion(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, problem, hint in (
        (["pul", "a/b"], "there is no command pul.", "Did you mean pull?"),
        (["chat"], "there is no command chat.", "Did you mean run?"),
        (["xyz"], "there is no command xyz.", "See medusa --help."),
        (["list", "--jsn"], "there is no option --jsn.", "Did you mean --json?"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert capsys.readouterr().err == f"error: {problem}\n  {hint}\n"


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help"], ["help", "list"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert capsys.readouterr().out.splitlines() == printed(capsys, *words[1:])


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"medusa {__version__}\n"


def test_only_commands_that_can_use_a_remote_model_offer_endpoint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    offering = {name for name in COMMANDS if "--endpoint" in " ".join(printed(capsys, name))}
    assert offering == {"generate", "run"}
