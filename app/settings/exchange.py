"""What a file of settings would change, checked before anything is changed."""

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
    """What is taken over from a file.

    Attributes:
        preferences: Choices that are others there, by name.
        presets: All presets that the user would have.
        new_chats: What new chats would begin with.
        changes: All of it, for people; empty where nothing would change.
        left_out: What isn't taken over, and why, a sentence each.
    """

    preferences: Mapping[str, Any]
    presets: tuple[Preset, ...]
    new_chats: ChatSettings | None
    changes: tuple[SettingChange, ...]
    left_out: tuple[str, ...] = ()


def settings_of(chosen: Preferences, presets: Presets) -> SettingsFile:
    """All that is exported of a user's choices."""
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
    """What a file would change.

    Args:
        found: The file.
        chosen: The choices of now.
        presets: The presets of now.
        replaces: The user's other presets go; else they stay beside those of the file.

    Raises:
        SettingsFileError: A choice makes no sense.
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
    """The choices of a file as the program has them."""
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
