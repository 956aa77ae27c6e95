"""Lists this user's programs that have a model loaded; each keeps a small file while it runs.

A file is valid while its process runs, so files of killed programs are ignored.
"""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from medusa_core.messages import Event, ModelLoaded, Unloaded
from medusa_core.system.files.atomic_file import replace_text

log = logging.getLogger(__name__)

_SUFFIX = ".json"
_SAME_PROCESS_S = 1.0  # tolerance of start times; a reused process id differs by more


@dataclass(frozen=True, slots=True)
class RunningModel:
    """A running program and its loaded model.

    Attributes:
        program: `window`, `serve` or `run`.
        pid: Process id.
        process_s: Start time of the process, in seconds since 1970.
        model: Name of the model; empty while none is loaded.
        quant: Its weight format.
        nbytes: Device memory for weights, heads and cache.
        context_tokens: Longest prompt plus answer.
        loaded_s: When it was loaded, in seconds since 1970.
        address: HTTP address; empty if it isn't served.
    """

    program: str
    pid: int
    process_s: float
    model: str = ""
    quant: str = ""
    device: str = ""
    nbytes: int = 0
    context_tokens: int = 0
    loaded_s: float = 0.0
    address: str = ""


class RunningFile:
    """This process's file; if it can't be written, the program runs without it."""

    def __init__(self, folder: Path, program: str) -> None:
        """Write the file.

        Args:
            folder: Folder of all such files.
            program: `window`, `serve` or `run`.
        """
        pid = os.getpid()
        self._path = folder / f"{pid}{_SUFFIX}"
        self._state = RunningModel(program, pid, psutil.Process(pid).create_time())
        self._write()

    def receive(self, event: Event) -> None:
        """Update the file after an event of the engine."""
        if isinstance(event, ModelLoaded):
            self._state = replace(
                self._state,
                model=event.name,
                quant=event.quant or event.dtype,
                device=event.device,
                nbytes=event.plan.model_bytes,
                context_tokens=event.context_tokens,
                loaded_s=time.time(),
            )
            self._write()
        elif isinstance(event, Unloaded):
            state = self._state
            self._state = RunningModel(
                state.program, state.pid, state.process_s, address=state.address
            )
            self._write()

    def set_address(self, address: str) -> None:
        """Set the HTTP address; empty when serving ends."""
        if address != self._state.address:
            self._state = replace(self._state, address=address)
            self._write()

    def close(self) -> None:
        """Delete the file."""
        _remove(self._path)

    def _write(self) -> None:
        """Write the file; a failure is only logged."""
        try:
            replace_text(self._path, json.dumps(asdict(self._state)))
        except OSError as error:
            log.info("other programs can't see the loaded model: %s", error)


def running_models(folder: Path) -> tuple[RunningModel, ...]:
    """Return the running programs by start time, and delete the files of others.

    Args:
        folder: Folder of all such files.
    """
    found = []
    for path in folder.glob(f"*{_SUFFIX}"):
        one = _read(path)
        if one is not None and _lives(one):
            found.append(one)
        else:
            _remove(path)
    return tuple(sorted(found, key=lambda one: one.process_s))


def _remove(path: Path) -> None:
    """Delete a file; a failure is only logged."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.info("%s can't be deleted: %s", path.name, error)


def _read(path: Path) -> RunningModel | None:
    """Parse a file; None if it is invalid."""
    try:
        return RunningModel(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        log.info("%s can't be read: %s", path.name, error)
        return None


def _lives(model: RunningModel) -> bool:
    """Whether the process runs; its id may have been reused by another one."""
    try:
        process = psutil.Process(model.pid)
        is_same = abs(process.create_time() - model.process_s) < _SAME_PROCESS_S
        return is_same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, TypeError, ValueError):
        return False
