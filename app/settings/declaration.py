"""The declaration of a setting: the one place that says all about it. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from app.settings.kinds import SettingKind

T = TypeVar("T")
_KEY = "declaration"


class SettingsPage(Enum):
    """Where a setting is shown."""

    GENERAL = "General"
    APPEARANCE = "Appearance"
    MODELS = "Models"
    STORAGE = "Privacy and storage"
    HIDDEN = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What there is to know about a setting.

    Attributes:
        name: Its key in the file.
        kind: What it may be.
        page: Where it is shown.
        label: Its name for people, in English.
        sentence: What it does, in English.
        effect: Name of what the window does with its value; empty if it is only read.
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
        kind: What it may be.
        default: What it is at the first start.
        make_default: Makes that, where it isn't immutable.
        page: Where it is shown.
        label: Its name for people.
        sentence: What it does.
        effect: Name of its effect, which `SettingsStore.follow` connects; settings may share one.
    """
    metadata = {_KEY: (kind, page, label, sentence, effect)}
    if make_default is not None:
        return field(default_factory=make_default, metadata=metadata)
    return field(default=default, metadata=metadata)


def declarations(record: type[Any]) -> tuple[Declaration, ...]:
    """All settings that a dataclass declares, in order."""
    return tuple(_declaration(one) for one in fields(record))


def _declaration(one: Field[Any]) -> Declaration:
    return Declaration(one.name, *one.metadata[_KEY])
