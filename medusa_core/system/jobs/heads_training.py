"""Heads that are trained on this computer: runs in processes of their own, watched by their files.

Nothing here needs torch: the command line trains, the window asks and looks.
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
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.jobs.heads_gain import (
    HeadsGain,
    read_gain,
)
from medusa_core.system.sandbox.command import CommandProcess
from medusa_core.system.sandbox.problem import problem_of

log = logging.getLogger(__name__)

_PAUSED = 3  # as `train heads` ends where it can go on


@dataclass(frozen=True, slots=True)
class HeadsWish:
    """What is to be trained, under the names of a run's configuration.

    Attributes:
        model: Folder or GGUF file of the model.
        kind: Which heads.
        num_heads: How many tokens ahead.
        block: The same of a kind that drafts them in one pass.
        minutes: For everything.
        data: Files and folders of prompts; none for the bundled ones.
        own_chats: History whose chats' first questions are asked, too; empty for none.
        quant: Weight format of the model; empty for the usual one.
        device: Where to run; empty for the best there is.
        cluster: HOST:PORT of machines that have the layers; empty where they lie here.
        states_gib: Disk for states.
        joint: The model learns with them, through a LoRA.
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
    """How far a run is.

    Attributes:
        stage: `starting`, `prompts`, `answers`, `states`, `training`, `joint`, `judging`,
            `paused`, `done` or `failed`.
        share: Of that stage.
        seconds_left: Of that stage; None where that isn't known.
        tokens_per_s: At which the model writes answers; None elsewhere.
        curve: How often the best guess of each head was right, as they learned: steps, shares.
        problem: Why it ended.
        hint: What to do about it.
        gain: What the heads bring; None before they are made, or where that wasn't measured.
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
        """Nothing goes on."""
        return self.stage in ("paused", "done", "failed")


@dataclass(frozen=True, slots=True)
class HeadsNeeds:
    """What a run would need; as `train heads --dry-run --json` tells it.

    Attributes:
        peak_bytes: Memory of the device at its worst moment.
        disk_bytes: What the run's folder grows to.
        tokens_per_s: At which the model writes answers.
        hours: All of it.
        num_steps: Steps in which heads learn.
        tau: Tokens per step to expect with trees of 8 rows, about.
    """

    peak_bytes: int
    disk_bytes: int
    tokens_per_s: float
    hours: float
    num_steps: int
    tau: float


class HeadsTraining:
    """A run in its folder.

    Attributes:
        out: The folder of the heads that it makes.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._process: CommandProcess | None = None

    @property
    def wish(self) -> HeadsWish | None:
        """What it was asked for; None where that can't be read."""
        raw = _read(self._wish_file)
        try:
            return HeadsWish(**{**raw, "data": tuple(raw["data"])}) if raw else None
        except (KeyError, TypeError) as error:
            log.warning("%s is no wish: %r", self._wish_file, error)
            return None

    @property
    def is_running(self) -> bool:
        """Whether its process is at work."""
        return self._process is not None and self._process.code is None

    def start(self) -> None:
        """Begin, or go on where it was.

        Raises:
            TrainingError: No process could be started.
        """
        has_started = (self.out / "work" / "run.json").is_file()
        how = ["--resume"] if has_started else ["--config", str(self._wish_file)]
        arguments = ["train", "heads", "--out", str(self.out), *how, "--watched"]
        self._process = _started(arguments, self._beside("log"))

    def pause(self) -> None:
        """Let it stop within a step, with all that it has."""
        if self._process is not None:
            self._process.stop()

    def wait(self, time_s: float) -> bool:
        """Wait for its process to end; False where that took longer."""
        return self._process is None or self._process.wait(time_s) is not None

    def progress(self) -> HeadsProgress:
        """How far it is."""
        progress, curve = _read(self.out / "work" / "progress.json"), self._curve()
        stage = str(progress.get("stage", "starting"))
        code = None if self._process is None else self._process.code
        if stage == "done":
            return HeadsProgress("done", 1.0, curve=curve, gain=read_gain(self.out))
        if code is not None and code != _PAUSED:
            problem, hint = _problem_in(self._process.last_words() if self._process else "")
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
        """End it and delete all that it has."""
        if self._process is not None:
            self._process.kill()
        shutil.rmtree(self.out, ignore_errors=True)
        for ending in ("json", "log"):
            self._beside(ending).unlink(missing_ok=True)

    def _curve(self) -> tuple[tuple[int, tuple[float, ...]], ...]:
        path, points = self.out / "work" / "curve.jsonl", []
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n"):
                    point = json.loads(line)
                    points.append((int(point["step"]), tuple(map(float, point["top1"]))))
        return tuple(points)

    @property
    def _wish_file(self) -> Path:
        return self._beside("json")

    def _beside(self, ending: str) -> Path:
        return self.out.parent / f"{self.out.name}.{ending}"


