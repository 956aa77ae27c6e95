"""Which programs of this user have a model loaded: each keeps a small file while it runs.

A file counts while its process lives, so that nothing is left of one that was killed.
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
_SAME_PROCESS_S = 1.0  # clocks differ by less, another process of that number by more


@dataclass(frozen=True, slots=True)
class RunningModel:
    """A program that runs, and the model that it has loaded.

    Attributes:
        program: `window`, `serve` or `run`.
        pid: Its process.
        process_s: When that began, in seconds since 1970.
        model: Name of the model; empty while none is loaded.
        quant: Its weight format.
        device: Where it is computed.
        nbytes: What it takes there: weights, heads and cache.
        context_tokens: Longest prompt plus answer.
        loaded_s: When it was loaded, in seconds since 1970.
        address: Where programs reach it by HTTP; empty where they don't.
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
    """This process's own file; where it can't be written, the program runs without one."""

    def __init__(self, folder: Path, program: str) -> None:
        """Write it.

        Args:
            folder: Where all of them lie.
            program: What this process is.
        """
        pid = os.getpid()
        self._path = folder / f"{pid}{_SUFFIX}"
        self._state = RunningModel(program, pid, psutil.Process(pid).create_time())
        self._write()

    def hear(self, event: Event) -> None:
        """Take an event of the engine."""
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

    def listen_at(self, address: str) -> None:
        """Say where programs reach the model; empty where they don't any more."""
        if address != self._state.address:
            self._state = replace(self._state, address=address)
            self._write()

    def close(self) -> None:
        """Remove it."""
        _remove(self._path)

    def _write(self) -> None:
        try:
            replace_text(self._path, json.dumps(asdict(self._state)))
        except OSError as error:
            log.info("nobody can see what is loaded: %s", error)


def running_models(folder: Path) -> tuple[RunningModel, ...]:
    """The programs that run, the one that began first at the head; files of dead ones are removed.

    Args:
        folder: Where their files lie.
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
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.info("%s stays: %s", path.name, error)


def _read(path: Path) -> RunningModel | None:
    try:
        return RunningModel(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        log.info("%s tells nothing: %s", path.name, error)
        return None


def _lives(one: RunningModel) -> bool:
    """Whether it is still that process: its number may have been given to another one."""
    try:
        process = psutil.Process(one.pid)
        is_same = abs(process.create_time() - one.process_s) < _SAME_PROCESS_S
        return is_same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, TypeError, ValueError):
        return False
