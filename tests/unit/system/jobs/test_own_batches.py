"""Batches in processes of their own, told from their files."""

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.errors import BatchError
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.system.jobs.batch.job import (
    BatchJob,
    BatchSpec,
    OwnBatches,
)
from medusa_core.system.jobs.batch.progress import (
    BatchProgress,
)
from medusa_core.system.jobs.batch.row import (
    BatchRow,
    read_rows,
)
from tests.support.jobs import FakeCommand, commands, tell_batch
from tests.support.models.targets import Folders

__all__ = ["commands"]
OPTIONS = LoadOptions(formats=WeightFormats("q4_0"), memory_gib=1.5)
SPEC = BatchSpec("/data/questions.jsonl", "/data/answers.jsonl", options=OPTIONS)


def test_a_batch_is_started_watched_paused_and_resumed(
    tmp_path: Path, commands: list[FakeCommand]
) -> None:
    own = OwnBatches(tmp_path)
    job = own.begin(SPEC)
    assert job.folder == tmp_path / "questions"
    assert job.spec == SPEC
    job.start()
    arguments = commands[0].arguments
    assert arguments[:5] == ["batch", "--prompts", SPEC.prompts, "--out", SPEC.out]
    assert arguments[-3:] == ["--watched", "--progress", str(job.folder / "progress.json")]
    assert ("--quant", "q4_0") in pairwise(arguments)
    assert "--heads" not in arguments
    assert job.state().stage == "starting"
    tell_batch(job, BatchProgress("answering", 3, 1, 10, 21.0, 8.0))
    assert job.state().stage == "answering"
    assert job.state().progress.seconds_left == 8.0
    job.pause()
    assert commands[0].was_stopped
    commands[0].code = 3
    assert job.state().stage == "paused"
    assert not job.was_running
    job.start()
    assert job.was_running
    tell_batch(job, BatchProgress("done", 10, 1, 10))
    commands[1].code = 0
    assert job.state().stage == "done"
    assert own.unfinished() == []


def test_a_batch_that_ran_when_the_program_ended_is_recognised(
    tmp_path: Path, commands: list[FakeCommand]
) -> None:
    own = OwnBatches(tmp_path)
    job = own.begin(SPEC)
    job.start()
    tell_batch(job, BatchProgress("answering", 3, 0, 10))
    job.pause_on_exit()
    assert commands[0].was_stopped
    (later,) = own.unfinished()
    assert later.was_running
    assert (later.state().stage, later.spec) == ("paused", SPEC)
    again = own.begin(SPEC)
    assert again.folder != job.folder
    again.remove()
    assert [one.folder for one in own.unfinished()] == [job.folder]


def test_a_problem_is_reported_and_not_repeated(
    tmp_path: Path, commands: list[FakeCommand]
) -> None:
    job = OwnBatches(tmp_path).begin(SPEC)
    job.start()
    commands[0].words, commands[0].code = "Traceback\nerror: The disk is full.\n  Make room.\n", 1
    state = job.state()
    assert (state.stage, state.problem, state.hint) == ("failed", "The disk is full.", "Make room.")
    assert not job.was_running


def test_a_folder_without_a_batch_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "wish.json").write_text('{"other": 1}')
    assert OwnBatches(tmp_path).unfinished() == []
    with pytest.raises(BatchError, match="no batch"):
        BatchJob(tmp_path / "odd").start()


def test_answers_are_read_from_where_they_ended(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert read_rows(path) == ([], 0)
    first, second = BatchRow("a", "Ä", 1, "eos"), BatchRow(2, error="No.")
    lines = [json.dumps(row._asdict(), ensure_ascii=False).encode() for row in (first, second)]
    path.write_bytes(lines[0] + b"\n" + lines[1][:9])
    rows, end = read_rows(path)
    assert (rows, end) == ([first], len(lines[0]) + 1)
    path.write_bytes(lines[0] + b"\n" + lines[1] + b"\nodd\n")
    rows, end = read_rows(path, end)
    assert (rows, end) == ([second], path.stat().st_size)


def test_closing_its_input_pauses_a_batch_and_the_next_start_completes_it(
    folders: Folders, tmp_path: Path
) -> None:
    prompts, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    prompts.write_text("".join(f'{{"id": {n}, "prompt": "say {n}"}}\n' for n in range(80)))
    spec = BatchSpec(str(prompts), str(out), str(folders["grouped"][0]), max_new_tokens=60)
    job = OwnBatches(tmp_path / "batches").begin(spec)
    job.start()
    while not read_rows(out)[0]:
        assert job.state().stage in ("starting", "answering"), job.state()
        time.sleep(0.02)
    job.pause_on_exit()
    assert job.wait(60)
    assert job.state().stage == "paused"
    num_done = len(read_rows(out)[0])
    assert 0 < num_done < 80
    assert main([*spec.arguments, "--together", "16"]) == 0
    rows, _ = read_rows(out)
    assert sorted(int(row.id) for row in rows) == list(range(80))
