"""Jobs whose commands do nothing by themselves."""

import json
from pathlib import Path

import pytest

from medusa_core.system.jobs.batch.job import BatchJob
from medusa_core.system.jobs.batch.progress import BatchProgress, write_progress
from medusa_core.system.jobs.heads_training import HeadsTraining


class FakeCommand:
    """Command without effects."""

    started: list["FakeCommand"]

    def __init__(self, arguments: list[str], output: Path) -> None:
        self.arguments = arguments
        self.code: int | None = None
        self.words = ""
        self.was_stopped = False
        FakeCommand.started.append(self)

    def stop(self) -> None:
        self.was_stopped = True

    def kill(self) -> None:
        self.code = -9

    def wait(self, time_s: float) -> int | None:
        return self.code

    def last_words(self) -> str:
        return self.words


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[FakeCommand]:
    """The commands of jobs, as they are started."""
    FakeCommand.started = []
    for module in ("heads_training", "batch.job"):
        monkeypatch.setattr(f"medusa_core.system.jobs.{module}.CommandProcess", FakeCommand)
    return FakeCommand.started


def tell(run: HeadsTraining, **progress: object) -> None:
    """Write what the command of a training would."""
    work = run.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    (work / "run.json").write_text("{}")
    (work / "progress.json").write_text(json.dumps(progress))


def tell_batch(job: BatchJob, progress: BatchProgress) -> None:
    """Write what the command of a batch would."""
    write_progress(job.folder / "progress.json", progress)
