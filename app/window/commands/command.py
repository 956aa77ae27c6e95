"""Something that the user can do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from PySide6.QtGui import QKeySequence


class Section(Enum):
    """What a command is about."""

    CHAT = "chat"
    VIEW = "view"
    MODELS = "models"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class AppCommand:
    """Something that the user can do.

    Attributes:
        name: Names it in preferences.
        label: Names it for people.
        section: What it is about.
        run: Does it.
        keys: Usual keys, as `Ctrl+N`; several for several ways.
        menu: Its place in the window's menu, a line between the hundreds; 0 leaves it out.
    """

    name: str
    label: str
    section: Section
    run: Callable[[], object]
    keys: tuple[str, ...] = ()
    menu: int = 0


def standard(key: QKeySequence.StandardKey, *others: str) -> tuple[str, ...]:
    """The keys that this system uses for something, and others."""
    default = [one.toString() for one in QKeySequence.keyBindings(key)]
    return tuple(dict.fromkeys((*filter(_is_typed, default), *others)))


def _is_typed(keys: str) -> bool:
    """Not one of the keys that only some keyboards have, such as one named New."""
    return "+" in keys or bool(re.fullmatch(r"F\d+|Esc", keys))
