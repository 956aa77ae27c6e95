"""The process that opens pickles, seen from outside: started, fed, watched and ended.

Both sides speak JSON lines. The worker reports each piece that it wrote and waits for a word before
the next; so it stops when it is told to, and when whoever started it is gone.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from medusa_core import errors
from medusa_core.errors import Cancelled, ConversionError, MedusaError

log = logging.getLogger(__name__)

_POLL_S = 0.1
_MOST_LINE_CHARS = 1 << 16
_ROOT = Path(__file__).resolve().parents[2]
_SECRETS = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")
_KINDS: dict[str, type[MedusaError]] = {
    kind.__name__: kind
    for kind in (
        *(errors.ConversionError, errors.CheckpointError, errors.HeadsError),
        *(errors.ModelError, errors.DiskFullError),
    )
}


@dataclass(frozen=True, slots=True)
class Job:
    """What the worker is to do.

    Attributes:
        files: Pickles, in order.
        staging: Folder that it may write to; the result goes to `out` within.
        is_sharded: They are shards of one model.
        expected_names: Tensors that they must hold; empty if nothing says.
        base_model: What the heads' configuration calls their target.
        memory_bytes: Address space that it may take beyond what torch has.
        most_bytes: Most bytes of a result.
    """

    files: tuple[str, ...]
    staging: str
    is_sharded: bool
    expected_names: tuple[str, ...]
    base_model: str
    memory_bytes: int
    most_bytes: int


def run_job(
    job: Job,
    time_s: float,
    on_progress: Callable[[int, int], None] | None,
    is_cancelled: Callable[[], bool],
) -> None:
    """Do a job in a process of its own, and wait for its end.

    Args:
        job: What to do.
        time_s: Longest silence of the worker.
        on_progress: Told of bytes written and bytes to write.
        is_cancelled: Asked while waiting.

    Raises:
        Cancelled: It was stopped.
        ConversionError: The worker ended without a result, or fell silent.
        MedusaError: What the worker found.
    """
    with tempfile.TemporaryFile() as said:
        process = _start(said)
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        reader = threading.Thread(target=_read_lines, args=(process, lines), name="converter")
        reader.start()
        try:
            _send(process, asdict(job))
            while (report := _next_report(lines, time_s, is_cancelled)) is not None:
                if "done" in report:
                    return
                if "error" in report:
                    raise _as_error(report)
                if on_progress is not None:
                    on_progress(int(report["written"]), int(report["total"]))
                if is_cancelled():
                    raise Cancelled("The conversion was stopped.", "Nothing was changed.")
                _send(process, {"go": True})
            raise _ended(process, said)
        finally:
            process.kill()
            process.wait()
            reader.join()
            for pipe in (process.stdin, process.stdout):
                _close(pipe)


def _start(said: IO[bytes]) -> subprocess.Popen[str]:
    # What opens a foreign file needs no secrets.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not any(word in name.upper() for word in _SECRETS)
    }
    environment |= {"PYTHONPATH": str(_ROOT), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "medusa_core.hub.convert_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        encoding="utf-8",
        env=environment,
    )


def _read_lines(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline(_MOST_LINE_CHARS):
        lines.put(line)
    lines.put(None)


def _send(process: subprocess.Popen[str], message: object) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
    except OSError:
        log.debug("the converter ended before it was told to go on")


def _next_report(
    lines: queue.SimpleQueue[str | None], time_s: float, is_cancelled: Callable[[], bool]
) -> dict[str, Any] | None:
    """What the worker says next; None when it has ended."""
    end = time.monotonic() + time_s
    while True:
        if is_cancelled():
            raise Cancelled("The conversion was stopped.", "Nothing was changed.")
        try:
            line = lines.get(timeout=max(0.0, min(_POLL_S, end - time.monotonic())))
            break
        except queue.Empty:
            if time.monotonic() >= end:
                raise ConversionError(
                    f"The conversion has done nothing for {time_s:.0f} s and was stopped.",
                    "Nothing was changed. Get the weights as safetensors instead.",
                ) from None
    if line is None:
        return None
    try:
        report = json.loads(line)
    except ValueError as error:
        raise ConversionError("The converter said something odd and was stopped.") from error
    return report if isinstance(report, dict) else {}


def _as_error(report: dict[str, Any]) -> MedusaError:
    kind = _KINDS.get(str(report["error"]), ConversionError)
    return kind(str(report.get("message", "")), str(report.get("hint", "")))


def _ended(process: subprocess.Popen[str], said: IO[bytes]) -> ConversionError:
    code = process.wait()
    said.seek(0)
    log.debug("the converter said: %s", said.read(1 << 20)[-4000:].decode(errors="replace"))
    return ConversionError(
        f"The converter ended unexpectedly ({f'signal {-code}' if code < 0 else f'code {code}'}).",
        "Nothing was changed. It may have run out of memory: close other programs and try again.",
        code=code,
    )


def _close(pipe: IO[str] | None) -> None:
    assert pipe is not None
    try:
        pipe.close()
    except OSError:
        log.debug("the converter's pipe was closed already")
