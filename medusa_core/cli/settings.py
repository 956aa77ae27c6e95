"""`medusa settings`: export and import the window's settings and presets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medusa_core.chats.presets import Presets
from medusa_core.chats.settings_file import (
    NOT_EXPORTED,
    SettingsFile,
    read_settings_file,
    write_settings_file,
)
from medusa_core.errors import MedusaError, SettingsFileError
from medusa_core.hub.boundary import printable
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.json_file import read_json
from medusa_core.system.running_models import running_models
from medusa_core.system.user_folders import Places, places, with_home, without_home


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `settings`; each sets its function as `run`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    out = commands.add_parser("export", help="write all settings and presets into a file")
    out.set_defaults(run=export_settings)
    take = commands.add_parser("import", help="take settings and presets out of a file")
    take.add_argument("--dry-run", action="store_true", help="check the file, and change nothing")
    take.set_defaults(run=import_settings)
    for command in (out, take):
        command.add_argument("file", type=Path, metavar="FILE")
        command.add_argument("--data-dir", type=Path, help="the folder that the window uses")


def export_settings(args: argparse.Namespace) -> int:
    """Export settings."""
    where = places(args.data_dir)
    write_settings_file(_settings_in(where), args.file)
    print(f"settings and presets are in {args.file}")
    print(NOT_EXPORTED)
    return 0


def import_settings(args: argparse.Namespace) -> int:
    """Import settings, after a backup of the current ones."""
    where = places(args.data_dir)
    found = read_settings_file(args.file)
    if found.unknown:
        names = ", ".join(map(printable, found.unknown))
        print(f"left out, as this version doesn't know them: {names}")
    for name, folder in found.absent.items():
        print(f"left out, as this computer has no folder {printable(folder)}: {name}")
    if args.dry_run:
        print(f"{args.file} is sound: {_contents(found)}")
        return 0
    if any(model.program == "window" for model in running_models(where.running)):
        raise SettingsFileError("Medusa Chat is open.", "Close it, or import the file there.")
    before = where.config / "settings-before-import.json"
    write_settings_file(_settings_in(where), before)
    presets = Presets(where.config)
    own = presets.own | {preset.name: preset for preset in found.presets}
    presets.replace_own(own.values(), found.new_chats)
    _write(_preferences_in(where) | dict(found.preferences), where.preferences)
    print(f"taken: {_contents(found)}; what was there before is in {before}")
    return 0


def _contents(file: SettingsFile) -> str:
    """Describe what a file of settings contains."""
    return f"{len(file.preferences)} settings, {len(file.presets)} presets"


def _settings_in(folders: Places) -> SettingsFile:
    """Read the settings of this user."""
    presets = Presets(folders.config)
    if presets.trouble is not None:  # else the file would silently lack them
        raise presets.trouble
    return SettingsFile(_preferences_in(folders), tuple(presets.own.values()), presets.new_chats)


def _preferences_in(folders: Places) -> dict[str, Any]:
    """Read the window's preferences; empty before its first start."""
    try:
        kept = read_json(folders.preferences) if folders.preferences.exists() else {}
    except MedusaError as error:
        raise SettingsFileError(
            f"{folders.preferences} can't be read.",
            "Start Medusa Chat once: it sets the file aside.",
        ) from error
    found: dict[str, Any] = with_home(kept)
    return found


def _write(values: Mapping[str, Any], path: Path) -> None:
    """Write the window's preferences."""
    with disk_errors(SettingsFileError, path, "Make room on the disk."):
        replace_text(path, json.dumps(without_home(values), indent=1) + "\n")
