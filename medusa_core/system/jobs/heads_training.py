"""Training of heads in child processes, which report their progress in files.

Nothing here needs torch: `medusa train heads` trains, the window starts and watches it.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from medusa_core.errors import TrainingError
from medusa_core.i18n import tr
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.jobs.heads_gain import (
    HeadsGain,
    read_gain,
)
from medusa_core.system.sandbox.command import CommandJob, CommandProcess, problem_in

log = logging.getLogger(__name__)

_ENDED = tr("Training ended before it was done.")
_PAUSED = 3  # exit code of `train heads` for a run that can be resumed


@dataclass(frozen=True, slots=True)
class HeadsJobSpec:
    """Settings of a training run, with the names of its configuration.

    Attributes:
        model: Folder or GGUF file of the model.
        kind: Kind of heads.
        num_heads: Number of tokens to draft.
        block: Number of tokens to draft, for kinds that draft all of them in one pass.
        minutes: Time for the whole run.
        data: Files and folders of prompts; none for the bundled ones.
        own_chats: History whose first questions are used as prompts, too; empty for none.
        quant: Weight format of the model; empty for the default.
        device: A torch device name; empty for the best one.
        cluster: HOST:PORT of machines that compute the layers; empty for this one.
        states_gib: Disk space for hidden states.
        joint: Train a LoRA of the model together with the heads.
    """

    model: str
    kind: str = "hydra"
    num_heads: int = 4
    block: int = 5
    minutes: float = 60.0
    data: tuple[str, ...] = ()
    own_chats: str = ""
    quant: str = ""
    device: str = ""
    cluster: str = ""
    states_gib: float = 4.0
    joint: bool = False


@dataclass(frozen=True, slots=True)
class HeadsProgress:
    """Progress of a training run.

    Attributes:
        stage: `starting`, `prompts`, `answers`, `states`, `training`, `joint`, `judging`,
            `paused`, `done` or `failed`.
        share: Completed share of the stage.
        seconds_left: Estimate for the stage; None if unknown.
        tokens_per_s: Speed of writing answers; None in other stages.
        curve: Top-1 accuracies of each head during training, as pairs of step and accuracies.
        problem: Why it failed.
        hint: What to do about it.
        gain: Speedup of the heads; None before it is measured.
    """

    stage: str
    share: float = 0.0
    seconds_left: float | None = None
    tokens_per_s: float | None = None
    curve: tuple[tuple[int, tuple[float, ...]], ...] = ()
    problem: str = ""
    hint: str = ""
    gain: HeadsGain | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has ended or is paused."""
        return self.stage in ("paused", "done", "failed")


@dataclass(frozen=True, slots=True)
class HeadsNeeds:
    """Estimates for a run; the fields are the JSON keys of `train heads --dry-run --json`.

    Attributes:
        peak_bytes: Peak memory of the device, including the program.
        disk_bytes: Final size of the run's folder.
        tokens_per_s: Speed at which the model writes answers; 0 if it doesn't.
        hours: Duration of the run.
        num_steps: Training steps of the heads.
        tau: Expected tokens per step with trees of 8 rows.
    """

    peak_bytes: int
    disk_bytes: int
    tokens_per_s: float
    hours: float
    num_steps: int
    tau: float


