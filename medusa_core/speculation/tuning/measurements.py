"""Saved measurements of a model on this computer: costs of steps, speeds, learned acceptance."""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterSpeed, Tier, is_plausible_speed_up
from medusa_core.speculation.drafters.lineup import raced_drafters
from medusa_core.speculation.tuning.calibration import Calibration
from medusa_core.speculation.tuning.forms import why_of
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.speculation.tuning.threads import ThreadCounts, Threads
from medusa_core.system import compute_threads, cuda
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.native.binding import native_library

_VERSION = 13

log = logging.getLogger(__name__)


class ModelMeasurements:
    """Loads and saves measurements of a loaded target.

    Costs of steps over several machines aren't saved, as these may be others the next time.
    """

    def __init__(self, folder: Path, target: Target, folders: Iterable[Path]) -> None:
        """Open a folder of measurements.

        Args:
            folder: The folder.
            target: The loaded target.
            folders: Folders or GGUF files of the model, its heads and its draft model.
        """
        folders = tuple(folders)
        self._files, self._target = MeasurementFiles(folder), target
        self._model_key = model_key(target, folders)
        self._folders = folders

    @property
    def _cost_key(self) -> str:
        """Key of all that costs depend on, the number of threads included."""
        return calibration_key(self._target, self._folders)

    @property
    def _threads_key(self) -> str:
        """Key of all that the best numbers of threads depend on."""
        fields = (self._model_key, torch.__version__, _processor())
        return hashlib.sha256(repr(fields).encode()).hexdigest()[:32]

    def threads(self, max_threads: int) -> tuple[ThreadCounts, ...] | None:
        """The saved numbers of threads; None without any that fit.

        Args:
            max_threads: The number of threads that there are now.
        """
        saved = self._files.load(self._threads_key, "threads", _threads_of)
        num_targets = 1 if self._target.assistant is None else 2
        if saved is None or saved.max_threads != max_threads or len(saved.counts) != num_targets:
            return None
        return saved.counts

    def save_threads(self, threads: Threads) -> None:
        """Save measured numbers of threads, unless other programs disturbed the measurement."""
        if not threads.was_disturbed:
            fields = {"most": threads.max_threads, "counts": [list(one) for one in threads.counts]}
            self._files.save(self._threads_key, "threads", fields)

    def costs(self) -> StepCosts:
        """The costs of steps; missing ones are measured within the default time."""
        costs = self.saved_costs()
        if costs is None or not costs.is_complete:
            calibration = Calibration(self._target, costs, is_hurried=True)
            while not calibration.is_over:
                calibration.advance()
            costs = calibration.costs()
            self.save_costs(calibration)
        return costs

    def saved_costs(self) -> StepCosts | None:
        """The saved costs of steps, possibly incomplete; None without any."""
        if self._target.is_divided:
            return None
        return self._files.load(self._cost_key, "costs", StepCosts.from_json)

    def save_costs(self, calibration: Calibration) -> None:
        """Save measured costs, unless other programs disturbed the measurement."""
        if calibration.is_disturbed:
            log.info("other programs ran: the costs of steps are measured again the next time")
        elif not self._target.is_divided:
            self._files.save(self._cost_key, "costs", calibration.costs().to_json())

    def forget(self) -> None:
        """Delete step costs and drafter speeds, so that they are measured again."""
        self._files.delete(self._cost_key, "costs")
        self._files.delete(self._cost_key, "speeds")

    def speeds(self) -> tuple[DrafterSpeed, ...]:
        """Return the target's saved drafter speeds; empty if other drafters were compared."""
        if self._target.is_divided:
            return ()
        speeds = self._files.load(self._cost_key, "speeds", _speeds_of) or ()
        names = {spec.name for spec in raced_drafters(self._target)}
        return speeds if names == {speed.name for speed in speeds} else ()

    def save_speeds(self, speeds: Sequence[DrafterSpeed]) -> None:
        """Save the measured speeds of the target's drafters."""
        if not self._target.is_divided:
            fields = {"drafters": [speed._asdict() for speed in speeds]}
            self._files.save(self._cost_key, "speeds", fields)

    def load_learned(self, row_policy: RowPolicy) -> None:
        """Let a row policy continue from what was learned in earlier runs."""
        self._files.load(self._model_key, "learned", row_policy.load)

    def save_learned(self, row_policy: RowPolicy) -> None:
        """Save what a row policy has learned."""
        self._files.save(self._model_key, "learned", row_policy.to_json())


class _SavedThreads(NamedTuple):
    """Saved numbers of threads, and the maximum among which they were chosen."""

    max_threads: int
    counts: tuple[ThreadCounts, ...]


def _threads_of(raw: Any) -> _SavedThreads:
    """Parse saved numbers of threads.

    Raises:
        ValueError: They are out of range.
    """
    most, counts = raw["most"], tuple(ThreadCounts(*map(int, one)) for one in raw["counts"])
    if not all(1 <= number <= most for one in counts for number in one):
        raise ValueError("there can't be so many threads")
    return _SavedThreads(most, counts)


def _speeds_of(raw: Any) -> tuple[DrafterSpeed, ...]:
    """Parse saved speeds.

    Raises:
        ValueError: They are out of range or implausible.
    """
    speeds = tuple(DrafterSpeed(**each) for each in raw["drafters"])
    numbers = [value for speed in speeds for value in speed if not isinstance(value, str)]
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ValueError("the speeds make no sense")
    if not all(is_plausible_speed_up(speed.x_plain, speed.tau) for speed in speeds):
        raise ValueError("the computer was busy while the speeds were measured")
    # Formatted sentences can't be translated.
    return tuple(speed._replace(why=why_of(speed)) if speed.why else speed for speed in speeds)


def calibration_key(target: Target, folders: Iterable[Path]) -> str:
    """Key of all that costs depend on: files, formats, placement of layers, threads, versions.

    Args:
        target: The loaded target.
        folders: Folders or GGUF files of the model and its heads.
    """
    device = target.precision.device
    where = cuda.name(device) if device.type == "cuda" else _processor()
    placement, cpu_parts = target.plan.placement, target.plan.cpu_parts
    fields = (
        model_key(target, folders),
        torch.__version__,
        target.config.context_tokens,
        where,
        compute_threads.count(),
        () if placement is None else tuple(len(placement.layers(tier)) for tier in Tier),
        *(() if cpu_parts is None else (cpu_parts.layers,)),
        *(() if target.config.moe is None else ("rows choose different experts",)),
    )
    return hashlib.sha256(repr(fields).encode()).hexdigest()[:32]


def model_key(target: Target, folders: Iterable[Path]) -> str:
    """Key of all that acceptance depends on: files and formats.

    Args:
        target: The loaded target.
        folders: Folders of the model's files, as in `calibration_key`.
    """
    files = [
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for folder in folders
        for path in (sorted(folder.iterdir()) if folder.is_dir() else [folder])
        if path.suffix in (".safetensors", ".json") or path == folder
    ]
    formats = target.formats
    fields = (_VERSION, files, sorted(formats.names.items()), formats.heads.name)
    return hashlib.sha256(repr(fields).encode()).hexdigest()[:32]


def _processor() -> str:
    """Cores, capability and library build, on which the seconds of a step depend."""
    library = native_library()
    compiled = None
    if library is not None:
        path = Path(library._name)
        compiled = (path.stem, path.stat().st_size, path.stat().st_mtime_ns)
    return f"{os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, {compiled}"
