"""Descriptions of the changes that a settings file makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.settings.editors import value_text
from app.settings.kinds import ChoiceKind, NumberKind, SettingKind, ToggleKind
from app.settings.preferences import DECLARATIONS
from medusa_core.chats.presets import Preset
from medusa_core.chats.settings import ChatSettings

_NOTHING = "–"
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Description of one change.

    Attributes:
        label: Name of the setting.
        before: Current value.
        after: New value.
    """

    label: str
    before: str
    after: str


def choice_change(name: str, before: Any, after: Any) -> SettingChange:
    """Describe the change of a preference.

    Args:
        name: Key of the preference.
        before: Current value.
        after: New value.
    """
    declared = DECLARATIONS[name]
    return SettingChange(
        value_text(declared.label), _shown(declared.kind, before), _shown(declared.kind, after)
    )


def preset_change(name: str, before: Preset | None, after: Preset | None) -> SettingChange:
    """Describe an added, removed or changed preset."""
    label = translate("Settings", "Preset {0}").format(name)
    now = _NOTHING if before is None else translate("Settings", "there")
    if after is None:
        return SettingChange(label, now, _NOTHING)
    new, other = translate("Settings", "new"), translate("Settings", "other values")
    return SettingChange(label, now, new if before is None else other)


def beginning_change(before: ChatSettings | None, after: ChatSettings | None) -> SettingChange:
    """Describe a change of the defaults of new chats."""
    label = translate("Settings", "New chats begin with")
    return SettingChange(label, _beginning(before), _beginning(after))


def _shown(kind: SettingKind[Any], value: Any) -> str:
    match kind:
        case ToggleKind():
            return translate("Settings", "on") if value else translate("Settings", "off")
        case ChoiceKind(options=options):
            return value_text(dict(options)[value])
        case NumberKind(least=least, suffix=suffix, minimum_text=word, scale=scale):
            if word and value == least:
                return value_text(word)
            return f"{Number(value * scale):.0f}{suffix}"
    if isinstance(value, Mapping):
        pairs = (f"{name}: {keys or _NOTHING}" for name, keys in sorted(value.items()))
        return ", ".join(pairs) or _NOTHING
    return str(value) or translate("Settings", "the usual")


def _beginning(settings: ChatSettings | None) -> str:
    if settings is None:
        return translate("Settings", "the program’s choice")
    default = ChatSettings().as_json()
    own = [name for name, value in settings.as_json().items() if value != default[name]]
    if not own:
        return translate("Settings", "the usual")
    return translate("Settings", "own values of {0}").format(", ".join(own))
