"""Export and import all settings and presets, as JSON of `resources/schemas/settings-1.json`.

A file is validated as a whole before anything of it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

from medusa_core import __version__
from medusa_core.chats.presets import Preset, checked_name
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import CheckpointError, PresetError, SettingsFileError
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.json_file import read_json
from medusa_core.system.local_folder import is_local_folder
from medusa_core.system.resources import resources_dir

NOT_EXPORTED = (
    "Tokens, keys, conversations, models, other machines and what this computer runs on are not "
    "in the file."
)
_FORMAT, _VERSION, _SCHEMA = "medusa-chat-settings", 1, "settings-1.json"
_MOST_BYTES = 8 << 20
FOLDERS = frozenset(
    {"models_dir", "layers_dir", "suffix_dir"}
)  # preferences that are folders, or empty
_CHOOSE = tr("Choose a file that was written by “Export settings”.")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """Contents of a settings file.

    Attributes:
        preferences: Preferences by name, as JSON values.
        presets: The user's presets.
        new_chats: Settings for new conversations; None for the default.
        unknown: Names of a newer version, which are left out.
        absent: Folders that don't exist on this computer, by preference; left out.
    """

    preferences: Mapping[str, Any]
    presets: tuple[Preset, ...] = ()
    new_chats: ChatSettings | None = None
    unknown: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)


def exported_names() -> frozenset[str]:
    """Return the names of the preferences that a file may have, from the schema."""
    return frozenset(_schema()["properties"]["preferences"]["properties"])


def write_settings_file(settings: SettingsFile, path: Path) -> None:
    """Write a settings file atomically.

    Args:
        settings: Contents; preferences outside the schema are left out.

    Raises:
        SettingsFileError: The file can't be written, or the settings are invalid.
    """
    names = exported_names()
    chosen = {name: value for name, value in settings.preferences.items() if name in names}
    raw = {
        "format": _FORMAT,
        "version": _VERSION,
        "program": __version__,
        "note": NOT_EXPORTED,
        "preferences": chosen,
        "new_chats": None if settings.new_chats is None else settings.new_chats.as_json(),
        "presets": [
            {"name": preset.name, "settings": dict(preset.values)} for preset in settings.presets
        ],
    }
    try:
        _validator()(raw)
    except fastjsonschema.JsonSchemaValueException as error:
        raise SettingsFileError(
            tr("The settings can't be exported: {0}.", _problem(error)),
            "Start Medusa Chat once: it puts right what makes no sense.",
        ) from error
    with disk_errors(
        SettingsFileError, path, tr("Choose another folder, or make room on the disk.")
    ):
        replace_text(path, json.dumps(raw, indent=1, ensure_ascii=False) + "\n")


def read_settings_file(path: Path) -> SettingsFile:
    """Read and validate a settings file.

    Raises:
        SettingsFileError: The file can't be read, is of another kind or a newer version, or has
            invalid values.
    """
    try:
        raw = read_json(path, _MOST_BYTES)
    except CheckpointError as error:
        raise SettingsFileError(error.message, _CHOOSE) from error
    _check_kind(raw, path)
    _check_text(raw, path)
    try:
        _validator()(raw)
    except fastjsonschema.JsonSchemaValueException as error:
        raise SettingsFileError(
            tr("{0} can't be used: {1}.", path.name, _problem(error)),
            "Correct it, or export the settings again.",
        ) from error
    names, unknown = exported_names(), set[str]()
    unknown |= raw["preferences"].keys() - names
    presets = []
    for entry in raw["presets"]:
        name, values = _preset_name(entry["name"], path), entry["settings"]
        left_out = _check(values, f"the preset {name}", path)
        known = {key: value for key, value in values.items() if key not in left_out}
        presets.append(Preset(name, known))
        unknown |= left_out
    if len({preset.name.casefold() for preset in presets}) < len(presets):
        raise SettingsFileError(
            tr("{0} holds two presets of one name.", path.name), "Rename one there."
        )
    begin = raw["new_chats"]
    if begin is not None:
        unknown |= _check(begin, "the beginning of new chats", path)
    chosen = {name: value for name, value in raw["preferences"].items() if name in names}
    absent = {name: folder for name, folder in chosen.items() if _is_absent(name, folder)}
    return SettingsFile(
        {name: value for name, value in chosen.items() if name not in absent},
        tuple(presets),
        None if begin is None else ChatSettings().with_json(begin),
        tuple(sorted(unknown)),
        absent,
    )


def _is_absent(name: str, value: Any) -> bool:
    """Return whether a preference is a folder that doesn't exist on this computer."""
    return name in FOLDERS and value != "" and not is_local_folder(value)


def _problem(error: fastjsonschema.JsonSchemaValueException) -> str:
    """Return the schema's message about an invalid file."""
    return str(error.message).removeprefix("data.")


def _check_text(raw: Mapping[str, Any], path: Path) -> None:
    """Refuse lone surrogates, which can't be written to a file."""
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise SettingsFileError(
            tr("{0} can't be used: a text in it holds half a character.", path.name), _CHOOSE
        ) from None


def _check_kind(raw: Mapping[str, Any], path: Path) -> None:
    """Refuse other files, and those of newer versions."""
    if raw.get("format") != _FORMAT:
        raise SettingsFileError(tr("{0} is no file of settings.", path.name), _CHOOSE)
    version = raw.get("version")
    if isinstance(version, int) and version > _VERSION:
        raise SettingsFileError(
            tr("{0} was written by a newer Medusa Chat.", path.name),
            "Update this one, then try again.",
        )


def _preset_name(name: str, path: Path) -> str:
    """Validate a preset's name."""
    try:
        return checked_name(name)
    except PresetError as error:
        raise SettingsFileError(
            tr("{0} holds a preset that is called {1}.", path.name, repr(name)), "Rename it there."
        ) from error


def _check(values: Mapping[str, Any], where: str, path: Path) -> set[str]:
    """Check settings of a conversation, and return the unknown names."""
    unknown = set()
    for name, value in values.items():
        try:
            ChatSettings().with_value(name, value)
        except KeyError:
            unknown.add(name)
        except (ValueError, TypeError, OverflowError) as error:
            raise SettingsFileError(
                tr(
                    "{0} can't be used: in {1}, {2} makes no sense: {3}.",
                    path.name,
                    where,
                    name,
                    error,
                ),
                "Correct it, or export the settings again.",
            ) from error
    return unknown


@cache
def _schema() -> dict[str, Any]:
    """Read the JSON schema."""
    text = (resources_dir() / "schemas" / _SCHEMA).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _validator() -> Callable[[object], object]:
    """Compile the JSON schema."""
    validate: Callable[[object], object] = fastjsonschema.compile(_schema())
    return validate
