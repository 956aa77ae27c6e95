"""Validated plan of a settings import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.settings.change_words import (
    SettingChange,
    beginning_change,
    choice_change,
    preset_change,
)
from app.settings.editors import value_text
from app.settings.preferences import DECLARATIONS, Preferences
from medusa_core.api import SettingsFile, exported_names
from medusa_core.chats.presets import Preset, Presets
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import SettingsFileError

_MOST_SHOWN = 60
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class SettingsImport:
    """Changes of a settings import.

    Attributes:
        preferences: Changed preferences by name.
        presets: All presets after the import.
        new_chats: Defaults of new chats after the import.
        changes: Descriptions of all changes; empty if there are none.
        left_out: Sentences about what isn't imported and why.
    """

    preferences: Mapping[str, Any]
    presets: tuple[Preset, ...]
    new_chats: ChatSettings | None
    changes: tuple[SettingChange, ...]
    left_out: tuple[str, ...] = ()


def settings_of(chosen: Preferences, presets: Presets) -> SettingsFile:
    """Return the preferences that are exported."""
    names = exported_names()
    values = {
        name: declared.kind.write(getattr(chosen, name))
        for name, declared in DECLARATIONS.items()
        if name in names
    }
    return SettingsFile(values, tuple(presets.own.values()), presets.new_chats)


def plan_import(
    found: SettingsFile, chosen: Preferences, presets: Presets, *, replaces: bool = False
) -> SettingsImport:
    """Return the changes that importing a file makes.

    Args:
        found: Contents of the file.
        chosen: Current preferences.
        presets: Current presets.
        replaces: Whether the file's presets replace all others; else they are merged.

    Raises:
        SettingsFileError: A value is invalid.
    """
    values = _values(found.preferences)
    left_out = [
        translate("Settings", "{0}: there is no folder {1} here.").format(
            value_text(DECLARATIONS[name].label), folder
        )
        for name, folder in found.absent.items()
    ]
    changed = {name: value for name, value in values.items() if getattr(chosen, name) != value}
    own = {} if replaces else dict(presets.own)
    own |= {preset.name: preset for preset in found.presets}
    changes = [choice_change(name, getattr(chosen, name), new) for name, new in changed.items()]
    for name in sorted({*presets.own, *own}, key=str.casefold):
        pair = presets.own.get(name), own.get(name)
        if pair[0] != pair[1]:
            changes.append(preset_change(name, *pair))
    if found.new_chats != presets.new_chats:
        changes.append(beginning_change(presets.new_chats, found.new_chats))
    if found.unknown:
        unknown = ", ".join(found.unknown[:_MOST_SHOWN])
        left_out.append(translate("Settings", "This version doesn’t know {0}.").format(unknown))
    return SettingsImport(
        changed, tuple(own.values()), found.new_chats, tuple(changes), tuple(left_out)
    )


def _values(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the preferences of a file."""
    values = {}
    for name, value in raw.items():
        try:
            values[name] = DECLARATIONS[name].kind.read(value)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise SettingsFileError(
                translate("Settings", "The file can't be used: {0} makes no sense: {1}.").format(
                    name, error
                ),
                translate("Settings", "Correct it, or export the settings again."),
            ) from error
    return values
