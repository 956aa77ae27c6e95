"""Checkpoints of a training loop: written whole, checked when read, the one before as a reserve.

A checkpoint is what `torch.save` writes: a ZIP archive with a CRC-32 of each record. `torch.load`
doesn't compare these sums, so a changed byte would silently become a changed weight.
"""

from __future__ import annotations

import logging
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from medusa_core.errors import TrainingError
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import AtomicFile, sync_file, sync_folder
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.training.optimizer import Optimizers

log = logging.getLogger(__name__)

_MOST_STEPS = 1 << 31
_PARTS = ("step", "module", "optimizers")


def previous_of(path: Path) -> Path:
    """Return the path of the checkpoint before the newest one."""
    return path.with_suffix(".previous")


def save(path: Path, module: nn.Module, optimizers: Optimizers, step: int) -> None:
    """Write a checkpoint and keep the one before; a kill or a power cut leaves a whole one.

    Raises:
        TrainingError: It can't be written; earlier checkpoints stay.
    """
    state = {"step": step, "module": module.state_dict(), "optimizers": optimizers.state_dict()}
    try:
        make_own_folder(path.parent)
        with AtomicFile(path, durable=False) as part:
            torch.save(state, part)
            sync_file(part)  # before the older checkpoint loses its name
            if path.is_file():
                path.replace(previous_of(path))
        sync_folder(path.parent)
    except (OSError, RuntimeError) as error:  # torch hides a full disk in a RuntimeError
        raise TrainingError(
            tr("{0} can't be written: {1}.", path, _first_line(error)),
            "Make room, or make its folder writable, and go on: earlier checkpoints are there.",
        ) from error


def restore(path: Path, module: nn.Module, optimizers: Optimizers) -> int:
    """Load the newest intact checkpoint.

    Returns:
        Its step; 0 if there is none.

    Raises:
        TrainingError: No checkpoint is intact, or it is of another run.
    """
    state = _newest(path)
    if state is None:
        return 0
    try:
        module.load_state_dict(state["module"])
        optimizers.load_state_dict(state["optimizers"])
    except Exception as error:
        raise TrainingError(
            tr("{0} belongs to another run: its weights don't fit.", path), _restart_hint(path)
        ) from error
    return int(state["step"])


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint's tensors: `step`, `module`, `optimizers`.

    Raises:
        TrainingError: It is missing or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
        if changed is not None:
            raise zipfile.BadZipFile(f"{changed} has another checksum")
        state: Any = torch.load(path, weights_only=True, map_location="cpu")
        if not isinstance(state, dict) or any(part not in state for part in _PARTS):
            raise ValueError(f"it doesn't hold {', '.join(_PARTS)}")
        step = state["step"]
        if type(step) is not int or not 0 <= step <= _MOST_STEPS:
            raise ValueError("its step is no count")
    except (FileNotFoundError, PermissionError) as error:
        raise TrainingError(
            tr("{0} can't be read: {1}.", path, _first_line(error)), _restart_hint(path)
        ) from error
    except pickle.UnpicklingError as error:  # whose text advises to unpickle it nevertheless
        raise TrainingError(
            tr("{0} is damaged: it holds something else than tensors and numbers.", path),
            _restart_hint(path),
        ) from error
    except Exception as error:  # of anything a changed byte may lead to in zipfile, pickle or torch
        raise TrainingError(
            tr("{0} is damaged: {1}.", path, _first_line(error)), _restart_hint(path)
        ) from error
    return dict(state)


def _newest(path: Path) -> dict[str, Any] | None:
    """Return the newest intact checkpoint."""
    first: TrainingError | None = None
    for candidate in (path, previous_of(path)):
        if not candidate.is_file():
            continue
        try:
            state = read_checkpoint(candidate)
        except TrainingError as error:
            log.warning("%s", error.message)
            first = first or error
            continue
        if candidate != path:
            log.warning("Training goes on from the checkpoint before, at step %d.", state["step"])
        return state
    if first is not None:
        raise first
    return None


def _restart_hint(path: Path) -> str:
    """Return the advice for a run without a checkpoint."""
    return (
        f"Delete {path.name} and {previous_of(path).name} and go on: training starts at its first "
        "step, everything else of the run stays."
    )


def _first_line(error: BaseException) -> str:
    """Return the first line of an error, without torch's long advice."""
    reason = error.strerror if isinstance(error, OSError) else None
    lines = (reason or str(error)).strip().splitlines() or [""]
    return (lines[0] or type(error).__name__).rstrip(".")[:200]
