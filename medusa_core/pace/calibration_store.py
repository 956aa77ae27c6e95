"""Keeps measured step costs for the next start; its files may be deleted."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import torch

from medusa_core import card
from medusa_core.errors import CheckpointError
from medusa_core.files.json_file import read_json
from medusa_core.native.binding import native_library
from medusa_core.pace.calibration import measure_costs
from medusa_core.pace.costs import StepCosts
from medusa_core.target import Target

log = logging.getLogger(__name__)

_VERSION = 7


class CalibrationStore:
    """A folder with a file for each model, format and device."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str) -> StepCosts | None:
        """What was measured before, or None; a damaged file is measured anew."""
        path = self._path(key)
        try:
            return StepCosts.from_json(read_json(path)) if path.exists() else None
        except (CheckpointError, KeyError, TypeError, ValueError, OverflowError) as error:
            log.warning(
                "the step costs in %s can't be used, they are measured anew: %r", path, error
            )
            return None

    def save(self, key: str, costs: StepCosts) -> None:
        """Keep costs; where that fails they are measured again next time."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(costs.to_json(), file)
            Path(name).replace(self._path(key))
        except OSError as error:
            log.warning("step costs can't be kept: %s", error)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def calibration_key(target: Target, folders: Iterable[Path]) -> str:
    """What costs depend on, as one name: files, formats, device, threads, versions.

    Args:
        target: The loaded target.
        folders: Where its files and those of its heads lie; or a GGUF file.
    """
    files = [
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for folder in folders
        for path in (sorted(folder.iterdir()) if folder.is_dir() else [folder])
        if path.suffix in (".safetensors", ".json") or path == folder
    ]
    device = target.precision.device
    where = card.name(device) if device.type == "cuda" else _processor()
    told = (
        _VERSION,
        torch.__version__,
        files,
        sorted(target.formats.names.items()),
        target.formats.heads.name,
        target.config.context_tokens,
        where,
        torch.get_num_threads(),
    )
    return hashlib.sha256(repr(told).encode()).hexdigest()[:32]


def costs_of(target: Target, store: CalibrationStore, folders: Iterable[Path]) -> StepCosts:
    """Step costs of a target: what was kept of them, else measured and kept."""
    key = calibration_key(target, folders)
    costs = store.load(key)
    if costs is None:
        costs = measure_costs(target)
        store.save(key, costs)
    return costs


def _processor() -> str:
    library = native_library()
    compiled = None
    if library is not None:
        path = Path(library._name)
        compiled = (path.stem, path.stat().st_size, path.stat().st_mtime_ns)
    return f"{os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, {compiled}"
