"""Check disks and folders: room, permissions, and whether the history can be read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

from medusa_core.doctor.check import Check, CheckSpec
from medusa_core.hub.settings import settings_from
from medusa_core.i18n import tr
from medusa_core.system.resources import (
    calibrations_dir,
    quantized_models_dir,
)
from medusa_core.system.user_folders import Places

_GB = 10**9
_MIN_BYTES = 2 * _GB  # downloads leave as much free


def storage_checks(places: Places) -> tuple[CheckSpec, ...]:
    """Return the checks of folders and disks."""
    models = settings_from(os.environ).cache_dir
    folders = {
        tr("Settings folder"): places.config,
        tr("Conversations folder"): places.data,
        tr("State folder"): places.state,
        tr("Logs folder"): places.log,
        tr("Models folder"): models,
        tr("Quantized copies folder"): quantized_models_dir(),
        tr("Step costs folder"): calibrations_dir(),
    }
    written = [
        CheckSpec(name, partial(_check_writable, name, folder)) for name, folder in folders.items()
    ]
    return (
        *written,
        CheckSpec(
            tr("Disk for conversations"), partial(_room, tr("Disk for conversations"), places.data)
        ),
        CheckSpec(tr("Disk for models"), partial(_room, tr("Disk for models"), models)),
        CheckSpec(tr("History"), partial(_history, places.history)),
    )


def _check_writable(name: str, folder: Path) -> Check:
    """Check that a folder, or its nearest existing parent, can be written."""
    nearest = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    if not nearest.is_dir():
        return Check(name, False, tr("{0} is a file, not a folder.", nearest), tr("Move it away."))
    try:
        with tempfile.NamedTemporaryFile(dir=nearest, prefix=".medusa-doctor-"):
            facts = str(folder) if nearest == folder else tr("{0} (made when it is needed)", folder)
            return Check(name, True, tr("{0}.", facts))
    except OSError as error:
        return Check(
            name,
            False,
            tr("{0} can't be written: {1}.", nearest, error.strerror),
            tr("Give yourself the right to write there, or start with --data-dir FOLDER."),
        )


def _room(name: str, folder: Path) -> Check:
    """Check the free space of a folder's disk."""
    free = shutil.disk_usage(_existing(folder)).free
    facts = tr("{0:.1f} GB are free.", free / _GB)
    if free < _MIN_BYTES:
        hint = tr("Make room: below 2 GB downloads pause, and a full disk keeps nothing.")
        return Check(name, False, facts, hint)
    return Check(name, True, facts)


def _history(path: Path) -> Check:
    """Check that the history can be read."""
    if not path.exists():
        return Check(tr("History"), True, tr("No conversation is kept yet."))
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            (facts,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        facts = str(error)
    if facts != "ok":
        return Check(
            tr("History"),
            False,
            tr("{0} is damaged: {1}.", path, facts),
            tr(
                "Close Medusa Chat and start it again: it sets the file aside and keeps what it "
                "can."
            ),
        )
    return Check(tr("History"), True, tr("{0:.1f} MB, undamaged.", path.stat().st_size / 1e6))


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)
