"""Declarations of settings. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from app.settings.kinds import SettingKind

T = TypeVar("T")
_KEY = "declaration"


class SettingsPage(Enum):
    """Page of the settings dialog."""

    GENERAL = "General"
    APPEARANCE = "Appearance"
    MODELS = "Models"
    STORAGE = "Privacy and storage"
    HIDDEN = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """Declaration of a setting.

    Attributes:
        name: Key in the file.
        kind: Type of the value.
        page: Page that shows it.
        label: Display name, in English.
        sentence: Description, in English.
        effect: Name of the effect that applies the value; empty if it is only read.
    """

    name: str
    kind: SettingKind[Any]
    page: SettingsPage
    label: str
    sentence: str
    effect: str


def setting(
    kind: SettingKind[T],
    default: T | None = None,
    *,
    make_default: Callable[[], T] | None = None,
    page: SettingsPage = SettingsPage.HIDDEN,
    label: str = "",
    sentence: str = "",
    effect: str = "",
) -> Any:
    """Declare a field of a dataclass as a setting; the field's name is its key.

    Args:
        kind: Type of the value.
        default: Default value.
        make_default: Creates a mutable default value.
        page: Page that shows it.
        label: Display name.
        sentence: Description.
        effect: Name of the effect, see `SettingsStore.follow`; settings may share one.
    """
    metadata = {_KEY: (kind, page, label, sentence, effect)}
    if make_default is not None:
        return field(default_factory=make_default, metadata=metadata)
    return field(default=default, metadata=metadata)


def declarations(record: type[Any]) -> tuple[Declaration, ...]:
    """Return the settings that a dataclass declares, in order."""
    return tuple(_declaration(one) for one in fields(record))


def _declaration(one: Field[Any]) -> Declaration:
    return Declaration(one.name, *one.metadata[_KEY])