class HeadsTraining(CommandJob):
    """A training run and its folder.

    Attributes:
        out: Folder of the heads.
    """

    def __init__(self, out: Path) -> None:
        self.out = out

    @property
    def spec(self) -> HeadsJobSpec | None:
        """Settings of the run; None if they can't be read."""
        raw = _read(self._spec_file)
        try:
            return HeadsJobSpec(**{**raw, "data": tuple(raw["data"])}) if raw else None
        except (KeyError, TypeError) as error:
            log.warning("%s holds no settings of a run: %r", self._spec_file, error)
            return None

    def start(self) -> None:
        """Start or resume the run.

        Raises:
            TrainingError: No process could be started.
        """
        has_started = (self.out / "work" / "run.json").is_file()
        source = ["--resume"] if has_started else ["--config", str(self._spec_file)]
        arguments = ["train", "heads", "--out", str(self.out), *source, "--watched"]
        self._process = _started(arguments, self._beside("log"))

    def progress(self) -> HeadsProgress:
        """Read the progress."""
        progress, curve = _read(self.out / "work" / "progress.json"), self._curve()
        stage = str(progress.get("stage", "starting"))
        code = None if self._process is None else self._process.code
        if stage == "done":
            return HeadsProgress("done", 1.0, curve=curve, gain=read_gain(self.out))
        if self._process is not None and code is not None and code != _PAUSED:
            problem, hint = problem_in(self._process.last_words(), _ENDED)
            return HeadsProgress("failed", curve=curve, problem=problem, hint=hint)
        if not self.is_running:
            return HeadsProgress("paused", curve=curve)
        if stage == "paused":
            return HeadsProgress("starting", curve=curve)
        share = float(progress.get("done", 0)) / max(1e-9, float(progress.get("of", 1)))
        left, speed = progress.get("seconds_left"), progress.get("tokens_per_s")
        return HeadsProgress(
            stage,
            min(1.0, share),
            None if left is None else float(left),
            None if speed is None else float(speed),
            curve,
        )

    def remove(self) -> None:
        """Kill the process and delete all files of the run."""
        self._kill()
        shutil.rmtree(self.out, ignore_errors=True)
        for ending in ("json", "log"):
            self._beside(ending).unlink(missing_ok=True)

    def _curve(self) -> tuple[tuple[int, tuple[float, ...]], ...]:
        """Read the learning curve: step and top-1 accuracy of each head."""
        path, points = self.out / "work" / "curve.jsonl", []
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n"):
                    point = json.loads(line)
                    points.append((int(point["step"]), tuple(map(float, point["top1"]))))
        return tuple(points)

    @property
    def _spec_file(self) -> Path:
        """File of the settings."""
        return self._beside("json")

    def _beside(self, ending: str) -> Path:
        """Return the path of a file next to the run's folder."""
        return self.out.parent / f"{self.out.name}.{ending}"


class OwnHeads:
    """The folder of all training runs of this computer."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self, spec: HeadsJobSpec, model_name: str) -> HeadsTraining:
        """Create a run, not yet started.

        Args:
            spec: Settings of the run.
            model_name: Start of the folder's name.

        Raises:
            TrainingError: Nothing can be written.
        """
        name = re.sub(r"[^\w.-]+", "-", model_name).strip("-.") or "model"
        number, out = 1, self._root / f"{name}-{spec.kind}"
        while out.exists() or out.with_name(f"{out.name}.json").exists():
            number += 1
            out = self._root / f"{name}-{spec.kind}-{number}"
        try:
            make_own_folder(self._root)
            text = json.dumps(asdict(spec), indent=1)
            out.with_name(f"{out.name}.json").write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._root, error) from error
        return HeadsTraining(out)

    def unfinished(self) -> tuple[HeadsTraining, ...]:
        """Return the runs that aren't done, newest first."""
        if not self._root.is_dir():
            return ()
        files = sorted(self._root.glob("*.json"), key=lambda path: -path.stat().st_mtime)
        runs = [HeadsTraining(path.with_name(path.name.removesuffix(".json"))) for path in files]
        return tuple(run for run in runs if run.spec and run.progress().stage != "done")


class NeedsQuery:
    """A child process that estimates the needs of a run, which takes a minute or two."""

    def __init__(self, spec: HeadsJobSpec, folder: Path) -> None:
        """Start the process.

        Args:
            spec: Settings of the run.
            folder: Temporary folder.

        Raises:
            TrainingError: Nothing can be written, or no process could be started.
        """
        self._needs_path = folder / "needs.json"
        config = folder / "wish.json"
        try:
            config.write_text(json.dumps(asdict(spec)), encoding="utf-8")
        except OSError as error:
            raise _unwritable(folder, error) from error
        arguments = ["train", "heads", "--out", str(folder / "heads"), "--config", str(config)]
        arguments += ["--dry-run", "--json", str(self._needs_path)]
        self._process = _started(arguments, folder / "needs.log")

    def answer(self) -> HeadsNeeds | None:
        """Return the estimates; None while the process runs.

        Raises:
            TrainingError: The run is impossible.
        """
        if self._process.code is None:
            return None
        if self._process.code != 0:
            raise TrainingError(*problem_in(self._process.last_words(), _ENDED))
        return HeadsNeeds(**_read(self._needs_path))

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()


def _started(arguments: Sequence[str], output: Path) -> CommandProcess:
    """Start a command in a child process."""
    try:
        return CommandProcess(arguments, output)
    except OSError as error:
        raise _unwritable(output.parent, error) from error


def _unwritable(folder: Path, error: OSError) -> TrainingError:
    """Make the error for a folder that can't be written."""
    return TrainingError(
        tr("Training can't begin in {0}: {1}.", folder, error.strerror or error),
        "Make room on the disk, or close other programs.",
    )


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if it can't be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
