"""A command of the window."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from PySide6.QtGui import QKeySequence


class Section(Enum):
    """Section of a command in lists."""

    CHAT = "chat"
    VIEW = "view"
    MODELS = "models"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class AppCommand:
    """A command of the window.

    Attributes:
        name: Key in preferences.
        label: Display name.
        section: Section in lists.
        run: Executes the command.
        keys: Default shortcuts, such as `Ctrl+N`.
        menu: Position in the window's menu, hundreds are separated; 0 leaves it out.
    """

    name: str
    label: str
    section: Section
    run: Callable[[], object]
    keys: tuple[str, ...] = ()
    menu: int = 0


def standard(key: QKeySequence.StandardKey, *others: str) -> tuple[str, ...]:
    """Return the platform's standard shortcuts of an action, and further ones."""
    default = [one.toString() for one in QKeySequence.keyBindings(key)]
    return tuple(dict.fromkeys((*filter(_is_typed, default), *others)))


def _is_typed(keys: str) -> bool:
    """Whether a shortcut can be typed on every keyboard, unlike a key named New."""
    return "+" in keys or bool(re.fullmatch(r"F\d+|Esc", keys))
