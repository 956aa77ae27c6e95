"""Runs that train heads in processes of their own, told from their files."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from medusa_core.errors import TrainingError
from medusa_core.system.jobs.heads_training import (
    HeadsJobSpec,
    HeadsNeeds,
    NeedsQuery,
    OwnHeads,
)
from medusa_core.system.sandbox.command import CommandProcess
from tests.support.jobs import FakeCommand, commands, tell

__all__ = ["commands"]

SPEC = HeadsJobSpec("/models/tiny", minutes=5.0, data=("a.jsonl",))


def test_a_run_is_started_watched_paused_and_resumed(
    tmp_path: Path, commands: list[FakeCommand]
) -> None:
    own = OwnHeads(tmp_path)
    run = own.begin(SPEC, "org/tiny chat")
    assert run.out == tmp_path / "org-tiny-chat-hydra"
    assert run.spec == SPEC
    run.start()
    assert commands[0].arguments[-3:] == ["--config", f"{run.out}.json", "--watched"]
    assert run.progress().stage == "starting"
    tell(run, stage="training", done=30, of=120, seconds_left=9.0)
    (run.out / "work" / "curve.jsonl").write_text(
        '{"step": 10, "top1": [0.4, 0.2]}\n{"step": 20, "top1": [0.5'
    )
    progress = run.progress()
    assert (progress.stage, progress.share, progress.seconds_left) == ("training", 0.25, 9.0)
    assert progress.curve == ((10, (0.4, 0.2)),)
    run.pause()
    assert commands[0].was_stopped
    commands[0].code = 3
    tell(run, stage="paused", done=0, of=1)
    assert run.progress().stage == "paused"
    assert not run.is_running

    (later,) = OwnHeads(tmp_path).unfinished()  # after a restart
    assert later.out == run.out
    assert later.progress().stage == "paused"
    later.start()
    assert commands[1].arguments[-2:] == ["--resume", "--watched"]
    tell(later, stage="done", done=1, of=1)
    assert later.progress().stage == "done"
    assert OwnHeads(tmp_path).unfinished() == ()


def test_names_of_runs_are_unique(tmp_path: Path, commands: list[FakeCommand]) -> None:
    own = OwnHeads(tmp_path)
    names = [own.begin(SPEC, "tiny").out.name for _ in range(3)]
    assert names == ["tiny-hydra", "tiny-hydra-2", "tiny-hydra-3"]
    assert own.begin(SPEC, "../..").out.parent == tmp_path


def test_an_error_is_reported_with_its_remedy(tmp_path: Path, commands: list[FakeCommand]) -> None:
    run = OwnHeads(tmp_path).begin(SPEC, "tiny")
    run.start()
    commands[0].code = 1
    commands[0].words = "step 3\nerror: The disk is full.\n  Make room.\n"
    progress = run.progress()
    assert (progress.stage, progress.problem, progress.hint) == (
        "failed",
        "The disk is full.",
        "Make room.",
    )
    run.start()
    assert run.progress().stage == "starting"


@pytest.mark.expects_errors
def test_a_killed_run_says_so(tmp_path: Path, commands: list[FakeCommand]) -> None:
    run = OwnHeads(tmp_path).begin(SPEC, "tiny")
    run.start()
    commands[0].code = -9
    assert run.progress().stage == "failed"
    assert run.progress().hint


def test_discarding_a_run_leaves_no_file(tmp_path: Path, commands: list[FakeCommand]) -> None:
    run = OwnHeads(tmp_path).begin(SPEC, "tiny")
    run.start()
    tell(run, stage="answers", done=1, of=2)
    run.remove()
    assert commands[0].code == -9
    assert list(tmp_path.iterdir()) == []


def test_files_other_than_runs_are_ignored(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"model": "x"}', '{"model": "x", "data": [], "another": 1}'):
        (tmp_path / "strange.json").write_text(text)
        assert OwnHeads(tmp_path).unfinished() == ()
    assert OwnHeads(tmp_path / "missing").unfinished() == ()


def test_a_read_only_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TrainingError, match="can't begin"):
        OwnHeads(tmp_path / "file").begin(SPEC, "tiny")
    with pytest.raises(TrainingError, match="can't begin"):
        NeedsQuery(SPEC, tmp_path / "missing")


def test_requirements_are_known_when_the_command_has_reported_them(
    tmp_path: Path, commands: list[FakeCommand]
) -> None:
    query = NeedsQuery(SPEC, tmp_path)
    assert query.answer() is None
    assert "--dry-run" in commands[0].arguments
    needs = HeadsNeeds(5, 6, 7.0, 8.0, 9, 1.5)
    (tmp_path / "needs.json").write_text(json.dumps(asdict(needs)))
    commands[0].code = 0
    assert query.answer() == needs
    commands[0].code, commands[0].words = 1, "error: No.\n  Yes.\n"
    with pytest.raises(TrainingError, match="No"):
        query.answer()
    query.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_command_runs_beside_this_program_and_its_end_is_noticed(tmp_path: Path) -> None:
    output = tmp_path / "said.log"
    command = CommandProcess(["doctor", "--no-such-flag"], output)
    until(lambda: command.code is not None)
    assert command.code == 2
    assert "--no-such-flag" in command.last_words()
    command.stop()
    command.kill()
    assert command.wait(1.0) == 2


@pytest.mark.slow
def test_heads_are_trained_from_start_to_end(tmp_path: Path) -> None:
    """With the real command: paused by the end of its input, then gone on with."""
    own = OwnHeads(tmp_path)
    run = own.begin(HeadsJobSpec("", minutes=0.5), "pebble")
    run.start()
    until(lambda: run.progress().stage in ("answers", "states", "training"))
    run.pause()
    until(lambda: not run.is_running)
    assert run.progress().stage == "paused", run.progress()
    run.start()
    until(lambda: not run.is_running)
    assert run.progress().stage == "done", run.progress()
    assert run.progress().curve
    assert (run.out / "README.md").is_file()
    assert sys.executable