class OwnHeads:
    """The folder of all heads that were trained here, or are being trained."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self, wish: HeadsWish, model_name: str) -> HeadsTraining:
        """A run that is to be started.

        Args:
            wish: What is to be trained.
            model_name: Names the folder of the heads.

        Raises:
            TrainingError: Nothing can be written.
        """
        name = re.sub(r"[^\w.-]+", "-", model_name).strip("-.") or "model"
        number, out = 1, self._root / f"{name}-{wish.kind}"
        while out.exists() or out.with_name(f"{out.name}.json").exists():
            number += 1
            out = self._root / f"{name}-{wish.kind}-{number}"
        try:
            make_own_folder(self._root)
            text = json.dumps(asdict(wish), indent=1)
            out.with_name(f"{out.name}.json").write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._root, error) from error
        return HeadsTraining(out)

    def unfinished(self) -> tuple[HeadsTraining, ...]:
        """Runs that were begun and not ended, the newest first."""
        if not self._root.is_dir():
            return ()
        files = sorted(self._root.glob("*.json"), key=lambda path: -path.stat().st_mtime)
        runs = [HeadsTraining(path.with_name(path.name.removesuffix(".json"))) for path in files]
        return tuple(run for run in runs if run.wish and run.progress().stage != "done")


class NeedsQuery:
    """Asks what a run would need, which takes a minute or two."""

    def __init__(self, wish: HeadsWish, folder: Path) -> None:
        """Begin to ask.

        Args:
            wish: What is to be trained.
            folder: For files that are gone afterwards.

        Raises:
            TrainingError: Nothing can be written, or no process could be started.
        """
        self._needs_path = folder / "needs.json"
        wished = folder / "wish.json"
        try:
            wished.write_text(json.dumps(asdict(wish)), encoding="utf-8")
        except OSError as error:
            raise _unwritable(folder, error) from error
        arguments = ["train", "heads", "--out", str(folder / "heads"), "--config", str(wished)]
        arguments += ["--dry-run", "--json", str(self._needs_path)]
        self._process = _started(arguments, folder / "needs.log")

    def answer(self) -> HeadsNeeds | None:
        """What it needs; None while that isn't known.

        Raises:
            TrainingError: It can't run; why, and what to do.
        """
        if self._process.code is None:
            return None
        if self._process.code != 0:
            raise TrainingError(*_problem_in(self._process.last_words()))
        return HeadsNeeds(**_read(self._needs_path))

    def close(self) -> None:
        """Ask no longer."""
        self._process.kill()


def _started(arguments: Sequence[str], output: Path) -> CommandProcess:
    try:
        return CommandProcess(arguments, output)
    except OSError as error:
        raise _unwritable(output.parent, error) from error


def _unwritable(folder: Path, error: OSError) -> TrainingError:
    return TrainingError(
        f"Training can't begin in {folder}: {error.strerror or error}.",
        "Make room on the disk, or close other programs.",
    )


def _problem_in(output: str) -> tuple[str, str]:
    """The problem and the hint that a command ended with."""
    found = problem_of(output)
    if found is not None:
        return found
    log.error("training ended without a word: %s", output)
    return "Training ended before it was done.", "Go on with it; the log has the details."


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
