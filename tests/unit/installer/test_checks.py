"""The command `test`: every tool runs, and one failure fails the whole."""

import pytest

from installer.checks import all_checks, room_checks, run_checks
from installer.errors import SetupError
from installer.layout import this_repository
from tests.support.installer.fakes import FakeMachine


def test_a_failure_does_not_hide_the_tools_after_it(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.statuses = {"ruff": 1, "mypy": 2}
    assert run_checks(machine.layout, machine, all_checks([]), {}) == 1
    assert len(machine.commands) == len(all_checks([]))
    out = capsys.readouterr().out
    assert out.count("FAILED") == 3
    assert "3 of 5 checks failed" in out


def test_summary_shows_the_closing_line_of_pytest(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_checks(machine.layout, machine, all_checks([]), {}) == 0
    summary = capsys.readouterr().out.partition("== summary")[2]
    assert "pytest is done\n" in summary
    assert "All checks passed." in summary


def test_a_tool_ended_by_a_signal_has_failed(machine: FakeMachine) -> None:
    machine.statuses = {"pytest": -11}
    assert run_checks(machine.layout, machine, all_checks([]), {}) == 1


@pytest.mark.parametrize(
    ("room", "folder"),
    [
        ("runtime/kv", "tests/unit/runtime/kv"),
        ("medusa_core/runtime/kv/", "tests/unit/runtime/kv"),
        ("app/chat", "tests/unit/app/chat"),
        ("laws", "tests/laws"),
        ("lanes/card", "tests/lanes/card"),
    ],
)
def test_a_room_runs_the_tests_of_one_folder_of_the_code(room: str, folder: str) -> None:
    (check,) = room_checks(this_repository(), room, ["-k", "tree"])
    assert check.command[-3:] == (folder, "-k", "tree")


@pytest.mark.parametrize("room", ["runtime/nowhere", ".."])
def test_an_unknown_room_is_refused_with_the_list_of_rooms(room: str) -> None:
    with pytest.raises(SetupError) as refused:
        room_checks(this_repository(), room, [])
    assert "runtime/kv" in refused.value.mend


def test_arguments_are_passed_to_pytest_only() -> None:
    commands = [check.command for check in all_checks(["-k", "tree"])]
    (command,) = (c for c in commands if "tree" in c)
    assert command[0] == "pytest"
    assert command[-2:] == ("-k", "tree")
