"""Convert pickles of tensors to safetensors, with consent.

A pickle is opened by torch's restricted unpickler (`pickles`) in a process of its own
(`convert_worker`) with limits on memory and time. It writes to `.conversion-….partial` next
to the result, from which complete and checked files are moved, the index last.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from medusa_core.errors import ConversionError, DiskFullError
from medusa_core.hub.convert.convert_process import (
    ConversionJob,
    run_job,
)
from medusa_core.hub.convert.convert_source import (
    COMPANIONS,
    HEADS_FILES,
    INDEX_FILE,
    MODEL_FILE,
    ConversionSource,
)
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import sync_file, sync_folder
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.safetensors_header import read_header

_PREFIX, _SUFFIX = ".conversion-", ".partial"
_RESULTS = (*HEADS_FILES, MODEL_FILE, INDEX_FILE)


@dataclass(frozen=True, slots=True)
class ConversionLimits:
    """Limits of a conversion.

    Attributes:
        time_s: Longest time without progress.
        memory_bytes: Memory of the process beyond three times its largest file.
        floor_bytes: Bytes that stay free on the disk.
        most_growth: Largest size of the result over that of the source, since tensors that share
            memory in a pickle are written separately.
    """

    time_s: float = 300.0
    memory_bytes: int = 1 << 30
    floor_bytes: int = 2 << 30
    most_growth: int = 8


@dataclass(frozen=True, slots=True)
class Converted:
    """Result of a conversion.

    Attributes:
        files: Written files in the order in which they appeared.
        nbytes: Size of all files.
    """

    files: tuple[Path, ...]
    nbytes: int


def convert(
    source: ConversionSource,
    *,
    is_consented: bool,
    on_progress: Callable[[int, int], None] | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
    limits: ConversionLimits | None = None,
) -> Converted:
    """Write the tensors of pickles as safetensors.

    The pickles stay unchanged. Small files that a model needs are copied to another folder.

    Args:
        source: Result of `find_source`.
        is_consented: Whether the user knows that a pickle can run code, and agreed.
        on_progress: Called with bytes written and bytes to write, in this thread.
        is_cancelled: Called many times a second; true stops the conversion.
        limits: Limits.

    Raises:
        ConversionError: There is no consent; the pickle is refused, damaged or out of bounds; or
            the result exists already.
        CheckpointError: The index names tensors that no file has.
        HeadsError: The heads aren't whole.
        DiskFullError: There is no room for the result.
        Cancelled: It was stopped.
    """
    limits = limits or ConversionLimits()
    if not is_consented:
        raise ConversionError(
            tr("{0} is a pickle, which can run code when it is opened.", source.files[0].name),
            "Agree to its conversion if you trust where it comes from.",
        )
    _refuse_existing(source.output)
    sizes = [path.stat().st_size for path in source.files]
    with _staging(source.output) as staging:
        room = shutil.disk_usage(staging).free - limits.floor_bytes
        # Heads are written twice: as they are, then in their format.
        needed = sum(sizes) * (2 if source.may_be_heads else 1)
        if room < needed:
            raise DiskFullError(
                tr(
                    "The conversion needs {0:,} bytes of disk; {1:,} are free.",
                    needed,
                    max(0, room),
                ),
                "Make space, or convert into a folder on another disk.",
            )
        job = ConversionJob(
            files=tuple(str(path) for path in source.files),
            staging=str(staging),
            is_sharded=source.is_sharded,
            expected_names=source.expected_names,
            base_model=source.base_model,
            memory_bytes=3 * max(sizes) + limits.memory_bytes,
            most_bytes=min(room, limits.most_growth * sum(sizes) + (1 << 20)),
        )
        run_job(job, limits.time_s, on_progress, is_cancelled)
        return _commit(staging / "out", source)


def _refuse_existing(output: Path) -> None:
    """Refuse to overwrite safetensors of an earlier conversion."""
    for name in _RESULTS:
        if (output / name).exists():
            raise ConversionError(
                tr("{0} exists already.", output / name), "Nothing needs conversion there."
            )


@contextlib.contextmanager
def _staging(output: Path) -> Iterator[Path]:
    """Create a temporary folder next to the result, and remove those of dead processes."""
    with disk_errors(DiskFullError, output, tr("Choose another folder.")):
        output.mkdir(parents=True, exist_ok=True)
        for left in output.glob(f"{_PREFIX}*{_SUFFIX}"):
            owner = left.name.removeprefix(_PREFIX).partition("-")[0]
            if owner.isdecimal() and not psutil.pid_exists(int(owner)):
                shutil.rmtree(left)
        folder = Path(tempfile.mkdtemp(_SUFFIX, f"{_PREFIX}{os.getpid()}-", output))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _commit(written: Path, source: ConversionSource) -> Converted:
    """Move complete files into place, the index last: shards aren't read without it."""
    staged = sorted(written.iterdir(), key=lambda path: (path.name in _RESULTS, path.name))
    for path in staged:
        if path.suffix == ".safetensors":
            read_header(path)
    _refuse_existing(source.output)
    done = []
    with disk_errors(DiskFullError, source.output, tr("Choose another folder, or make space.")):
        if source.output.resolve() != source.folder.resolve():
            _copy_companions(source, written)
        for path in staged:
            final = source.output / path.name
            if path.name == "config.json" and final.exists():
                continue
            _appear(path, final)
            done.append(final)
        sync_folder(source.output)
    return Converted(tuple(done), sum(path.stat().st_size for path in done))


def _copy_companions(source: ConversionSource, written: Path) -> None:
    """Copy configuration and tokenizer next to the converted weights."""
    for pattern in COMPANIONS:
        for path in source.folder.glob(pattern):
            staged, final = written / path.name, source.output / path.name
            if not staged.exists() and not final.exists() and path.is_file():
                shutil.copyfile(path, staged)
                _appear(staged, final)


def _appear(staged: Path, final: Path) -> None:
    """Move a staged file into place after it is synced to disk."""
    sync_file(staged)
    staged.replace(final)
